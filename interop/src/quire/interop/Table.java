package quire.interop;

import java.io.PrintStream;

import net.openhft.chronicle.queue.impl.TableStore;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueue;

/** Prints each entry of {@code metadata.cq4t} in file order: {@code key=value}, the value a signed decimal. */
final class Table implements Verb {
    @Override
    public void run(Options options, PrintStream out) {
        try (SingleChronicleQueue queue = Queues.open(options)) {
            TableStore<?> table = queue.metaStore();
            table.forEachKey(out, (target, key, value) -> target.println(key + "=" + value.int64()));
        }
    }
}
