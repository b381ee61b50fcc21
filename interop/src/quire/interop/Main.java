package quire.interop;

import java.util.Map;

/** The verbs on a queue of today's format. */
public final class Main {
    private static final Map<String, Verb> VERBS = Map.ofEntries(
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
            Map.entry("compressed", new Compressed()),
            Map.entry("running-minimum", new RunningMinima()),
            Map.entry("golden", new Golden()));

    private Main() {
    }

    public static void main(String[] arguments) {
        new CommandLine(VERBS).main(arguments);
    }
}
