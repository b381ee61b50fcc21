package quire.interop.kafka;

import java.util.Map;

import quire.interop.CommandLine;

/** The verbs of clients of Kafka. */
public final class Main {
    private Main() {
    }

    public static void main(String[] arguments) {
        new CommandLine(Map.of("latency", new Latency(), "stream", new Stream())).main(arguments);
    }
}
