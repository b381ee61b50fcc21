package quire.interop;

import java.io.PrintStream;
import java.util.HexFormat;
import java.util.Locale;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.bytes.util.Compressions;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.wire.DocumentContext;
import net.openhft.chronicle.wire.ValueIn;

/**
 * With {@code --codec NAME}, appends a message of one value that holds the bytes of {@code --hex}, compressed; else
 * prints in hexadecimal what each message's value decompresses to.
 */
final class Compressed implements Verb {
    @Override
    public void run(Options options, PrintStream out) {
        ManualClock clock = new ManualClock(options.number("start", System.currentTimeMillis()));
        try (ChronicleQueue queue = Queues.open(options, clock)) {
            if (options.has("codec"))
                write(queue, options.text("codec"), HexFormat.of().parseHex(options.text("hex")));
            else
                list(queue.createTailer(), out);
        }
    }

    private static void write(ChronicleQueue queue, String codec, byte[] bytes) {
        ExcerptAppender appender = Releases.appender(queue);
        try (DocumentContext document = appender.writingDocument()) {
            document.wire().getValueOut().compress(codec, Bytes.wrapForRead(bytes));
        }
    }

    private static void list(ExcerptTailer tailer, PrintStream out) {
        while (true) {
            try (DocumentContext document = tailer.readingDocument()) {
                if (!document.isPresent())
                    return;
                ValueIn value = document.wire().getValueIn();
                StringBuilder codec = new StringBuilder();
                value.typePrefix(codec, StringBuilder::append);
                byte[] bytes = Compressions.valueOf(codec.toString().toUpperCase(Locale.ROOT))
                        .uncompress(value.bytes());
                out.println(HexFormat.of().formatHex(bytes));
            }
        }
    }
}
