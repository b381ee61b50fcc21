package quire.interop.vanilla;

import java.util.Map;

import quire.interop.CommandLine;

/** The verbs on a Vanilla Chronicle. */
public final class Main {
    private Main() {
    }

    public static void main(String[] arguments) {
        new CommandLine(Map.ofEntries(
                Map.entry("write", new Write()),
                Map.entry("list", new ListMessages()),
                Map.entry("produce", new Produce()),
                Map.entry("follow", new Follow()),
                Map.entry("claim", new Claim()),
                Map.entry("excerpt-script", new ExcerptScript()),
                Map.entry("write-fields", new WriteFields()),
                Map.entry("read-fields", new ReadFields()),
                Map.entry("source", new Source()),
                Map.entry("sink", new Sink()),
                Map.entry("replication-latency", new ReplicationLatency()),
                Map.entry("submit", new Submit()),
                Map.entry("indexed-write", Indexed::write),
                Map.entry("indexed-list", Indexed::list),
                Map.entry("bench", new Bench()))).main(arguments);
    }
}
