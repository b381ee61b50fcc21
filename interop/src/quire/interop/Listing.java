package quire.interop;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueue;

/**
 * Writes what a tailer of this release delivers from {@code --dir} into that directory: {@code list.jsonl} holds the
 * messages, {@code list-meta.jsonl} the metadata documents too. The first line of each describes the queue. A long
 * payload is given by its digest and its first 64 bytes.
 */
final class Listing implements Verb {
    private static final int LONGEST_IN_FULL = 4096;
    private static final int SHOWN_OF_LONGER = 64;

    @Override
    public void run(Options options, PrintStream out) throws IOException {
        out.println(write(Path.of(options.text("dir"))));
    }

    /** Returns the number of messages. */
    static int write(Path directory) throws IOException {
        List<String> messages;
        List<String> documents;
        try (SingleChronicleQueue queue = Queues.open(readOnly(directory))) {
            messages = lines(queue, directory, false);
            documents = lines(queue, directory, true);
        }
        Files.write(directory.resolve("list.jsonl"), messages);
        Files.write(directory.resolve("list-meta.jsonl"), documents);
        return messages.size() - 1;
    }

    /** The listing leaves the files alone. */
    private static Options readOnly(Path directory) {
        return new Options("--dir", directory.toString(), "--read-only");
    }

    private static List<String> lines(SingleChronicleQueue queue, Path directory, boolean withMeta) {
        List<String> lines = new ArrayList<>(List.of(description(queue, directory)));
        ExcerptTailer tailer = queue.createTailer();
        Excerpt excerpt;
        while ((excerpt = Excerpt.read(tailer, withMeta)) != null)
            lines.add(line(excerpt));
        return lines;
    }

    private static String description(SingleChronicleQueue queue, Path directory) {
        return Json.object(
                "queue", directory.getFileName(),
                "rollCycle", queue.rollCycle(),
                "indexCount", queue.indexCount(),
                "indexSpacing", queue.indexSpacing(),
                "firstIndex", Long.toHexString(queue.firstIndex()),
                "lastIndex", Long.toHexString(Releases.lastIndex(queue)),
                "sourceId", queue.sourceId());
    }

    private static String line(Excerpt excerpt) {
        List<Object> fields = new ArrayList<>(List.of("index", excerpt.indexHex()));
        if (excerpt.meta())
            fields.addAll(List.of("meta", true));
        fields.addAll(List.of("len", excerpt.payload().length));
        if (excerpt.payload().length <= LONGEST_IN_FULL)
            fields.addAll(List.of("hex", excerpt.payloadHex()));
        else
            fields.addAll(List.of("sha256", sha256(excerpt.payload()), "hex64", HexFormat.of()
                    .formatHex(Arrays.copyOf(excerpt.payload(), SHOWN_OF_LONGER))));
        return Json.object(fields.toArray());
    }

    private static String sha256(byte[] payload) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(payload));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}
