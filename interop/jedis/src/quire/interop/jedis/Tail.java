package quire.interop.jedis;

import java.io.PrintStream;
import java.util.Map;

import quire.interop.Options;
import quire.interop.Verb;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.params.XReadParams;
import redis.clients.jedis.resps.StreamEntry;

/**
 * Reads {@code --queue} of the server at {@code --port} from its first entry on, and waits for more: prints
 * {@code READY}, then the id of each entry, its {@code number} and its {@code text}, until there were {@code --count}.
 */
final class Tail implements Verb {
    private static final int WAIT_MS = 30_000;
    private static final int AT_ONCE = 100;

    @Override
    public void run(Options options, PrintStream out) throws Exception {
        String queue = options.text("queue");
        long count = options.number("count");
        try (Jedis client = new Jedis("127.0.0.1", (int) options.number("port"), WAIT_MS)) {
            StreamEntryID last = new StreamEntryID(0, 0);
            XReadParams asked = XReadParams.xReadParams().count(AT_ONCE).block(WAIT_MS / 2);
            out.println("READY");
            for (long seen = 0; seen < count; ) {
                var found = client.xread(asked, Map.of(queue, last));
                if (found == null)
                    continue;
                for (StreamEntry entry : found.get(0).getValue()) {
                    last = entry.getID();
                    out.println(last + " " + entry.getFields().get("number") + " " + entry.getFields().get("text"));
                    seen++;
                }
            }
        }
    }
}
