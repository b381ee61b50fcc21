package quire.interop;

import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.wire.DocumentContext;

/**
 * Times one loop over {@code --count} messages of {@code --size} bytes after {@code --warm-up} more of them, and prints
 * one JSON object. {@code --loop append-one} opens a document per message, {@code append-bytes} calls
 * {@code writeBytes}, {@code tail} reads every message of the directory into one buffer; {@code method-write},
 * {@code method-read} and {@code dump} are in {@link BenchMethods}. The roll cycle is FAST_DAILY
 * unless the options say otherwise and the clock stands still, so nothing rolls; pages are touched by the loop itself.
 *
 * <p>A payload is its number as i64 and, up to the size, each byte's place; the checksum is the sum of the numbers. With
 * {@code --distinct} N the numbers go from 0 to N - 1 and start again.
 */
final class Bench implements Verb {
    private static final long START = 1_700_000_000_000L;

    @Override
    public void run(Options options, PrintStream out) {
        String loop = options.text("loop");
        long count = options.number("count");
        long warmUp = options.number("warm-up", count / 5);
        int size = (int) options.number("size", 96);
        long distinct = options.number("distinct", Long.MAX_VALUE);
        BenchMethods.addAlias();
        try (ChronicleQueue queue = Queues.open(options, new ManualClock(START))) {
            Loop body = switch (loop) {
                case "append-one" -> new AppendOne(queue, size);
                case "append-bytes" -> new AppendBytes(queue, size);
                case "tail" -> new Tail(queue, size);
                case "method-write" -> new BenchMethods.Write(queue);
                case "method-read" -> new BenchMethods.Read(queue);
                case "dump" -> new BenchMethods.Dump(options.text("dir"));
                default -> throw new Options.UsageException("no such loop: " + loop);
            };
            body.run(warmUp, distinct);
            body.checksum = 0;
            long cpuBegin = cpuNanos();
            long begin = System.nanoTime();
            body.run(count, distinct);
            long nanos = System.nanoTime() - begin;
            long cpuNanos = cpuNanos() - cpuBegin;
            out.println(Json.object("loop", loop, "size", size, "count", count, "nanos", nanos, "cpuNanos", cpuNanos,
                    "nsPerMessage", round((double) nanos / count),
                    "messagesPerSecond", Math.round(count * 1e9 / nanos),
                    "checksum", body.checksum));
        }
    }

    /** What this thread used of a CPU. */
    private static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    private static double round(double nanos) {
        return Math.round(nanos * 10) / 10.0;
    }

    /** What is timed. It counts on from where the warm-up stopped. */
    abstract static class Loop {
        final Bytes<ByteBuffer> payload;
        final ByteBuffer buffer;
        long checksum;
        private long next;

        Loop(int size) {
            payload = Bytes.elasticByteBuffer(size, size);
            buffer = payload.underlyingObject().order(ByteOrder.LITTLE_ENDIAN);
            for (int i = 0; i < size; i++)
                buffer.put(i, (byte) i);
        }

        final void run(long count, long distinct) {
            for (long done = 0; done < count; done++) {
                one(next);
                next = next + 1 == distinct ? 0 : next + 1;
            }
        }

        abstract void one(long number);
    }

    private abstract static class Append extends Loop {
        final ExcerptAppender appender;

        Append(ChronicleQueue queue, int size) {
            super(size);
            appender = Releases.appender(queue);
        }

        @Override
        final void one(long number) {
            buffer.putLong(0, number);
            checksum += number;
            payload.readPositionRemaining(0, buffer.capacity());
            append();
        }

        abstract void append();
    }

    private static final class AppendOne extends Append {
        AppendOne(ChronicleQueue queue, int size) {
            super(queue, size);
        }

        @Override
        void append() {
            try (DocumentContext document = appender.writingDocument()) {
                document.wire().bytes().write(payload);
            }
        }
    }

    private static final class AppendBytes extends Append {
        AppendBytes(ChronicleQueue queue, int size) {
            super(queue, size);
        }

        @Override
        void append() {
            appender.writeBytes(payload);
        }
    }

    private static final class Tail extends Loop {
        private final ExcerptTailer tailer;

        Tail(ChronicleQueue queue, int size) {
            super(size);
            tailer = queue.createTailer();
        }

        @Override
        void one(long number) {
            try (DocumentContext document = tailer.readingDocument()) {
                if (!document.isPresent())
                    throw new IllegalStateException("the queue ended early: number=" + number);
                payload.clear();
                payload.write(document.wire().bytes());
            }
            checksum += buffer.getLong(0);
        }
    }
}
