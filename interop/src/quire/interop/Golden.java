package quire.interop;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * Writes the fixture queues of {@link GoldenCases} under {@code --dir}, each with its {@link Listing} and its files cut
 * by {@link Trim}. {@code --roll-cycles XLARGE_DAILY,HUGE_DAILY} writes one queue for each of these instead. Prints the
 * name and the message count of each.
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
            out.println(each.getKey() + " " + Listing.write(directory));
            Trim.directory(directory);
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
}
