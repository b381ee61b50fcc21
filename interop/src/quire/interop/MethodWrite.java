package quire.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.function.Consumer;

import net.openhft.chronicle.queue.ChronicleQueue;

/**
 * Makes the calls named on stdin, a line each, on the method writer of a queue: {@code say('hello')} and the others of
 * {@link ProbeCalls}. Prints the index of each. With {@code --source-id} the writer records history.
 */
final class MethodWrite implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws IOException {
        ProbeTypes.addAliases();
        Map<String, Consumer<ProbeCallTypes.Market>> calls = ProbeCalls.ofMarket();
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (ChronicleQueue queue = Queues.open(options)) {
            ProbeCallTypes.Market market = Releases.appender(queue).methodWriter(ProbeCallTypes.Market.class);
            String name;
            while ((name = lines.readLine()) != null) {
                Consumer<ProbeCallTypes.Market> call = calls.get(name);
                if (call == null)
                    throw new Options.UsageException("no such call: " + name);
                call.accept(market);
                out.println(Long.toHexString(Releases.lastIndex(queue)));
            }
        }
    }
}
