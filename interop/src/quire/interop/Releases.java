package quire.interop;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.function.LongBinaryOperator;
import java.util.stream.Stream;

import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.queue.RollCycle;
import net.openhft.chronicle.queue.TailerDirection;
import net.openhft.chronicle.wire.VanillaMessageHistory;

/** What the releases spell differently. All reflection of the peers is here, and none of it is timed. */
final class Releases {
    private static final String PACKAGE = "net.openhft.chronicle.queue.";
    private static final String[] ROLL_CYCLE_ENUMS = {
        "RollCycles", "rollcycles.LegacyRollCycles", "rollcycles.LargeRollCycles",
        "rollcycles.SparseRollCycles", "rollcycles.TestRollCycles"};

    private Releases() {
    }

    /** {@code createAppender} came, went and came again; {@code acquireAppender} ended with 5.26. */
    static ExcerptAppender appender(ChronicleQueue queue) {
        return (ExcerptAppender) call(queue, hasMethod("createAppender") ? "createAppender" : "acquireAppender");
    }

    /** {@code lastIndex} is missing before 5.22. Of an empty queue it is -1. */
    static long lastIndex(ChronicleQueue queue) {
        if (!hasMethod("lastIndex")) {
            ExcerptTailer tailer = queue.createTailer().direction(TailerDirection.BACKWARD).toEnd();
            Excerpt last = Excerpt.read(tailer, false);
            return last == null ? -1 : last.index();
        }
        return (long) call(queue, "lastIndex");
    }

    /** The roll cycle of that enum name, or one of the user's own; the enums were split in 5.24. */
    static RollCycle rollCycle(String name) {
        if (name.startsWith(CustomRollCycle.PREFIX))
            return CustomRollCycle.parse(name);
        return Stream.of(ROLL_CYCLE_ENUMS)
                .flatMap(Releases::constants)
                .filter(cycle -> ((Enum<?>) cycle).name().equals(name))
                .findFirst()
                .orElseThrow(() -> new Options.UsageException("no such roll cycle in this release: " + name));
    }

    /** Which of its two forms a history is written in; releases up to 5.23 have one. */
    static void useBytes(VanillaMessageHistory history, boolean asBytes) {
        try {
            call(history, VanillaMessageHistory.class.getMethod("useBytesMarshallable", boolean.class), asBytes);
        } catch (NoSuchMethodException e) {
            throw new Options.UsageException("one form of history in this release: " + e);
        }
    }

    /** {@code afterLastWritten} ended with 5.26. */
    static void afterLastWritten(ExcerptTailer tailer, ChronicleQueue output) {
        try {
            call(tailer, ExcerptTailer.class.getMethod("afterLastWritten", ChronicleQueue.class), output);
        } catch (NoSuchMethodException e) {
            throw new Options.UsageException("no afterLastWritten in this release: " + e);
        }
    }

    /** {@code RunningMinimum.sample}; the class ended with 5.23. */
    static LongBinaryOperator runningMinimum(long actualMinimum, int drift) {
        try {
            Class<?> type = Class.forName("net.openhft.chronicle.core.time.RunningMinimum");
            Constructor<?> constructor = type.getDeclaredConstructor(long.class, int.class);
            constructor.setAccessible(true);
            Object minimum = constructor.newInstance(actualMinimum, drift);
            Method sample = type.getMethod("sample", long.class, long.class);
            return (start, end) -> (long) call(minimum, sample, start, end);
        } catch (ReflectiveOperationException e) {
            throw new Options.UsageException("no RunningMinimum in this release: " + e);
        }
    }

    /** {@code microTouch}, which writes to the page after the last message ahead of it; it came with 5.21. */
    static Runnable microTouch(ExcerptAppender appender) {
        try {
            Method method = Class.forName(PACKAGE + "util.MicroTouched").getMethod("microTouch");
            return () -> call(appender, method);
        } catch (ReflectiveOperationException e) {
            throw new Options.UsageException("no microTouch in this release: " + e);
        }
    }

    private static Stream<RollCycle> constants(String enumName) {
        try {
            return Stream.of((RollCycle[]) Class.forName(PACKAGE + enumName).getEnumConstants());
        } catch (ClassNotFoundException e) {
            return Stream.empty();
        }
    }

    private static boolean hasMethod(String name) {
        return Stream.of(ChronicleQueue.class.getMethods())
                .anyMatch(method -> method.getName().equals(name) && method.getParameterCount() == 0);
    }

    private static Object call(ChronicleQueue queue, String method) {
        try {
            return call(queue, ChronicleQueue.class.getMethod(method));
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException(method, e);
        }
    }

    /** Throws what the method throws. */
    private static Object call(Object object, Method method, Object... arguments) {
        try {
            return method.invoke(object, arguments);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof RuntimeException cause)
                throw cause;
            throw new IllegalStateException(method.toString(), e.getCause());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(method.toString(), e);
        }
    }
}
