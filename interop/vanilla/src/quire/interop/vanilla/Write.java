package quire.interop.vanilla;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.io.BufferedReader;
import java.io.InputStreamReader;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ExcerptAppender;
import quire.interop.Options;
import quire.interop.Verb;

/**
 * Appends {@code --count} messages, "message N" from {@code --first} on, or with {@code --hex} those of stdin, one a line,
 * and prints the index of each. {@code --start MS --step MS} put them into other cycles than the present one.
 */
final class Write implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        long start = options.number("start", System.currentTimeMillis());
        long step = options.number("step", 0);
        Iterator<byte[]> payloads = payloads(options).iterator();
        try (Chronicle chronicle = Chronicles.open(options)) {
            ExcerptAppender appender = chronicle.createAppender();
            for (long at = start; payloads.hasNext(); at += step) {
                int cycle = Chronicles.cycleNumber(options, at);
                out.println(Long.toHexString(Chronicles.append(appender, payloads.next(), cycle)));
            }
        }
    }

    private static Stream<byte[]> payloads(Options options) {
        if (options.flag("hex"))
            return new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).lines()
                    .map(HexFormat.of()::parseHex);
        int first = (int) options.number("first", 0);
        return IntStream.range(first, first + (int) options.number("count"))
                .mapToObj(number -> ("message " + number).getBytes(StandardCharsets.UTF_8));
    }
}
