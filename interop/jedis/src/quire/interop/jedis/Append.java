package quire.interop.jedis;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import quire.interop.Options;
import quire.interop.Verb;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.params.XAddParams;

/**
 * Appends {@code --count} entries of a {@code number} and a {@code --text} to {@code --queue} of the server at
 * {@code --port}, together with {@code --pipelined}; prints the id of each.
 */
final class Append implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        String queue = options.text("queue");
        long count = options.number("count");
        String text = options.text("text", "");
        boolean isPipelined = options.flag("pipelined");
        try (Jedis client = new Jedis("127.0.0.1", (int) options.number("port"))) {
            List<StreamEntryID> ids = new ArrayList<>();
            if (isPipelined) {
                Pipeline pipeline = client.pipelined();
                List<Response<StreamEntryID>> answers = new ArrayList<>();
                for (long number = 0; number < count; number++)
                    answers.add(pipeline.xadd(queue, XAddParams.xAddParams(), entry(number, text)));
                pipeline.sync();
                answers.forEach(answer -> ids.add(answer.get()));
            } else {
                for (long number = 0; number < count; number++)
                    ids.add(client.xadd(queue, XAddParams.xAddParams(), entry(number, text)));
            }
            ids.forEach(out::println);
        }
    }

    private static Map<String, String> entry(long number, String text) {
        return Map.of("number", Long.toString(number), "text", text);
    }
}
