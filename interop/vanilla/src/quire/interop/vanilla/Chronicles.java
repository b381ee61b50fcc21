package quire.interop.vanilla;

import java.io.IOException;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ChronicleQueueBuilder;
import net.openhft.chronicle.ChronicleQueueBuilder.VanillaChronicleQueueBuilder;
import net.openhft.chronicle.ExcerptAppender;
import net.openhft.chronicle.ExcerptCommon;
import net.openhft.chronicle.VanillaChronicle.VanillaAppender;
import quire.interop.Options;

/** Opens what {@code --dir --cycle --cycle-format --index-block --data-block --entries-per-cycle --synchronous} describe. */
final class Chronicles {
    private Chronicles() {
    }

    static Chronicle open(Options options) throws IOException {
        return builder(options).build();
    }

    static VanillaChronicleQueueBuilder builder(Options options) {
        VanillaChronicleQueueBuilder builder = ChronicleQueueBuilder.vanilla(options.text("dir"));
        Cycle cycle = cycle(options);
        return builder
                .cycleLength(cycle.milliseconds, false)
                .cycleFormat(options.text("cycle-format", cycle.format))
                .entriesPerCycle(options.number("entries-per-cycle", cycle.entries))
                .indexBlockSize(options.number("index-block", builder.indexBlockSize()))
                .dataBlockSize(options.number("data-block", builder.dataBlockSize()))
                .synchronous(options.flag("synchronous"));
    }

    /** The cycle that {@code --at} milliseconds lie in, or the present one. */
    static int cycleNumber(Options options, long milliseconds) {
        return (int) (milliseconds / cycle(options).milliseconds);
    }

    private static Cycle cycle(Options options) {
        return Cycle.valueOf(options.text("cycle", Cycle.DAYS.name()));
    }

    /** Appends in the cycle of the machine's clock; the index. */
    static long append(ExcerptAppender appender, byte[] payload) {
        appender.startExcerpt(payload.length);
        return finish(appender, payload);
    }

    /** Appends in that cycle; the index. */
    static long append(ExcerptAppender appender, byte[] payload, int cycle) {
        ((VanillaAppender) appender).startExcerpt(payload.length, cycle);
        return finish(appender, payload);
    }

    private static long finish(ExcerptAppender appender, byte[] payload) {
        appender.write(payload);
        appender.finish();
        return appender.lastWrittenIndex();
    }

    /** The payload of the excerpt that a tailer stands on. */
    static byte[] payload(ExcerptCommon excerpt) {
        byte[] payload = new byte[Math.toIntExact(excerpt.capacity())];
        excerpt.position(0);
        excerpt.readFully(payload);
        return payload;
    }
}
