package quire.interop;

import java.io.PrintStream;

import net.openhft.chronicle.queue.ChronicleQueue;

/** Prints the library's own text rendering of the whole directory. */
final class Dump implements Verb {
    @Override
    public void run(Options options, PrintStream out) {
        try (ChronicleQueue queue = Queues.open(options)) {
            out.print(queue.dump());
            out.flush();
        }
    }
}
