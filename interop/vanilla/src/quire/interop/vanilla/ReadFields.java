package quire.interop.vanilla;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ExcerptTailer;
import quire.interop.Json;
import quire.interop.Options;
import quire.interop.Verb;

/** For each line of stdin, {@code type type ...}, the fields of the next message; what is left of it in bytes. JSON. */
final class ReadFields implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Chronicle chronicle = Chronicles.open(options)) {
            ExcerptTailer tailer = chronicle.createTailer();
            String line;
            while ((line = lines.readLine()) != null) {
                if (!tailer.nextIndex())
                    throw new IllegalStateException("the queue ended early: line=" + line);
                List<Object> values = new ArrayList<>();
                for (String type : line.split(" "))
                    values.add(Fields.of(type).reader().apply(tailer));
                out.println(Json.object("values", values, "left", tailer.remaining()));
            }
        }
    }
}
