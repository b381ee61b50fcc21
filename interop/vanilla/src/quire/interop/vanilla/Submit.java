package quire.interop.vanilla;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ChronicleQueueBuilder;
import net.openhft.chronicle.ExcerptAppender;
import quire.interop.Options;
import quire.interop.Verb;

/**
 * Has the source on 127.0.0.1 at {@code --port} append each payload of stdin, in hexadecimal. Prints {@code READY}, then
 * a line for each: with {@code --ack} the index that the source gave it, which is waited for.
 */
final class Submit implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        var payloads = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Chronicle chronicle = ChronicleQueueBuilder.remoteAppender()
                .connectAddress("127.0.0.1", (int) options.number("port"))
                .appendRequireAck(options.flag("ack"))
                .build()) {
            ExcerptAppender appender = chronicle.createAppender();
            out.println("READY");
            String line;
            while ((line = payloads.readLine()) != null) {
                byte[] payload = HexFormat.of().parseHex(line);
                appender.startExcerpt(payload.length);
                appender.write(payload);
                appender.finish();
                out.println(Long.toHexString(appender.lastWrittenIndex()));
            }
        }
    }
}
