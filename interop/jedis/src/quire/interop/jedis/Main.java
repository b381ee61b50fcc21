package quire.interop.jedis;

import java.util.Map;

import quire.interop.CommandLine;

/** The verbs of a client of Redis. */
public final class Main {
    private Main() {
    }

    public static void main(String[] arguments) {
        new CommandLine(Map.of("append", new Append(), "tail", new Tail(), "consume", new Consume(), "cluster",
                new Cluster())).main(arguments);
    }
}
