package quire.interop;

import net.openhft.chronicle.wire.SelfDescribingMarshallable;

/** The smallest object of the wire tests. */
public final class ProbeLeaf extends SelfDescribingMarshallable {
    public String name;
    public int count;

    public ProbeLeaf() {
    }

    ProbeLeaf(String name, int count) {
        this.name = name;
        this.count = count;
    }
}
