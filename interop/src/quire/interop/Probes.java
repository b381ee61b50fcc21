package quire.interop;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;

import net.openhft.chronicle.core.Jvm;
import net.openhft.chronicle.wire.Wire;
import net.openhft.chronicle.wire.WireDumper;

/**
 * Prints every probe as a JSON object a line: the bytes that the library writes, how its dump shows them, and what it
 * reads when nothing says of which type they are. {@code --of PREFIX} prints those whose name starts so.
 */
final class Probes implements Verb {
    private static final int COMMENT = 0xbe;
    private static final String TAG = "--- !!data #binary\n";

    @Override
    public void run(Options options, PrintStream out) {
        String prefix = options.text("of", "");
        all().values().stream().filter(probe -> probe.name().startsWith(prefix)).forEach(probe -> out.println(row(probe)));
    }

    static Map<String, Probe> all() {
        ProbeTypes.addAliases();
        List<Probe> probes = new ArrayList<>(ProbeScalars.all());
        probes.addAll(ProbeObjects.all());
        probes.addAll(ProbeDocuments.all());
        probes.addAll(ProbeMessages.all());
        probes.addAll(ProbeCalls.all());
        Map<String, Probe> byName = new LinkedHashMap<>();
        for (Probe probe : probes)
            if (byName.put(probe.name(), probe) != null)
                throw new IllegalStateException("twice: " + probe.name());
        return byName;
    }

    private static String row(Probe probe) {
        Jvm.recordExceptions(false, false, false);
        byte[] payload;
        try {
            payload = probe.payload();
        } catch (Throwable e) {
            return Json.object("name", probe.name(), "how", probe.how(), "refused", thrown(e));
        }
        List<Object> fields = new ArrayList<>(List.of("name", probe.name(), "how", probe.how(),
                "bytes", HexFormat.of().formatHex(payload), "yaml", dumped(payload, false), "object", untyped(payload)));
        String known = dumped(payload, true);
        if (!known.equals(fields.get(fields.indexOf("yaml") + 1)))
            fields.addAll(List.of("yaml_of_known", known));
        if (probe.read() != null)
            fields.addAll(List.of("declared", declared(probe, payload)));
        return Json.object(fields.toArray());
    }

    /** A document as the dump prints it, without the line in front. The types of the probes are known to it, or not. */
    private static String dumped(byte[] payload, boolean known) {
        Wire wire = Probe.framed(payload);
        if (!known)
            wire.classLookup(Strangers.LOOKUP);
        String text = WireDumper.of(wire).asString();
        return text.startsWith(TAG) ? text.substring(TAG.length()) : text;
    }

    /** What a reader gets that is told no types: the fields in braces, or the value of a document without names. */
    static String untyped(byte[] payload) {
        try {
            Wire wire = Probe.bare(payload);
            return payload.length == 0 || startsWithName(payload)
                    ? fields(wire) : Described.of(wire.getValueIn().object());
        } catch (Throwable e) {
            return thrown(e);
        }
    }

    /** What a reader gets that knows the type. */
    static String declared(Probe probe, byte[] payload) {
        try {
            return Described.of(probe.read().apply(probe.frames() ? Probe.framed(payload) : Probe.bare(payload)));
        } catch (Throwable e) {
            return thrown(e);
        }
    }

    private static String fields(Wire wire) {
        StringJoiner fields = new StringJoiner(", ", "{", "}");
        while (skipComment(wire) && !wire.isEmpty()) {
            Object name = wire.readEvent(Object.class);
            fields.add(Described.of(name) + "=" + Described.of(wire.getValueIn().object()));
        }
        return fields.toString();
    }

    /** Behind the last field the library would look for another one, beyond the end. */
    private static boolean skipComment(Wire wire) {
        if (wire.bytes().peekUnsignedByte() == COMMENT)
            wire.readComment(new StringBuilder());
        return true;
    }

    /** Or with what stands in front of one: a comment, padding. */
    private static boolean startsWithName(byte[] payload) {
        int code = payload[0] & 0xff;
        return code >= 0xc0 && code <= 0xdf || code == 0xb7 || code == 0xb9 || code == 0xba || code == 0xbd || code == 0xbe
                || code == 0x8e || code == 0x8f;
    }

    private static String thrown(Throwable e) {
        return "!" + e.getClass().getSimpleName();
    }
}
