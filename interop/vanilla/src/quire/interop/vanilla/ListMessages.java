package quire.interop.vanilla;

import java.io.PrintStream;
import java.util.HexFormat;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ExcerptTailer;
import quire.interop.Options;
import quire.interop.Verb;

/**
 * Prints {@code index length payload} of each message, from {@code --from INDEX} on, or of {@code --limit N}; then
 * {@code last INDEX}. After the last message the library looks for each cycle up to the present one.
 */
final class ListMessages implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        try (Chronicle chronicle = Chronicles.open(options)) {
            ExcerptTailer tailer = chronicle.createTailer();
            long limit = options.number("limit", Long.MAX_VALUE);
            boolean found = options.has("from") ? tailer.index(options.index("from")) : tailer.nextIndex();
            for (long count = 1; found; count++) {
                byte[] payload = Chronicles.payload(tailer);
                String hex = HexFormat.of().formatHex(payload);
                out.println(Long.toHexString(tailer.index()) + " " + payload.length + " " + hex);
                found = count < limit && tailer.nextIndex();
            }
            out.println("last " + Long.toHexString(chronicle.lastIndex()));
        }
    }
}
