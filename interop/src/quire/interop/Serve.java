package quire.interop;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/**
 * Runs verbs until stdin ends, so that many short ones need one JVM. A request is a line: the verb and its arguments
 * separated by U+001F, then U+001E and the verb's stdin in hexadecimal. After the verb's lines follows U+0004 and its exit
 * code.
 */
final class Serve implements Verb {
    private static final String ARGUMENTS_END = "\u001e";
    private static final String ARGUMENT_END = "\u001f";
    private static final char ANSWER_END = '\u0004';

    private final CommandLine commands;

    Serve(CommandLine commands) {
        this.commands = commands;
    }

    @Override
    public void run(Options options, PrintStream out) throws IOException {
        options.rejectUnused();
        var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String request;
        while ((request = requests.readLine()) != null) {
            String[] parts = request.split(ARGUMENTS_END, 2);
            System.setIn(new ByteArrayInputStream(HexFormat.of().parseHex(parts[1])));
            int exitCode = commands.run(parts[0].split(ARGUMENT_END), out);
            out.println(ANSWER_END + Integer.toString(exitCode));
        }
    }
}
