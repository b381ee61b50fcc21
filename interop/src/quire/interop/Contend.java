package quire.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.locks.LockSupport;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.wire.DocumentContext;

/**
 * One of several writers that append to a queue at the same time. It appends {@code --warm-up} messages, prints READY,
 * reads from stdin at which {@link System#nanoTime()} to begin, appends for {@code --duration-ms}, and prints how many
 * it appended. With {@code --rate} it appends so many a second, each document in pieces of 64 bytes, and what each took
 * goes to {@code --out}, in nanoseconds as little-endian i64. A payload is its number as i64 (0 to {@code --distinct} - 1, in turn), {@code --writer} as i64 and, up to
 * the size, each byte's place.
 */
final class Contend implements Verb {
    private static final long START = 1_700_000_000_000L;
    private static final int BETWEEN_LOOKS = 10;
    private static final int PIECE = 64;

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
            if (options.has("rate")) {
                count = writer.appendPaced(durationNanos, options);
            } else {
                while (System.nanoTime() - begin < durationNanos) {
                    writer.append(BETWEEN_LOOKS);
                    count += BETWEEN_LOOKS;
                }
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

        long appendPaced(long durationNanos, Options options) throws IOException {
            long rate = options.number("rate");
            int count = (int) (durationNanos * rate / 1_000_000_000L);
            ByteBuffer took = ByteBuffer.allocate(count * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
            long first = System.nanoTime();
            for (int number = 0; number < count; number++) {
                long due = first + number * 1_000_000_000L / rate;
                long begin;
                do {
                    begin = System.nanoTime();
                } while (begin < due);
                buffer.putLong(0, next);
                try (DocumentContext document = appender.writingDocument()) {
                    for (int place = 0; place < buffer.capacity(); place += PIECE) {
                        payload.readPositionRemaining(place, Math.min(PIECE, buffer.capacity() - place));
                        document.wire().bytes().write(payload);
                    }
                }
                took.putLong(System.nanoTime() - begin);
                next = next + 1 == distinct ? 0 : next + 1;
            }
            Files.write(Path.of(options.text("out")), took.array());
            return count;
        }

        private void appendDocument() {
            try (DocumentContext document = appender.writingDocument()) {
                document.wire().bytes().write(payload);
            }
        }
    }
}
