package quire.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.locks.LockSupport;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.wire.DocumentContext;

/**
 * One of several writers that append to a queue at the same time. It appends {@code --warm-up} messages, prints READY,
 * reads from stdin at which {@link System#nanoTime()} to begin, appends for {@code --duration-ms}, and prints how many
 * it appended. A payload is its number as i64 (0 to {@code --distinct} - 1, in turn), {@code --writer} as i64 and, up to
 * the size, each byte's place.
 */
final class Contend implements Verb {
    private static final long START = 1_700_000_000_000L;
    private static final int BETWEEN_LOOKS = 10;

    @Override
    public void run(Options options, PrintStream out) throws IOException {
        long warmUp = options.number("warm-up");
        long durationNanos = options.number("duration-ms") * 1_000_000;
        try (ChronicleQueue queue = Queues.open(options, new ManualClock(START))) {
            Writer writer = new Writer(queue, options);
            writer.append(warmUp);
            out.println("READY");
            out.flush();
            long begin = Long.parseLong(
                    new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII)).readLine().trim());
            long early = begin - System.nanoTime();
            if (early > 0)
                LockSupport.parkNanos(early);
            long cpuBegin = cpuNanos();
            long count = 0;
            while (System.nanoTime() - begin < durationNanos) {
                writer.append(BETWEEN_LOOKS);
                count += BETWEEN_LOOKS;
            }
            long nanos = System.nanoTime() - begin;
            out.println(Json.object("count", count, "nanos", nanos, "cpuNanos", cpuNanos() - cpuBegin));
        }
    }

    private static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    private static final class Writer {
        private final ExcerptAppender appender;
        private final Bytes<ByteBuffer> payload;
        private final ByteBuffer buffer;
        private final boolean bytesAtOnce;
        private final long distinct;
        private long next;

        Writer(ChronicleQueue queue, Options options) {
            int size = (int) options.number("size");
            appender = Releases.appender(queue);
            payload = Bytes.elasticByteBuffer(size, size);
            buffer = payload.underlyingObject().order(ByteOrder.LITTLE_ENDIAN);
            for (int i = 2 * Long.BYTES; i < size; i++)
                buffer.put(i, (byte) i);
            buffer.putLong(Long.BYTES, options.number("writer"));
            bytesAtOnce = options.text("loop").equals("append-bytes");
            distinct = options.number("distinct");
        }

        void append(long count) {
            for (long done = 0; done < count; done++) {
                buffer.putLong(0, next);
                payload.readPositionRemaining(0, buffer.capacity());
                if (bytesAtOnce)
                    appender.writeBytes(payload);
                else
                    appendDocument();
                next = next + 1 == distinct ? 0 : next + 1;
            }
        }

        private void appendDocument() {
            try (DocumentContext document = appender.writingDocument()) {
                document.wire().bytes().write(payload);
            }
        }
    }
}
