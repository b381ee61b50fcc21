package quire.interop;

import java.io.PrintStream;

import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueue;

/**
 * Opens a queue with the given options, appends {@code --text} if there is one, and prints as JSON what the library
 * made of the options, or the exception it threw. The exit code is 0 in both cases.
 */
final class Open implements Verb {
    @Override
    public void run(Options options, PrintStream out) {
        String text = options.text("text", null);
        ManualClock clock = new ManualClock(options.number("start", System.currentTimeMillis()));
        try (SingleChronicleQueue queue = Queues.open(options, clock)) {
            String index = text == null ? null : append(queue, text);
            out.println(Json.object(
                    "ok", true,
                    "rollCycle", queue.rollCycle(),
                    "indexCount", queue.indexCount(),
                    "indexSpacing", queue.indexSpacing(),
                    "blockSize", queue.blockSize(),
                    "sourceId", queue.sourceId(),
                    "index", index));
        } catch (Options.UsageException e) {
            throw e;
        } catch (Throwable e) {
            out.println(Json.object("ok", false, "exception", e.getClass().getName(), "message", e.getMessage(),
                    "cause", e.getCause() == null ? null : e.getCause().toString()));
        }
    }

    private static String append(SingleChronicleQueue queue, String text) {
        ExcerptAppender appender = Releases.appender(queue);
        appender.writeText(text);
        return Long.toHexString(appender.lastIndexAppended());
    }
}
