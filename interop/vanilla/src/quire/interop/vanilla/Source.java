package quire.interop.vanilla;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.concurrent.TimeUnit;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ChronicleQueueBuilder;
import net.openhft.chronicle.ExcerptAppender;
import quire.interop.Options;
import quire.interop.Verb;

/**
 * A source of replication on a free port of 127.0.0.1, or {@code --port}: prints {@code LISTENING port}, then appends each
 * payload that stdin brings, in hexadecimal, and prints its index, until stdin ends. {@code MS HEX} puts it into the
 * cycle of that instant. {@code --heartbeat-ms N}. With {@code --connect}, it connects to a sink that listens at
 * {@code --port}, and prints {@code CONNECTING}.
 */
final class Source implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Chronicle copied = Chronicles.open(options);
        boolean connects = options.flag("connect");
        if (connects)
            out.println("CONNECTING");
        int port = (int) options.number("port", 0);
        var builder = ChronicleQueueBuilder.source(copied);
        try (Chronicle source = (connects
                ? builder.connectAddress("127.0.0.1", port) : builder.bindAddress("127.0.0.1", port))
                .heartbeatInterval(options.number("heartbeat-ms", 2500), TimeUnit.MILLISECONDS)
                .connectionListener(new Announcing(out))
                .build()) {
            ExcerptAppender present = source.createAppender();
            ExcerptAppender any = copied.createAppender();
            String line;
            while ((line = lines.readLine()) != null) {
                String[] words = line.split(" ");
                byte[] payload = HexFormat.of().parseHex(words[words.length - 1]);
                long index = words.length == 1 ? Chronicles.append(present, payload)
                        : Chronicles.append(any, payload, Chronicles.cycleNumber(options, Long.parseLong(words[0])));
                out.println(Long.toHexString(index));
            }
        }
    }
}
