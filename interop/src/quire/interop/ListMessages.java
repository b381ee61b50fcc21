package quire.interop;

import java.io.PrintStream;
import java.util.Locale;

import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.queue.TailerDirection;

/**
 * Prints every message as {@code index length payload}, all but the length in hexadecimal; {@code --meta} includes
 * metadata documents, marked by a fourth word. {@code --from INDEX}, {@code --limit N}, {@code --direction backward}.
 */
final class ListMessages implements Verb {
    @Override
    public void run(Options options, PrintStream out) {
        boolean withMeta = options.flag("meta");
        long limit = options.number("limit", Long.MAX_VALUE);
        try (ChronicleQueue queue = Queues.open(options)) {
            ExcerptTailer tailer = positioned(queue, options);
            Excerpt excerpt;
            for (long n = 0; n < limit && (excerpt = Excerpt.read(tailer, withMeta)) != null; n++)
                out.println(excerpt.line());
        }
    }

    private static ExcerptTailer positioned(ChronicleQueue queue, Options options) {
        String direction = options.text("direction", "forward").toUpperCase(Locale.ROOT);
        ExcerptTailer tailer = queue.createTailer().direction(TailerDirection.valueOf(direction));
        if (options.has("from")) {
            if (!tailer.moveToIndex(options.index("from")))
                throw new IllegalArgumentException("no message there: index=" + options.text("from"));
        } else if (tailer.direction() == TailerDirection.BACKWARD) {
            tailer.toEnd();
        }
        return tailer;
    }
}
