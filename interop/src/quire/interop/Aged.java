package quire.interop;

import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.Random;
import java.util.function.LongConsumer;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.wire.DocumentContext;

/**
 * Times what must not cost more in a queue that is large or old, after {@code --warm-up} times of it. {@code --work
 * append} appends payloads as {@link Bench} does, its warm-up into a queue beside it; {@code poll} asks for a message at
 * the end; {@code seek} moves to an index at random and reads the message's number; {@code open} opens, goes to the end,
 * finds nothing there, and closes. The clock stands still at {@code --start}.
 */
final class Aged implements Verb {
    @Override
    public void run(Options options, PrintStream out) {
        long count = options.number("count");
        long warmUp = options.number("warm-up");
        int size = (int) options.number("size");
        long distinct = options.number("distinct");
        ManualClock clock = new ManualClock(options.number("start"));
        String work = options.text("work");
        if (work.equals("open")) {
            time(work, warmUp, count, times -> open(options, clock, times), out);
            return;
        }
        try (ChronicleQueue queue = Queues.open(options, clock)) {
            ExcerptTailer tailer = queue.createTailer();
            switch (work) {
                case "append" -> {
                    try (ChronicleQueue other = Queues.open(options.with("dir", beside(options)), clock)) {
                        append(other, size, distinct).accept(warmUp);
                    }
                    time(work, 0, count, append(queue, size, distinct), out);
                }
                case "poll" -> {
                    tailer.toEnd();
                    time(work, warmUp, count, times -> poll(tailer, times), out);
                }
                case "seek" -> time(work, warmUp, count, seek(queue, tailer, distinct), out);
                default -> throw new Options.UsageException("no such work: " + work);
            }
        }
    }

    private static void time(String work, long warmUp, long count, LongConsumer loop, PrintStream out) {
        loop.accept(warmUp);
        long cpuBegin = cpuNanos();
        long begin = System.nanoTime();
        loop.accept(count);
        long nanos = System.nanoTime() - begin;
        out.println(Json.object("work", work, "count", count, "nanos", nanos, "cpuNanos", cpuNanos() - cpuBegin));
    }

    private static String beside(Options options) {
        return Path.of(options.text("dir")).resolveSibling("warm-java").toString();
    }

    private static LongConsumer append(ChronicleQueue queue, int size, long distinct) {
        ExcerptAppender appender = Releases.appender(queue);
        Bytes<ByteBuffer> payload = Bytes.elasticByteBuffer(size, size);
        ByteBuffer buffer = payload.underlyingObject().order(ByteOrder.LITTLE_ENDIAN);
        for (int i = Long.BYTES; i < size; i++)
            buffer.put(i, (byte) i);
        return count -> {
            for (long done = 0; done < count; done++) {
                buffer.putLong(0, done % distinct);
                payload.readPositionRemaining(0, size);
                try (DocumentContext document = appender.writingDocument()) {
                    document.wire().bytes().write(payload);
                }
            }
        };
    }

    private static void poll(ExcerptTailer tailer, long count) {
        for (long done = 0; done < count; done++) {
            try (DocumentContext document = tailer.readingDocument()) {
                check(!document.isPresent(), "a message at the end", tailer.index());
            }
        }
    }

    private static LongConsumer seek(ChronicleQueue queue, ExcerptTailer tailer, long distinct) {
        Random some = new Random(1);
        long first = queue.firstIndex();
        int messages = (int) (Releases.lastIndex(queue) - first);
        return count -> {
            for (long done = 0; done < count; done++) {
                int sequence = some.nextInt(messages);
                check(tailer.moveToIndex(first + sequence), "no such message", first + sequence);
                try (DocumentContext document = tailer.readingDocument()) {
                    long number = document.wire().bytes().readLong();
                    check(number == sequence % distinct, "another message", first + sequence);
                }
            }
        };
    }

    private static void open(Options options, ManualClock clock, long count) {
        for (long done = 0; done < count; done++) {
            try (ChronicleQueue queue = Queues.open(options, clock); ExcerptTailer tailer = queue.createTailer()) {
                tailer.toEnd();
                poll(tailer, 1);
            }
        }
    }

    private static void check(boolean holds, String otherwise, long index) {
        if (!holds)
            throw new IllegalStateException(otherwise + ": index=" + Long.toHexString(index));
    }

    private static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }
}
