package quire.interop;

import java.util.HexFormat;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.wire.DocumentContext;

/** A document as it lies in the file. */
record Excerpt(long index, boolean meta, byte[] payload) {

    /** The next document, or null when there is none yet. */
    static Excerpt read(ExcerptTailer tailer, boolean withMeta) {
        try (DocumentContext document = tailer.readingDocument(withMeta)) {
            if (!document.isPresent())
                return null;
            Bytes<?> bytes = document.wire().bytes();
            byte[] payload = new byte[Math.toIntExact(bytes.readRemaining())];
            bytes.read(payload);
            return new Excerpt(document.index(), document.isMetaData(), payload);
        }
    }

    String indexHex() {
        return Long.toHexString(index);
    }

    String payloadHex() {
        return HexFormat.of().formatHex(payload);
    }

    /** {@code index length payload}, then {@code meta} if it is metadata. */
    String line() {
        return indexHex() + " " + payload.length + " " + payloadHex() + (meta ? " meta" : "");
    }
}
