package quire.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

import net.openhft.chronicle.core.Jvm;

/**
 * Reads documents that another program wrote: for each line {@code HEX NAME} of stdin ({@code -} for no bytes) it reads
 * the bytes as it reads its own probe of that name, and prints a JSON object: whether the bytes, what an untyped reader
 * gets and what a reader gets that knows the type are the same; what differs is there too.
 */
final class Accept implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws IOException {
        Map<String, Probe> probes = Probes.all();
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = lines.readLine()) != null) {
            String[] parts = line.split(" ", 2);
            Probe probe = probes.get(parts[1]);
            if (probe == null)
                throw new Options.UsageException("no such probe: " + parts[1]);
            out.println(compared(probe, HexFormat.of().parseHex(parts[0].replace("-", ""))));
        }
    }

    private static String compared(Probe probe, byte[] theirs) {
        Jvm.recordExceptions(false, false, false);
        byte[] ours = probe.payload();
        List<Object> fields = new ArrayList<>(List.of("name", probe.name(), "bytes", Arrays.equals(ours, theirs)));
        if (!Arrays.equals(ours, theirs))
            fields.addAll(List.of("ours", HexFormat.of().formatHex(ours), "theirs", HexFormat.of().formatHex(theirs)));
        compare(fields, "object", Probes.untyped(ours), Probes.untyped(theirs));
        if (probe.read() != null)
            compare(fields, "declared", Probes.declared(probe, ours), Probes.declared(probe, theirs));
        return Json.object(fields.toArray());
    }

    private static void compare(List<Object> fields, String name, String ours, String theirs) {
        fields.addAll(List.of(name, ours.equals(theirs)));
        if (!ours.equals(theirs))
            fields.addAll(List.of(name + "_ours", ours, name + "_theirs", theirs));
    }
}
