package quire.interop.vanilla;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ChronicleQueueBuilder;
import net.openhft.chronicle.ExcerptAppender;
import net.openhft.chronicle.ExcerptTailer;
import quire.interop.Options;

/**
 * The Indexed Chronicle of the same family: {@code --path PATH} names {@code PATH.index} and {@code PATH.data}, of
 * {@code --index-block} and {@code --data-block} bytes.
 */
final class Indexed {
    private static final int SMALLEST_BLOCK = 4096;

    private Indexed() {
    }

    /** Appends each payload of stdin, in hexadecimal, and prints its index. */
    static void write(Options options, PrintStream out) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Chronicle chronicle = open(options)) {
            ExcerptAppender appender = chronicle.createAppender();
            String line;
            while ((line = lines.readLine()) != null)
                out.println(Chronicles.append(appender, HexFormat.of().parseHex(line)));
        }
    }

    /** Prints {@code index length payload}, or {@code index padding}; then {@code last INDEX}. */
    static void list(Options options, PrintStream out) throws Exception {
        try (Chronicle chronicle = open(options)) {
            ExcerptTailer tailer = chronicle.createTailer();
            long last = chronicle.lastIndex();
            for (long index = 0; index <= last; index++) {
                if (tailer.index(index))
                    out.println(index + " " + tailer.limit() + " " + HexFormat.of().formatHex(payload(tailer)));
                else if (tailer.wasPadding())
                    out.println(index + " padding");
                else
                    throw new IllegalStateException("nothing at an index before the last: index=" + index);
            }
            out.println("last " + last);
        }
    }

    private static byte[] payload(ExcerptTailer tailer) {
        byte[] payload = new byte[Math.toIntExact(tailer.limit())];
        tailer.readFully(payload);
        return payload;
    }

    private static Chronicle open(Options options) throws IOException {
        return ChronicleQueueBuilder.indexed(options.text("path"))
                .indexBlockSize((int) options.number("index-block", SMALLEST_BLOCK))
                .dataBlockSize((int) options.number("data-block", SMALLEST_BLOCK))
                .build();
    }
}
