package quire.interop.vanilla;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ExcerptTailer;
import quire.interop.Options;
import quire.interop.Verb;

/**
 * One consumer of several: goes through {@code --count} messages and claims for {@code --owner} each that nobody has, by
 * a compare-and-swap of its first word. Prints {@code READY}, waits for a line, and prints the indexes of those that it
 * got.
 */
final class Claim implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        long count = options.number("count");
        int owner = (int) options.number("owner");
        try (Chronicle chronicle = Chronicles.open(options)) {
            ExcerptTailer tailer = chronicle.createTailer();
            out.println("READY");
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).readLine();
            for (long seen = 0; seen < count; ) {
                if (!tailer.nextIndex())
                    continue;
                seen++;
                if (tailer.compareAndSwapInt(0, 0, owner))
                    out.println(Long.toHexString(tailer.index()));
            }
        }
    }
}
