package quire.interop;

import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

/** {@code VERB --name value --flag ...}, and the verb {@code serve}. Exit code 0, 1 (it failed) or 2 (used wrongly). */
public final class CommandLine {
    private final Map<String, Verb> verbs;

    public CommandLine(Map<String, Verb> verbs) {
        this.verbs = new TreeMap<>(verbs);
        this.verbs.put("serve", new Serve(this));
    }

    /** Runs the verb and ends the JVM. */
    public void main(String[] arguments) {
        int exitCode;
        try (PrintStream out = standardOutput()) {
            exitCode = run(arguments, out);
        }
        System.exit(exitCode);
    }

    int run(String[] arguments, PrintStream out) {
        Verb verb = arguments.length == 0 ? null : verbs.get(arguments[0]);
        if (verb == null) {
            System.err.println("usage: VERB --name value ...; verbs: " + String.join(" ", verbs.keySet()));
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
