package quire.interop.jedis;

import java.io.PrintStream;
import java.util.Map;

import quire.interop.Options;
import quire.interop.Verb;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.resps.StreamEntry;

/**
 * Consumes {@code --count} entries of {@code --queue} of the server at {@code --port} as a consumer of {@code --group},
 * which it makes; prints the id of each, which it acknowledged, and last how many are pending.
 */
final class Consume implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        String queue = options.text("queue");
        String group = options.text("group");
        long count = options.number("count");
        try (Jedis client = new Jedis("127.0.0.1", (int) options.number("port"))) {
            client.xgroupCreate(queue, group, new StreamEntryID(0, 0), false);
            XReadGroupParams asked = XReadGroupParams.xReadGroupParams().count((int) count);
            var found = client.xreadGroup(group, "jedis", asked,
                    Map.of(queue, StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY));
            for (StreamEntry entry : found.get(0).getValue()) {
                client.xack(queue, group, entry.getID());
                out.println(entry.getID());
            }
            out.println("pending " + client.xpending(queue, group).getTotal());
        }
    }
}
