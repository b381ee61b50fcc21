package quire.interop.vanilla;

import java.io.PrintStream;
import java.util.HexFormat;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ExcerptTailer;
import quire.interop.Options;
import quire.interop.Verb;

/**
 * A sink of the source on 127.0.0.1 at {@code --port}: prints {@code READY}, then {@code index length payload} of each
 * message of its own copy, in {@code --dir}, until it has seen {@code --count} of them. With {@code --bind}, it listens
 * at {@code --port} for the source to connect.
 */
final class Sink implements Verb {
    private static final int SPINS = 1000; // without it a read blocks until something comes

    @Override
    public void run(Options options, PrintStream out) throws Exception {
        long count = options.number("count");
        int port = (int) options.number("port");
        var builder = Chronicles.builder(options).sink();
        try (Chronicle sink = (options.flag("bind")
                ? builder.bindAddress("127.0.0.1", port) : builder.connectAddress("127.0.0.1", port))
                .readSpinCount(SPINS)
                .build()) {
            ExcerptTailer tailer = sink.createTailer();
            out.println("READY");
            for (long seen = 0; seen < count; ) {
                if (!tailer.nextIndex())
                    continue;
                byte[] payload = Chronicles.payload(tailer);
                out.println(Long.toHexString(tailer.index()) + " " + payload.length + " "
                        + HexFormat.of().formatHex(payload));
                seen++;
            }
        }
    }
}
