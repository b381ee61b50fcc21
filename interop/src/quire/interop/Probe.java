package quire.interop;

import java.util.function.Consumer;
import java.util.function.Function;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.wire.DocumentContext;
import net.openhft.chronicle.wire.Wire;
import net.openhft.chronicle.wire.WireType;

/**
 * One document that the library writes: {@code how} says by which call, {@code read} reads its value back with the type
 * it was declared with, or is null where there is none. A probe that {@code frames} makes its own document.
 */
record Probe(String name, String how, boolean frames, Consumer<Wire> write, Function<Wire, Object> read) {
    static final int HEADER_SIZE = 4;
    private static final int ZEROS = 64;

    /** The payload; its header stands at an address that 8 divides. */
    byte[] payload() {
        Bytes<?> bytes = Bytes.allocateElasticDirect(1 << 16);
        try {
            Wire wire = WireType.BINARY_LIGHT.apply(bytes);
            wire.usePadding(true);
            if (frames)
                write.accept(wire);
            else
                try (DocumentContext document = wire.writingDocument()) {
                    write.accept(document.wire());
                }
            int size = bytes.readInt(0) & 0x3fff_ffff;
            byte[] payload = new byte[size];
            bytes.read(HEADER_SIZE, payload, 0, size);
            return payload;
        } finally {
            bytes.releaseLast();
        }
    }

    /** A wire of one document with this payload, in memory as a file is: from the heap texts are read otherwise. */
    static Wire framed(byte[] payload) {
        Bytes<?> bytes = Bytes.allocateElasticDirect(payload.length + 64);
        bytes.writeInt(payload.length).write(payload);
        endWithZeros(bytes);
        Wire wire = WireType.BINARY_LIGHT.apply(bytes);
        wire.usePadding(true);
        return wire;
    }

    /** A wire of the payload alone. */
    static Wire bare(byte[] payload) {
        Bytes<?> bytes = Bytes.allocateElasticDirect(payload.length + 64);
        bytes.write(payload);
        endWithZeros(bytes);
        return WireType.BINARY_LIGHT.apply(bytes);
    }

    /** The library reads on behind the end where a value is missing, in a file too: let it find the same each time. */
    static void endWithZeros(Bytes<?> bytes) {
        long end = bytes.writePosition();
        bytes.write(new byte[ZEROS]);
        bytes.writePosition(end);
    }
}
