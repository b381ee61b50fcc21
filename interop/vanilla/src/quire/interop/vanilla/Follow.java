package quire.interop.vanilla;

import java.io.PrintStream;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ExcerptTailer;
import quire.interop.Options;
import quire.interop.ProducerPayload;
import quire.interop.Verb;

/**
 * A live tailer: prints {@code READY}, then {@code index producer counter} of each message of {@link Produce}, or
 * {@code index - -} of any other, until it has seen {@code --count} of them.
 */
final class Follow implements Verb {
    private static final long IDLE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    @Override
    public void run(Options options, PrintStream out) throws Exception {
        long count = options.number("count");
        try (Chronicle chronicle = Chronicles.open(options)) {
            ExcerptTailer tailer = chronicle.createTailer();
            out.println("READY");
            for (long seen = 0; seen < count; ) {
                if (tailer.nextIndex()) {
                    out.println(line(tailer));
                    seen++;
                } else {
                    LockSupport.parkNanos(IDLE_NANOS);
                }
            }
        }
    }

    private static String line(ExcerptTailer tailer) {
        ProducerPayload payload = ProducerPayload.decode(Chronicles.payload(tailer));
        return Long.toHexString(tailer.index()) + " " + (payload == null ? "- -"
                : Integer.toUnsignedString(payload.producer()) + " " + payload.counter());
    }
}
