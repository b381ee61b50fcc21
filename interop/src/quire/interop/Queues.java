package quire.interop;

import java.time.LocalTime;
import java.time.ZoneId;

import net.openhft.chronicle.core.time.TimeProvider;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueue;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueueBuilder;
import net.openhft.chronicle.wire.WireType;

/** Opens the queue that the options describe. What an option does not say is left to the release's default. */
final class Queues {
    private Queues() {
    }

    static SingleChronicleQueue open(Options options) {
        return builder(options).build();
    }

    static SingleChronicleQueue open(Options options, TimeProvider clock) {
        return builder(options).timeProvider(clock).build();
    }

    private static SingleChronicleQueueBuilder builder(Options options) {
        SingleChronicleQueueBuilder builder = SingleChronicleQueueBuilder.single(options.text("dir"));
        if (options.has("wire-type"))
            builder.wireType(WireType.valueOf(options.text("wire-type")));
        if (options.has("roll-cycle"))
            builder.rollCycle(Releases.rollCycle(options.text("roll-cycle")));
        if (options.has("epoch"))
            builder.epoch(options.number("epoch"));
        if (options.has("roll-time"))
            builder.rollTime(LocalTime.parse(options.text("roll-time")),
                    ZoneId.of(options.text("roll-time-zone", "UTC")));
        addSizes(builder, options);
        return builder;
    }

    private static void addSizes(SingleChronicleQueueBuilder builder, Options options) {
        if (options.has("block-size"))
            builder.blockSize(options.number("block-size"));
        if (options.has("index-count"))
            builder.indexCount((int) options.number("index-count"));
        if (options.has("index-spacing"))
            builder.indexSpacing((int) options.number("index-spacing"));
        if (options.has("source-id"))
            builder.sourceId((int) options.number("source-id"));
        if (options.has("timeout-ms"))
            builder.timeoutMS(options.number("timeout-ms"));
        if (options.flag("double-buffer"))
            builder.doubleBuffer(true);
        if (options.flag("read-only"))
            builder.readOnly(true);
    }
}
