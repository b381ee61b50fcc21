package quire.interop.vanilla;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

import net.openhft.chronicle.Chronicle;
import quire.interop.Options;
import quire.interop.Verb;

/**
 * Appends {@code --count} messages, "message N" from {@code --first} on, or with {@code --hex} those of stdin, one a line,
 * and prints the index of each. {@code --start MS --step MS} put them into other cycles than the present one;
 * {@code --threads N} append in turn.
 */
final class Write implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        long at = options.number("start", System.currentTimeMillis());
        long step = options.number("step", 0);
        List<ExecutorService> threads = Stream.generate(Executors::newSingleThreadExecutor)
                .limit(options.number("threads", 1)).toList();
        try (Chronicle chronicle = Chronicles.open(options)) {
            int turn = 0;
            for (Iterator<byte[]> payloads = payloads(options).iterator(); payloads.hasNext(); at += step) {
                byte[] payload = payloads.next();
                int cycle = Chronicles.cycleNumber(options, at);
                // The library gives each thread an appender of its own.
                ExecutorService thread = threads.get(turn++ % threads.size());
                long index = thread.submit(
                        () -> Chronicles.append(chronicle.createAppender(), payload, cycle)).get();
                out.println(Long.toHexString(index));
            }
        } finally {
            threads.forEach(ExecutorService::shutdown);
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
