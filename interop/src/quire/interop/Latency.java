package quire.interop;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.wire.DocumentContext;

/**
 * One half of a latency measurement between two processes. {@code --role produce} appends {@code --count} messages of
 * {@code --size} bytes, {@code --rate} a second, and never sleeps; a message holds its number and when it was due, as
 * i64 of {@link System#nanoTime()}, which is the same clock in every process; when each append began and what it took
 * goes to {@code --out}, two little-endian i64 each. {@code --role tail} reads without a pause until it has them all and
 * writes number, due and the time it had the message to {@code --out}, three little-endian i64 each. It prints READY
 * when it looks for the first message.
 */
final class Latency implements Verb {
    private static final long START = 1_700_000_000_000L;
    private static final int STAMPS = 2 * Long.BYTES;

    @Override
    public void run(Options options, PrintStream out) throws IOException {
        int count = (int) options.number("count");
        int size = (int) options.number("size", 96);
        String role = options.text("role");
        try (ChronicleQueue queue = Queues.open(options, new ManualClock(START))) {
            switch (role) {
                case "produce" -> write(options, produce(queue, count, size, options.number("rate")));
                case "tail" -> write(options, tail(queue, count, out));
                default -> throw new Options.UsageException("no such role: " + role);
            }
        }
        out.println(Json.object("role", role, "count", count));
    }

    private static void write(Options options, ByteBuffer records) throws IOException {
        Files.write(Path.of(options.text("out")), records.array());
    }

    private static ByteBuffer produce(ChronicleQueue queue, int count, int size, long rate) {
        ExcerptAppender appender = Releases.appender(queue);
        Bytes<ByteBuffer> payload = Bytes.elasticByteBuffer(size, size);
        ByteBuffer buffer = payload.underlyingObject().order(ByteOrder.LITTLE_ENDIAN);
        ByteBuffer appends = ByteBuffer.allocate(2 * count * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        long first = System.nanoTime();
        for (int number = 0; number < count; number++) {
            long due = first + number * 1_000_000_000L / rate;
            buffer.putLong(0, number).putLong(8, due);
            payload.readPositionRemaining(0, size);
            long begin;
            do {
                begin = System.nanoTime();
            } while (begin < due);
            try (DocumentContext document = appender.writingDocument()) {
                document.wire().bytes().write(payload);
            }
            appends.putLong(begin).putLong(System.nanoTime() - begin);
        }
        return appends;
    }

    private static ByteBuffer tail(ChronicleQueue queue, int count, PrintStream out) {
        ByteBuffer records = ByteBuffer.allocate(count * (STAMPS + Long.BYTES)).order(ByteOrder.LITTLE_ENDIAN);
        Bytes<ByteBuffer> payload = Bytes.elasticByteBuffer();
        ExcerptTailer tailer = queue.createTailer();
        out.println("READY");
        while (records.hasRemaining()) {
            try (DocumentContext document = tailer.readingDocument()) {
                if (!document.isPresent())
                    continue;
                payload.clear();
                payload.write(document.wire().bytes());
            }
            long had = System.nanoTime();
            records.putLong(payload.readLong(0)).putLong(payload.readLong(8)).putLong(had);
        }
        return records;
    }
}
