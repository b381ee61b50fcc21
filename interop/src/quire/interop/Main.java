package quire.interop;

import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

/** The command line: {@code VERB --name value --flag ...}. Exit code 0, 1 (it failed) or 2 (used wrongly). */
public final class Main {
    private static final Map<String, Verb> VERBS = new TreeMap<>(Map.ofEntries(
            Map.entry("write", new Write()),
            Map.entry("list", new ListMessages()),
            Map.entry("check", new Check()),
            Map.entry("produce", new Produce()),
            Map.entry("follow", new Follow()),
            Map.entry("tailer-script", new TailerScript()),
            Map.entry("table", new Table()),
            Map.entry("outlive", new Outlive()),
            Map.entry("dump", new Dump()),
            Map.entry("open", new Open()),
            Map.entry("bench", new Bench()),
            Map.entry("contend", new Contend()),
            Map.entry("aged", new Aged()),
            Map.entry("latency", new Latency()),
            Map.entry("listing", new Listing()),
            Map.entry("conversions", new Conversions()),
            Map.entry("probes", new Probes()),
            Map.entry("accept", new Accept()),
            Map.entry("method-write", new MethodWrite()),
            Map.entry("method-read", new MethodRead()),
            Map.entry("running-minimum", new RunningMinima()),
            Map.entry("golden", new Golden()),
            Map.entry("serve", new Serve())));

    private Main() {
    }

    public static void main(String[] arguments) {
        int exitCode;
        try (PrintStream out = standardOutput()) {
            exitCode = run(arguments, out);
        }
        System.exit(exitCode);
    }

    static int run(String[] arguments, PrintStream out) {
        Verb verb = arguments.length == 0 ? null : VERBS.get(arguments[0]);
        if (verb == null) {
            System.err.println("usage: VERB --name value ...; verbs: " + String.join(" ", VERBS.keySet()));
            return 2;
        }
        try {
            Options options = new Options(Arrays.copyOfRange(arguments, 1, arguments.length));
            verb.run(options, out);
            options.rejectUnused();
            return 0;
        } catch (Options.UsageException e) {
            System.err.println(arguments[0] + ": " + e.getMessage());
            return 2;
        } catch (Throwable e) {
            e.printStackTrace();
            return 1;
        }
    }

    /** Chronicle prints banners to System.out: they go to stderr, and each line of ours is flushed. */
    private static PrintStream standardOutput() {
        System.setOut(System.err);
        var file = new FileOutputStream(FileDescriptor.out);
        return new PrintStream(new BufferedOutputStream(file, 1 << 16), true, StandardCharsets.UTF_8);
    }
}
