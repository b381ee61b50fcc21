package quire.interop.vanilla;

import java.io.PrintStream;
import java.lang.management.ManagementFactory;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ExcerptAppender;
import net.openhft.chronicle.ExcerptTailer;
import quire.interop.Json;
import quire.interop.Options;
import quire.interop.Verb;

/**
 * Times {@code --loop append-one} or {@code tail} over {@code --count} messages of {@code --size} bytes after
 * {@code --warm-up} more of them, and prints one JSON object. A payload is its number as i64 and, up to the size, each
 * byte's place; the checksum is the sum of the numbers. With {@code --distinct} N the numbers go from 0 to N - 1 and
 * start again.
 */
final class Bench implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        String loop = options.text("loop");
        long count = options.number("count");
        long warmUp = options.number("warm-up", count / 5);
        long distinct = options.number("distinct", Long.MAX_VALUE);
        byte[] padding = new byte[(int) options.number("size", 96) - Long.BYTES];
        for (int i = 0; i < padding.length; i++)
            padding[i] = (byte) (Long.BYTES + i);
        try (Chronicle chronicle = Chronicles.open(options)) {
            Loop body = switch (loop) {
                case "append-one" -> append(chronicle.createAppender(), padding);
                case "tail" -> tail(chronicle.createTailer(), padding);
                default -> throw new Options.UsageException("no such loop: " + loop);
            };
            run(body, 0, warmUp, distinct);
            long cpuBegin = cpuNanos();
            long begin = System.nanoTime();
            long checksum = run(body, warmUp, warmUp + count, distinct);
            long nanos = System.nanoTime() - begin;
            out.println(Json.object("loop", loop, "size", padding.length + Long.BYTES, "count", count, "nanos", nanos,
                    "cpuNanos", cpuNanos() - cpuBegin, "messagesPerSecond", Math.round(count * 1e9 / nanos),
                    "checksum", checksum));
        }
    }

    /** One message of that number; the number. */
    @FunctionalInterface
    private interface Loop {
        long one(long number);
    }

    private static long run(Loop body, long from, long end, long distinct) {
        long checksum = 0;
        for (long number = from; number < end; number++)
            checksum += body.one(number % distinct);
        return checksum;
    }

    private static Loop append(ExcerptAppender appender, byte[] padding) {
        int size = padding.length + Long.BYTES;
        return number -> {
            appender.startExcerpt(size);
            appender.writeLong(number);
            appender.write(padding);
            appender.finish();
            return number;
        };
    }

    private static Loop tail(ExcerptTailer tailer, byte[] padding) {
        return number -> {
            if (!tailer.nextIndex())
                throw new IllegalStateException("the queue ended early: number=" + number);
            long found = tailer.readLong();
            tailer.readFully(padding);
            return found;
        };
    }

    /** What this thread used of a CPU. */
    private static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }
}
