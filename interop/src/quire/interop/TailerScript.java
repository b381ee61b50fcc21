package quire.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.function.BiConsumer;

import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.queue.TailerDirection;

/**
 * Reads one command a line from stdin and answers each with one line. The tailer is named by {@code --name}, the
 * clock stands at {@code --start} (without it: at the present) until {@code advance}.
 *
 * <pre>
 *   toStart | toEnd                     ok
 *   read | readMeta                     index length payload [meta], or null
 *   moveToIndex HEX                     true or false
 *   direction F|B|N                     ok
 *   index | firstIndex | lastIndex      HEX
 *   state                               the tailer's state
 *   striding true|false                 ok
 *   appendText TEXT                     HEX of its index
 *   echoText | echoMap                  what is read appended again: HEX of its index, or null
 *   advance MILLISECONDS                ok
 *   reopen                              ok; a new tailer of the same name
 * </pre>
 *
 * A command that throws answers {@code ! exception-class message}.
 */
final class TailerScript implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws IOException {
        ManualClock clock = new ManualClock(options.number("start", System.currentTimeMillis()));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (ChronicleQueue queue = Queues.open(options, clock)) {
            Session session = new Session(queue, clock, options.text("name", null));
            String command;
            while ((command = commands.readLine()) != null)
                if (!command.isBlank())
                    out.println(session.answer(command));
        }
    }

    private static final class Session {
        private final ChronicleQueue queue;
        private final ManualClock clock;
        private final String name;
        private ExcerptTailer tailer;
        private ExcerptAppender appender;

        Session(ChronicleQueue queue, ManualClock clock, String name) {
            this.queue = queue;
            this.clock = clock;
            this.name = name;
            this.tailer = newTailer();
        }

        String answer(String line) {
            String[] words = line.strip().split(" ", 2);
            try {
                return execute(words[0], words.length > 1 ? words[1] : "");
            } catch (Exception e) {
                return "! " + e.getClass().getSimpleName() + " " + String.valueOf(e.getMessage()).replace('\n', ' ');
            }
        }

        private String execute(String command, String argument) {
            return switch (command) {
                case "toStart" -> ok(tailer.toStart());
                case "toEnd" -> ok(tailer.toEnd());
                case "read" -> line(Excerpt.read(tailer, false));
                case "readMeta" -> line(Excerpt.read(tailer, true));
                case "moveToIndex" -> String.valueOf(tailer.moveToIndex(Long.parseUnsignedLong(argument, 16)));
                case "direction" -> ok(tailer.direction(direction(argument)));
                case "index" -> Long.toHexString(tailer.index());
                case "firstIndex" -> Long.toHexString(queue.firstIndex());
                case "lastIndex" -> Long.toHexString(Releases.lastIndex(queue));
                case "striding" -> ok(tailer.striding(Boolean.parseBoolean(argument)));
                case "state" -> tailer.state().name();
                case "appendText" -> appendText(argument);
                case "echoText" -> echo(tailer.readText(), ExcerptAppender::writeText);
                case "echoMap" -> echo(tailer.readMap(), ExcerptAppender::writeMap);
                case "advance" -> advance(Long.parseLong(argument));
                case "reopen" -> reopen();
                default -> throw new IllegalArgumentException("unknown command: " + command);
            };
        }

        private ExcerptTailer newTailer() {
            return name == null ? queue.createTailer() : queue.createTailer(name);
        }

        private String reopen() {
            tailer.close();
            return ok(tailer = newTailer());
        }

        private String appendText(String text) {
            return echo(text, ExcerptAppender::writeText);
        }

        private <T> String echo(T value, BiConsumer<ExcerptAppender, T> write) {
            if (value == null)
                return "null";
            if (appender == null)
                appender = Releases.appender(queue);
            write.accept(appender, value);
            return Long.toHexString(appender.lastIndexAppended());
        }

        private String advance(long millis) {
            clock.advance(millis);
            return "ok";
        }

        private static String ok(ExcerptTailer ignored) {
            return "ok";
        }

        private static String line(Excerpt excerpt) {
            return excerpt == null ? "null" : excerpt.line();
        }

        private static TailerDirection direction(String letter) {
            return switch (letter) {
                case "F" -> TailerDirection.FORWARD;
                case "B" -> TailerDirection.BACKWARD;
                case "N" -> TailerDirection.NONE;
                default -> throw new IllegalArgumentException("not a direction: " + letter);
            };
        }
    }
}
