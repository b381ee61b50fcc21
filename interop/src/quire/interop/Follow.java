package quire.interop;

import java.io.PrintStream;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptTailer;

/**
 * A live tailer: prints {@code index producer counter} of each message of {@link Produce}, or {@code index - -} for any
 * other, until {@code --count} were seen or {@code --limit-ms} have passed; then {@code DONE seen}. Starts at the
 * beginning, {@code --from-end}, {@code --from INDEX}, or where the tailer of that {@code --name} stopped.
 */
final class Follow implements Verb {
    private static final long IDLE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    @Override
    public void run(Options options, PrintStream out) {
        long count = options.number("count", Long.MAX_VALUE);
        try (ChronicleQueue queue = Queues.open(options)) {
            ExcerptTailer tailer = positioned(queue, options);
            out.println("READY");
            long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(options.number("limit-ms", 60_000));
            long seen = 0;
            while (seen < count && System.nanoTime() < deadline) {
                Excerpt excerpt = Excerpt.read(tailer, false);
                if (excerpt == null) {
                    LockSupport.parkNanos(IDLE_NANOS);
                    continue;
                }
                out.println(line(excerpt));
                seen++;
            }
            out.println("DONE " + seen);
        }
    }

    private static ExcerptTailer positioned(ChronicleQueue queue, Options options) {
        ExcerptTailer tailer = options.has("name")
                ? queue.createTailer(options.text("name")) : queue.createTailer();
        if (options.flag("from-end"))
            tailer.toEnd();
        if (options.has("from"))
            tailer.moveToIndex(options.index("from"));
        return tailer;
    }

    private static String line(Excerpt excerpt) {
        ProducerPayload payload = ProducerPayload.decode(excerpt.payload());
        return excerpt.indexHex() + (payload == null ? " - -"
                : " " + Integer.toUnsignedString(payload.producer()) + " " + payload.counter());
    }
}
