package quire.interop;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptTailer;

/**
 * Writes the fixture queues of {@link GoldenCases} under {@code --dir}, each with a {@code list.jsonl} of its messages
 * and its files cut by {@link Trim}. {@code --roll-cycles XLARGE_DAILY,HUGE_DAILY} writes one queue for each of these
 * instead. Prints the name and the message count of each.
 */
final class Golden implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws IOException {
        Path root = Path.of(options.text("dir"));
        for (var each : chosen(options).entrySet()) {
            Path directory = root.resolve(each.getKey());
            if (Files.exists(directory))
                throw new IllegalStateException("exists already: " + directory);
            each.getValue().writeTo(directory);
            List<String> listing = listing(directory);
            Trim.directory(directory);
            Files.write(directory.resolve("list.jsonl"), listing);
            out.println(each.getKey() + " " + listing.size());
        }
    }

    private static Map<String, GoldenCases.Case> chosen(Options options) {
        if (!options.has("roll-cycles"))
            return new GoldenCases().all();
        Map<String, GoldenCases.Case> cases = new LinkedHashMap<>();
        for (String rollCycle : options.text("roll-cycles").split(","))
            cases.put(rollCycle.toLowerCase(Locale.ROOT), GoldenCases.ofRollCycle(rollCycle));
        return cases;
    }

    private static List<String> listing(Path directory) {
        List<String> lines = new ArrayList<>();
        try (ChronicleQueue queue = Queues.open(new Options("--dir", directory.toString()))) {
            ExcerptTailer tailer = queue.createTailer();
            Excerpt excerpt;
            while ((excerpt = Excerpt.read(tailer, false)) != null)
                lines.add(Json.object("index", excerpt.indexHex(),
                        "len", excerpt.payload().length, "hex", excerpt.payloadHex()));
        }
        return lines;
    }
}
