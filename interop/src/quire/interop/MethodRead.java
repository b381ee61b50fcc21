package quire.interop;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;

import net.openhft.chronicle.bytes.MethodReader;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.wire.MessageHistory;

/**
 * Reads every document of a queue by a method reader of {@link ProbeCallTypes.Market}, and prints a JSON object for
 * each: the index, the calls, and the history that a handler sees, as pairs of source and index, and timings.
 * {@code --forward-to} DIR hands each call to the method writer of that queue, whose source is {@code --forward-source-id};
 * with {@code --resume} only what is not in there yet. {@code --count} ends it earlier.
 */
final class MethodRead implements Verb {
    @Override
    public void run(Options options, PrintStream out) {
        ProbeTypes.addAliases();
        try (ChronicleQueue queue = Queues.open(options); ChronicleQueue forward = forward(options)) {
            Object next = forward == null ? null
                    : Releases.appender(forward).methodWriter(ProbeCallTypes.Market.class);
            ExcerptTailer tailer = options.has("name") ? queue.createTailer(options.text("name")) : queue.createTailer();
            if (options.flag("resume"))
                Releases.afterLastWritten(tailer, forward);
            read(tailer, next, options.number("count", Long.MAX_VALUE), out);
        }
    }

    private static ChronicleQueue forward(Options options) {
        return options.has("forward-to") ? Queues.open(new Options("--dir", options.text("forward-to"),
                "--source-id", options.text("forward-source-id", "0"))) : null;
    }

    private static void read(ExcerptTailer tailer, Object next, long count, PrintStream out) {
        List<Object> calls = new ArrayList<>();
        List<Object> sources = new ArrayList<>();
        List<Object> timings = new ArrayList<>();
        MethodReader reader = tailer.methodReader(CallRecorder.of(ProbeCallTypes.Market.class, call -> {
            calls.add(call);
            if (calls.size() == 1)
                copy(MessageHistory.get(), sources, timings);
        }, next));
        for (long i = 0; i < count && reader.readOne(); i++) {
            out.println(Json.object("index", Long.toHexString(tailer.index() - 1), "calls", calls,
                    "sources", sources, "timings", timings));
            calls.clear();
            sources.clear();
            timings.clear();
        }
    }

    private static void copy(MessageHistory history, List<Object> sources, List<Object> timings) {
        for (int i = 0; i < history.sources(); i++)
            sources.add(List.of(history.sourceId(i), Long.toHexString(history.sourceIndex(i))));
        for (int i = 0; i < history.timings(); i++)
            timings.add(history.timing(i));
    }
}
