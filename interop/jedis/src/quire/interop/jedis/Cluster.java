package quire.interop.jedis;

import java.io.PrintStream;
import java.util.Map;

import quire.interop.Options;
import quire.interop.Verb;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.params.XAddParams;
import redis.clients.jedis.params.XReadParams;
import redis.clients.jedis.resps.StreamEntry;

/**
 * Appends {@code --count} entries to {@code --queue} as a client of a Redis Cluster, one node of which is at
 * {@code --port}, and reads them; prints the id of each, and the number of nodes.
 */
final class Cluster implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        String queue = options.text("queue");
        long count = options.number("count");
        try (JedisCluster client = new JedisCluster(new HostAndPort("127.0.0.1", (int) options.number("port")))) {
            for (long number = 0; number < count; number++)
                client.xadd(queue, XAddParams.xAddParams(), Map.of("number", Long.toString(number)));
            var found = client.xread(XReadParams.xReadParams(), Map.of(queue, new StreamEntryID(0, 0)));
            for (StreamEntry entry : found.get(0).getValue())
                out.println(entry.getID());
            out.println("nodes " + client.getClusterNodes().size());
        }
    }
}
