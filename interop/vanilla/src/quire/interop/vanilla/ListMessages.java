package quire.interop.vanilla;

import java.io.PrintStream;
import java.util.HexFormat;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ExcerptTailer;
import quire.interop.Options;
import quire.interop.Verb;

/** Prints {@code index length payload} of each message, from {@code --from INDEX} on; then {@code last INDEX}. */
final class ListMessages implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        try (Chronicle chronicle = Chronicles.open(options)) {
            ExcerptTailer tailer = chronicle.createTailer();
            boolean found = options.has("from") ? tailer.index(options.index("from")) : tailer.nextIndex();
            for (; found; found = tailer.nextIndex()) {
                byte[] payload = Chronicles.payload(tailer);
                String hex = HexFormat.of().formatHex(payload);
                out.println(Long.toHexString(tailer.index()) + " " + payload.length + " " + hex);
            }
            out.println("last " + Long.toHexString(chronicle.lastIndex()));
        }
    }
}
