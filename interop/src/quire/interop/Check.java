package quire.interop;

import java.io.PrintStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.queue.TailerDirection;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueue;

/**
 * Reads the queue forward, backward and by index, and prints what it found as one JSON object. In a sound queue
 * {@code count}, {@code backward}, {@code moved}, {@code countExcerpts} and {@code entryCount} agree.
 */
final class Check implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws NoSuchAlgorithmException {
        try (SingleChronicleQueue queue = Queues.open(options)) {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            List<Long> indexes = forward(queue, digest);
            boolean empty = indexes.isEmpty();
            out.println(Json.object(
                    "count", indexes.size(),
                    "backward", backward(queue),
                    "moved", moved(queue, indexes),
                    "firstIndex", empty ? null : Long.toHexString(queue.firstIndex()),
                    "lastIndex", empty ? null : Long.toHexString(Releases.lastIndex(queue)),
                    "countExcerpts", empty ? 0 : excerptsUpTo(queue, indexes.get(indexes.size() - 1)),
                    "entryCount", queue.entryCount(),
                    "sha256", HexFormat.of().formatHex(digest.digest())));
        }
    }

    private static List<Long> forward(ChronicleQueue queue, MessageDigest digest) {
        List<Long> indexes = new ArrayList<>();
        ExcerptTailer tailer = queue.createTailer();
        Excerpt excerpt;
        while ((excerpt = Excerpt.read(tailer, false)) != null) {
            indexes.add(excerpt.index());
            digest.update(excerpt.payload());
        }
        return indexes;
    }

    private static long backward(ChronicleQueue queue) {
        ExcerptTailer tailer = queue.createTailer().direction(TailerDirection.BACKWARD).toEnd();
        long count = 0;
        while (Excerpt.read(tailer, false) != null)
            count++;
        return count;
    }

    /** How many indexes lead to the message that carries them. */
    private static long moved(ChronicleQueue queue, List<Long> indexes) {
        ExcerptTailer tailer = queue.createTailer();
        return indexes.stream().filter(index -> leadsTo(tailer, index)).count();
    }

    private static boolean leadsTo(ExcerptTailer tailer, long index) {
        if (!tailer.moveToIndex(index))
            return false;
        Excerpt excerpt = Excerpt.read(tailer, false);
        return excerpt != null && excerpt.index() == index;
    }

    /** {@code countExcerpts} leaves out its upper bound. */
    private static long excerptsUpTo(SingleChronicleQueue queue, long lastIndex) {
        return queue.countExcerpts(queue.firstIndex(), lastIndex) + 1;
    }
}
