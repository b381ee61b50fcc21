package quire.interop.vanilla;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ExcerptAppender;
import quire.interop.Options;
import quire.interop.Verb;

/** Appends a message for each line of stdin, {@code type=value type=value ...}, and prints its index. */
final class WriteFields implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Chronicle chronicle = Chronicles.open(options)) {
            ExcerptAppender appender = chronicle.createAppender();
            String line;
            while ((line = lines.readLine()) != null) {
                appender.startExcerpt();
                for (String field : line.split(" ")) {
                    String[] typed = field.split("=", 2);
                    Fields.of(typed[0]).writer().accept(appender, typed[1]);
                }
                appender.finish();
                out.println(Long.toHexString(appender.lastWrittenIndex()));
            }
        }
    }
}
