package quire.interop;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.wire.DocumentContext;

/** The kinds of test message: each is a function of its number alone, so that another program can foretell its bytes. */
enum Messages {
    /** {@code writeText("message 7")}. */
    TEXT {
        @Override
        void append(ExcerptAppender appender, long number) {
            appender.writeText("message " + number);
        }
    },
    /** {@code writeBytes} of {@code 1 + number % 40} bytes, each the low byte of number plus its place. */
    BYTES {
        @Override
        void append(ExcerptAppender appender, long number) {
            byte[] payload = new byte[(int) (1 + number % 40)];
            for (int i = 0; i < payload.length; i++)
                payload[i] = (byte) (number + i);
            appendBytes(appender, payload);
        }
    },
    /** {@code writeMap} of number, name and half. */
    MAP {
        @Override
        void append(ExcerptAppender appender, long number) {
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("number", number);
            fields.put("name", "name " + number);
            fields.put("half", number / 2.0);
            appender.writeMap(fields);
        }
    },
    /** {@code writeMap} of one of the {@link MapCases}. */
    VALUES {
        @Override
        void append(ExcerptAppender appender, long number) {
            appender.writeMap(MapCases.numbered(number));
        }
    },
    /** {@code writeText} of number characters of one, two and three bytes and of a surrogate pair, in turn. */
    UNICODE {
        @Override
        void append(ExcerptAppender appender, long number) {
            String[] characters = {"a", "\u00e9", "\u20ac", "\ud83d\ude00"};
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < number; i++)
                text.append(characters[i % characters.length]);
            appender.writeText(text);
        }
    },
    /** A document of three fields: number, name, half. */
    DOCUMENT {
        @Override
        void append(ExcerptAppender appender, long number) {
            try (DocumentContext document = appender.writingDocument()) {
                document.wire().write("number").int64(number);
                document.wire().write("name").text("name " + number);
                document.wire().write("half").float64(number / 2.0);
            }
        }
    },
    /** A metadata document; it has no index of its own. */
    META {
        @Override
        void append(ExcerptAppender appender, long number) {
            try (DocumentContext document = appender.writingDocument(true)) {
                document.wire().write("meta").int64(number);
            }
        }
    },
    /** A document into which nothing is written. */
    EMPTY {
        @Override
        void append(ExcerptAppender appender, long number) {
            try (DocumentContext document = appender.writingDocument()) {
                document.wire();
            }
        }
    },
    /** A text that is rolled back: it leaves no message. */
    ROLLBACK {
        @Override
        void append(ExcerptAppender appender, long number) {
            try (DocumentContext document = appender.writingDocument()) {
                document.wire().getValueOut().text("rolled back " + number);
                document.rollbackOnClose();
            }
        }
    };

    abstract void append(ExcerptAppender appender, long number);

    boolean hasIndex() {
        return this != META && this != ROLLBACK;
    }

    static Messages named(String name) {
        return valueOf(name.toUpperCase(Locale.ROOT));
    }

    static void appendBytes(ExcerptAppender appender, byte[] payload) {
        appender.writeBytes(Bytes.wrapForRead(payload));
    }
}
