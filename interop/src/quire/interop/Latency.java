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
 * goes to {@code --out}, two little-endian i64 each. The answer has the page faults of its thread, without those of the
 * first {@code --warm-up} messages; with {@code --micro-touch} it calls {@code microTouch} after each append.
 * {@code --role tail} reads without a pause until it has them all and
 * writes number, due and the time it had the message to {@code --out}, three little-endian i64 each. It prints READY
 * when it looks for the first message. In both roles how many nanoseconds the thread was ready to run but had no CPU,
 * without those of the warm-up, goes to the file {@code OUT-delay}, where the system says.
 */
final class Latency implements Verb {
    private static final long START = 1_700_000_000_000L;
    private static final int STAMPS = 2 * Long.BYTES;
    private static final Path STAT = Path.of("/proc/thread-self/stat");
    private static final Path SCHEDULED = Path.of("/proc/thread-self/schedstat");
    private static final int MINOR_FAULTS = 7;
    private static final int MAJOR_FAULTS = 9;

    @Override
    public void run(Options options, PrintStream out) throws IOException {
        int count = (int) options.number("count");
        int size = (int) options.number("size", 96);
        String role = options.text("role");
        long faults = 0;
        try (ChronicleQueue queue = Queues.open(options, new ManualClock(START))) {
            switch (role) {
                case "produce" -> faults = produce(queue, count, size, options);
                case "tail" -> write(options, tail(queue, count, options, out));
                default -> throw new Options.UsageException("no such role: " + role);
            }
        }
        out.println(Json.object("role", role, "count", count, "faults", faults));
    }

    private static void write(Options options, ByteBuffer records) throws IOException {
        Files.write(Path.of(options.text("out")), records.array());
    }

    private static long produce(ChronicleQueue queue, int count, int size, Options options) throws IOException {
        ExcerptAppender appender = Releases.appender(queue);
        Runnable touch = options.flag("micro-touch") ? Releases.microTouch(appender) : () -> { };
        long rate = options.number("rate");
        long warmUp = options.number("warm-up", 0);
        long faultsBefore = 0;
        long delayBefore = 0;
        Bytes<ByteBuffer> payload = Bytes.elasticByteBuffer(size, size);
        ByteBuffer buffer = payload.underlyingObject().order(ByteOrder.LITTLE_ENDIAN);
        ByteBuffer appends = ByteBuffer.allocate(2 * count * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        long first = System.nanoTime();
        for (int number = 0; number < count; number++) {
            if (number == warmUp) {
                faultsBefore = faults();
                delayBefore = runDelay();
                first = System.nanoTime() - number * 1_000_000_000L / rate;
            }
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
            touch.run();
        }
        long faults = faults() - faultsBefore;
        writeRunDelay(options, delayBefore);
        write(options, appends);
        return faults;
    }

    /** Of this thread, minor and major; 0 where the system does not say. */
    private static long faults() throws IOException {
        if (!Files.exists(STAT))
            return 0;
        String stat = Files.readString(STAT);
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return Long.parseLong(fields[MINOR_FAULTS]) + Long.parseLong(fields[MAJOR_FAULTS]);
    }

    /** How many nanoseconds this thread was ready to run but had no CPU. */
    private static long runDelay() throws IOException {
        return Files.exists(SCHEDULED) ? Long.parseLong(Files.readString(SCHEDULED).split(" ")[1]) : 0;
    }

    private static void writeRunDelay(Options options, long before) throws IOException {
        if (Files.exists(SCHEDULED))
            Files.writeString(Path.of(options.text("out") + "-delay"), Long.toString(runDelay() - before));
    }

    private static ByteBuffer tail(ChronicleQueue queue, int count, Options options, PrintStream out)
            throws IOException {
        ByteBuffer records = ByteBuffer.allocate(count * (STAMPS + Long.BYTES)).order(ByteOrder.LITTLE_ENDIAN);
        Bytes<ByteBuffer> payload = Bytes.elasticByteBuffer();
        ExcerptTailer tailer = queue.createTailer();
        int warmUp = (int) options.number("warm-up", 0) * (STAMPS + Long.BYTES);
        long delayBefore = -1;
        out.println("READY");
        while (records.hasRemaining()) {
            if (records.position() == warmUp && delayBefore < 0)
                delayBefore = runDelay();
            try (DocumentContext document = tailer.readingDocument()) {
                if (!document.isPresent())
                    continue;
                payload.clear();
                payload.write(document.wire().bytes());
            }
            long had = System.nanoTime();
            records.putLong(payload.readLong(0)).putLong(payload.readLong(8)).putLong(had);
        }
        writeRunDelay(options, delayBefore);
        return records;
    }
}
