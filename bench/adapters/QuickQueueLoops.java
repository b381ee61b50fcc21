import java.io.File;
import java.lang.management.ManagementFactory;

import io.github.lapins2023.quickqueue.QuickQueue;
import io.github.lapins2023.quickqueue.QuickQueueMessage;
import io.github.lapins2023.quickqueue.QuickQueueReader;
import io.github.lapins2023.quickqueue.QuickQueueWriter;

/**
 * Times LOOP ({@code append} or {@code read}) in DIR over COUNT messages of SIZE bytes, after WARM_UP more of them, and
 * prints one JSON object. A message is its number as int64 and, up to the size, each byte's place; the numbers go from 0
 * to DISTINCT - 1 and start again, and the checksum is their sum.
 */
public final class QuickQueueLoops {
    /** One message of that number; the number. */
    @FunctionalInterface
    private interface Loop {
        long one(long number) throws Exception;
    }

    private QuickQueueLoops() {
    }

    public static void main(String[] args) throws Exception {
        byte[] rest = new byte[Integer.parseInt(args[2]) - Long.BYTES];
        for (int i = 0; i < rest.length; i++)
            rest[i] = (byte) (Long.BYTES + i);
        long distinct = Long.parseLong(args[3]);
        long warmUp = Long.parseLong(args[4]);
        long count = Long.parseLong(args[5]);
        boolean appends = args[0].equals("append");
        QuickQueue queue = QuickQueue.createSingle(new File(args[1]), appends ? "rw" : "r");
        Loop loop = appends ? append(queue.getWriter(), rest) : read(queue.createReader(), rest);
        run(loop, 0, warmUp, distinct);
        long cpuBegin = cpuNanos();
        long begin = System.nanoTime();
        long checksum = run(loop, warmUp, warmUp + count, distinct);
        long nanos = System.nanoTime() - begin;
        System.out.printf("{\"nanos\": %d, \"cpuNanos\": %d, \"count\": %d, \"checksum\": %d}%n", nanos,
                cpuNanos() - cpuBegin, count, checksum);
        queue.close();
    }

    private static long run(Loop loop, long from, long end, long distinct) throws Exception {
        long checksum = 0;
        for (long number = from; number < end; number++)
            checksum += loop.one(number % distinct);
        return checksum;
    }

    private static Loop append(QuickQueueWriter writer, byte[] rest) {
        return number -> {
            writer.newMessage().packLong(number).packArray(rest, 0, rest.length).writeMessage();
            return number;
        };
    }

    private static Loop read(QuickQueueReader reader, byte[] rest) {
        return number -> {
            QuickQueueMessage message = reader.next();
            long found = message.unpackLong();
            message.unpackArray(rest, 0, rest.length);
            return found;
        };
    }

    /** What this thread used of a CPU. */
    private static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }
}
