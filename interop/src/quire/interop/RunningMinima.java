package quire.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.function.LongBinaryOperator;

/**
 * Feeds the library's RunningMinimum, of releases up to 5.23, with {@code start end} lines from stdin, and prints what
 * it makes of each. {@code --actual-minimum} is added to every answer; {@code --drift} is how many nanoseconds pass
 * while the minimum moves by one (100000 unless said).
 */
final class RunningMinima implements Verb {
    private static final long DRIFT = 100_000;

    @Override
    public void run(Options options, PrintStream out) throws IOException {
        LongBinaryOperator sample = Releases.runningMinimum(
                options.number("actual-minimum", 0), (int) options.number("drift", DRIFT));
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        String line;
        while ((line = lines.readLine()) != null) {
            String[] pair = line.split(" ");
            out.println(sample.applyAsLong(Long.parseLong(pair[0]), Long.parseLong(pair[1])));
        }
    }
}
