package quire.interop.vanilla;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ExcerptAppender;
import quire.interop.Options;
import quire.interop.Verb;

/**
 * A source of replication on a free port of 127.0.0.1, or {@code --port}: prints {@code LISTENING port}, then appends each
 * payload that stdin brings, in hexadecimal, and prints its index, until stdin ends. {@code MS HEX} puts it into the
 * cycle of that instant. {@code --heartbeat-ms N}.
 */
final class Source implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Chronicle chronicle = Chronicles.builder(options).source()
                .bindAddress("127.0.0.1", (int) options.number("port", 0))
                .heartbeatInterval(options.number("heartbeat-ms", 2500), java.util.concurrent.TimeUnit.MILLISECONDS)
                .connectionListener(new Announcing(out))
                .build()) {
            ExcerptAppender appender = chronicle.createAppender();
            String line;
            while ((line = lines.readLine()) != null) {
                String[] words = line.split(" ");
                long at = words.length > 1 ? Long.parseLong(words[0]) : System.currentTimeMillis();
                byte[] payload = HexFormat.of().parseHex(words[words.length - 1]);
                long index = Chronicles.append(appender, payload, Chronicles.cycleNumber(options, at));
                out.println(Long.toHexString(index));
            }
        }
    }
}
