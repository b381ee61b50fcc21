package quire.interop;

import java.io.File;
import java.io.PrintStream;

import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.main.DumpMain;

/** Prints the library's own text rendering of the whole directory: the queue's, or with {@code --files} that of each file. */
final class Dump implements Verb {
    @Override
    public void run(Options options, PrintStream out) {
        if (options.flag("files")) {
            DumpMain.dump(new File(options.text("dir")), out, Long.MAX_VALUE);
            return;
        }
        try (ChronicleQueue queue = Queues.open(options)) {
            out.print(queue.dump());
            out.flush();
        }
    }
}
