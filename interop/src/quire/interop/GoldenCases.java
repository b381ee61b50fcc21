package quire.interop;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.BiConsumer;

import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.wire.DocumentContext;

/**
 * The fixture queues, by name. Each is written with a clock that stands at 2023-11-14T22:13:20Z until its case moves
 * it, and in TEST4_DAILY (32 x 4 index slots) unless it is about another roll cycle: its index arrays are small.
 */
final class GoldenCases {
    static final long START = 1_700_000_000_000L;
    private static final long DAY = 86_400_000;
    private static final int SECOND_INDEX_ARRAYS = 309;

    private final Map<String, Case> cases = new LinkedHashMap<>();

    GoldenCases() {
        add("text", "", (queue, clock) -> repeat(queue, Messages.TEXT, 12));
        add("text_fast_daily", "FAST_DAILY", (queue, clock) -> repeat(queue, Messages.TEXT, 3));
        add("map", "", (queue, clock) -> repeat(queue, Messages.MAP, 6));
        add("document", "", (queue, clock) -> repeat(queue, Messages.DOCUMENT, 6));
        add("bytes", "", (queue, clock) -> repeat(queue, Messages.BYTES, 40));
        add("metadata", "", (queue, clock) -> inTurn(queue, Messages.META, Messages.TEXT, Messages.META));
        add("empty_documents", "", (queue, clock) -> inTurn(queue, Messages.EMPTY, Messages.TEXT, Messages.EMPTY));
        add("rollback", "", (queue, clock) -> inTurn(queue, Messages.ROLLBACK, Messages.TEXT, Messages.ROLLBACK));
        add("rolls_with_gap", "", GoldenCases::rollsWithGap);
        add("index_growth", "", (queue, clock) -> repeat(queue, Messages.TEXT, SECOND_INDEX_ARRAYS));
        add("index_growth_test_daily", "TEST_DAILY", (queue, clock) -> repeat(queue, Messages.TEXT, 64));
        add("named_tailers", "", GoldenCases::namedTailers);
        add("epoch", "", (queue, clock) -> repeat(queue, Messages.TEXT, 3), "--epoch", "25200000");
        add("roll_time", "", (queue, clock) -> repeat(queue, Messages.TEXT, 3), "--roll-time", "21:00");
        add("source_id", "", (queue, clock) -> repeat(queue, Messages.TEXT, 3), "--source-id", "7");
        add("empty", "", (queue, clock) -> { });
    }

    /** The cases of a run, in the order of their making. */
    Map<String, Case> all() {
        return cases;
    }

    /** Large arrays, so on demand only: a few hundred messages in the given roll cycle. */
    static Case ofRollCycle(String rollCycle) {
        return new Case(rollCycle, (queue, clock) -> repeat(queue, Messages.TEXT, 300));
    }

    private void add(String name, String rollCycle, BiConsumer<ChronicleQueue, ManualClock> body, String... options) {
        cases.put(name, new Case(rollCycle.isEmpty() ? "TEST4_DAILY" : rollCycle, body, options));
    }

    private static void repeat(ChronicleQueue queue, Messages kind, int count) {
        ExcerptAppender appender = Releases.appender(queue);
        for (int number = 0; number < count; number++)
            kind.append(appender, number);
    }

    private static void inTurn(ChronicleQueue queue, Messages... kinds) {
        ExcerptAppender appender = Releases.appender(queue);
        for (int round = 0; round < 4; round++)
            for (Messages kind : kinds)
                kind.append(appender, round);
    }

    /** Three, three and four messages; the third day has none. */
    private static void rollsWithGap(ChronicleQueue queue, ManualClock clock) {
        repeat(queue, Messages.TEXT, 3);
        clock.advance(DAY);
        repeat(queue, Messages.DOCUMENT, 3);
        clock.advance(2 * DAY);
        repeat(queue, Messages.TEXT, 4);
    }

    /** "alice" has read two of five, "bob" all, "carol" none. */
    private static void namedTailers(ChronicleQueue queue, ManualClock clock) {
        repeat(queue, Messages.TEXT, 5);
        read(queue.createTailer("alice"), 2);
        read(queue.createTailer("bob"), 5);
        read(queue.createTailer("carol"), 0);
    }

    private static void read(ExcerptTailer tailer, int count) {
        for (int i = 0; i < count; i++)
            try (DocumentContext document = tailer.readingDocument()) {
                if (!document.isPresent())
                    throw new IllegalStateException("missing message: " + i);
            }
    }

    /** One fixture: how its queue is opened and what is done to it. */
    static final class Case {
        private static final String BLOCK_SIZE = "65536";
        private final String rollCycle;
        private final BiConsumer<ChronicleQueue, ManualClock> body;
        private final String[] options;

        Case(String rollCycle, BiConsumer<ChronicleQueue, ManualClock> body, String... options) {
            this.rollCycle = rollCycle;
            this.body = body;
            this.options = options;
        }

        void writeTo(Path directory) {
            ManualClock clock = new ManualClock(START);
            try (ChronicleQueue queue = Queues.open(optionsFor(directory), clock)) {
                body.accept(queue, clock);
            }
        }

        private Options optionsFor(Path directory) {
            String[] fixed = {"--dir", directory.toString(), "--roll-cycle", rollCycle, "--block-size", BLOCK_SIZE};
            String[] both = Arrays.copyOf(fixed, fixed.length + options.length);
            System.arraycopy(options, 0, both, fixed.length, options.length);
            return new Options(both);
        }
    }
}
