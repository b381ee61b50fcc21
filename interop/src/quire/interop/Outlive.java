package quire.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueue;

/**
 * Takes over queues whose writer died: for each line {@code MS DIR} on stdin, appends {@code --text} and a longer
 * message at that time of a clock that stands still, reads everything, and prints a JSON object. Several at a time,
 * because an unfinished file is waited for.
 */
final class Outlive implements Verb {
    private static final int AT_ONCE = 8;

    @Override
    public void run(Options options, PrintStream out) throws Exception {
        byte[] text = options.text("text").getBytes(StandardCharsets.UTF_8);
        String timeout = Long.toString(options.number("timeout-ms"));
        ExecutorService pool = Executors.newFixedThreadPool(AT_ONCE);
        List<Future<String>> taken = new ArrayList<>();
        for (String line : readLines()) {
            String[] parts = line.split(" ", 2);
            taken.add(pool.submit(() -> takeOver(Long.parseLong(parts[0]), parts[1], timeout, text)));
        }
        for (Future<String> each : taken)
            out.println(each.get());
        pool.shutdown();
    }

    private static List<String> readLines() throws IOException {
        try (BufferedReader stdin = new BufferedReader(new InputStreamReader(System.in))) {
            return stdin.lines().toList();
        }
    }

    private static String takeOver(long time, String dir, String timeout, byte[] text) {
        Options options = new Options("--dir", dir, "--timeout-ms", timeout);
        try (SingleChronicleQueue queue = Queues.open(options, new ManualClock(time))) {
            ExcerptAppender appender = Releases.appender(queue);
            Messages.appendBytes(appender, text);
            Messages.appendBytes(appender, (new String(text, StandardCharsets.UTF_8).repeat(20)).getBytes());
            return read(queue, dir);
        } catch (Throwable e) {
            return Json.object("dir", dir, "error", e.toString());
        }
    }

    private static String read(SingleChronicleQueue queue, String dir) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        ExcerptTailer tailer = queue.createTailer();
        long count = 0;
        Excerpt excerpt;
        while ((excerpt = Excerpt.read(tailer, false)) != null) {
            digest.update(excerpt.line().getBytes(StandardCharsets.UTF_8));
            count++;
        }
        return Json.object("dir", dir, "error", null, "count", count, "entryCount", queue.entryCount(),
                "sha256", HexFormat.of().formatHex(digest.digest()));
    }
}
