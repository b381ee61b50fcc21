package quire.interop.vanilla;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ExcerptTailer;
import quire.interop.Options;
import quire.interop.Verb;

/**
 * Answers each command of stdin with a line; offsets and values are decimal:
 *
 * <pre>
 *   index INDEX (hexadecimal), next, to-start, to-end     whether the tailer stands on a message
 *   where                                                 its index
 *   int32 OFFSET, int64 OFFSET                            the word
 *   cas32 OFFSET EXPECTED NEW, cas64 ...                  whether it was swapped
 *   add32 OFFSET N                                        the sum
 *   add32-times OFFSET COUNT                              the last sum, after COUNT additions of 1
 *   try-lock OFFSET, unlock OFFSET, reset-lock OFFSET     whether it was locked, or unlocked
 *   count-locked OFFSET WORD COUNT                        the word, added to COUNT times while the lock was held
 * </pre>
 */
final class ExcerptScript implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        var commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Chronicle chronicle = Chronicles.open(options)) {
            ExcerptTailer tailer = chronicle.createTailer();
            out.println("READY");
            String command;
            while ((command = commands.readLine()) != null)
                out.println(answer(tailer, command.split(" ")));
        }
    }

    private static Object answer(ExcerptTailer tailer, String[] words) {
        return switch (words[0]) {
            case "index" -> tailer.index(Long.parseUnsignedLong(words[1], 16));
            case "next" -> tailer.nextIndex();
            case "to-start" -> tailer.toStart().index();
            case "to-end" -> tailer.toEnd().index();
            case "where" -> Long.toHexString(tailer.index());
            case "int32" -> tailer.readVolatileInt(number(words[1]));
            case "int64" -> tailer.readVolatileLong(number(words[1]));
            case "cas32" -> tailer.compareAndSwapInt(number(words[1]), (int) number(words[2]), (int) number(words[3]));
            case "cas64" -> tailer.compareAndSwapLong(number(words[1]), number(words[2]), number(words[3]));
            case "add32" -> tailer.addAndGetInt(number(words[1]), (int) number(words[2]));
            case "add32-times" -> addOnes(tailer, number(words[1]), number(words[2]));
            case "try-lock" -> tailer.tryLockInt(number(words[1]));
            case "unlock" -> unlock(tailer, number(words[1]));
            case "reset-lock" -> reset(tailer, number(words[1]));
            case "count-locked" -> countLocked(tailer, number(words[1]), number(words[2]), number(words[3]));
            default -> throw new Options.UsageException("no such command: " + words[0]);
        };
    }

    private static long number(String word) {
        return Long.parseLong(word);
    }

    private static int addOnes(ExcerptTailer tailer, long offset, long count) {
        int sum = 0;
        for (long done = 0; done < count; done++)
            sum = tailer.addAndGetInt(offset, 1);
        return sum;
    }

    private static boolean unlock(ExcerptTailer tailer, long offset) {
        try {
            tailer.unlockInt(offset);
            return true;
        } catch (IllegalMonitorStateException e) {
            return false;
        }
    }

    private static boolean reset(ExcerptTailer tailer, long offset) {
        tailer.resetLockInt(offset);
        return true;
    }

    /** A plain read and a plain write: the lock alone keeps them together. */
    private static int countLocked(ExcerptTailer tailer, long lock, long offset, long count) {
        for (long done = 0; done < count; done++) {
            while (!tailer.tryLockInt(lock))
                Thread.onSpinWait();
            tailer.writeInt(offset, tailer.readInt(offset) + 1);
            tailer.unlockInt(lock);
        }
        return tailer.readVolatileInt(offset);
    }
}
