package quire.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;

/**
 * Appends {@code --count} messages of the kinds in {@code --kind text,map,...} in turn, or one for every line of
 * {@code --hex FILE} ({@code -} is stdin), and prints each index. The clock starts at {@code --start} and moves
 * {@code --step} milliseconds after each message; without a start it is the machine's.
 */
final class Write implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws IOException {
        ManualClock clock = new ManualClock(options.number("start", System.currentTimeMillis()));
        long step = options.number("step", 0);
        List<Step> steps = options.has("hex") ? rawSteps(options) : kindSteps(options);
        try (ChronicleQueue queue = Queues.open(options, clock)) {
            ExcerptAppender appender = Releases.appender(queue);
            for (Step each : steps) {
                each.append(appender);
                if (each.hasIndex())
                    out.println(Long.toHexString(appender.lastIndexAppended()));
                clock.advance(step);
            }
        }
    }

    private static List<Step> kindSteps(Options options) {
        String[] kinds = options.text("kind", "text").split(",");
        long first = options.number("first", 0);
        List<Step> steps = new ArrayList<>();
        for (long n = 0; n < options.number("count"); n++)
            steps.add(new KindStep(Messages.named(kinds[(int) (n % kinds.length)]), first + n));
        return steps;
    }

    private static List<Step> rawSteps(Options options) throws IOException {
        return readLines(options.text("hex")).stream()
                .map(String::strip)
                .filter(line -> !line.isEmpty())
                .<Step>map(line -> new RawStep(HexFormat.of().parseHex(line)))
                .toList();
    }

    private static List<String> readLines(String source) throws IOException {
        if (!source.equals("-"))
            return Files.readAllLines(Path.of(source));
        try (BufferedReader stdin = new BufferedReader(new InputStreamReader(System.in))) {
            return stdin.lines().toList();
        }
    }

    private interface Step {
        void append(ExcerptAppender appender);

        boolean hasIndex();
    }

    private record KindStep(Messages kind, long number) implements Step {
        @Override
        public void append(ExcerptAppender appender) {
            kind.append(appender, number);
        }

        @Override
        public boolean hasIndex() {
            return kind.hasIndex();
        }
    }

    private record RawStep(byte[] payload) implements Step {
        @Override
        public void append(ExcerptAppender appender) {
            Messages.appendBytes(appender, payload);
        }

        @Override
        public boolean hasIndex() {
            return true;
        }
    }
}
