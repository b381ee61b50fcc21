package quire.interop;

import java.lang.reflect.Proxy;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.Consumer;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.wire.Wire;

/** Probes of method calls, by the writer that the library generates for {@link ProbeCallTypes}. */
final class ProbeCalls {
    private final List<Probe> probes = new ArrayList<>();
    private final Map<String, Consumer<ProbeCallTypes.Market>> market = new LinkedHashMap<>();

    private ProbeCalls() {
    }

    static List<Probe> all() {
        return made().probes;
    }

    /** The calls of a market, by name. */
    static Map<String, Consumer<ProbeCallTypes.Market>> ofMarket() {
        return made().market;
    }

    private static ProbeCalls made() {
        ProbeCalls calls = new ProbeCalls();
        calls.addScalars();
        calls.addObjects();
        calls.addIds();
        calls.addChains();
        calls.addGenerics();
        return calls;
    }

    private void addScalars() {
        call("none()", ProbeCallTypes.Market::none);
        call("say('hello')", market -> market.say("hello"));
        call("say('')", market -> market.say(""));
        call("say(null)", market -> market.say(null));
        call("flag(true)", market -> market.flag(true));
        call("tiny(-1)", market -> market.tiny((byte) -1));
        call("small(300)", market -> market.small((short) 300));
        call("letter('x')", market -> market.letter('x'));
        call("number(70000)", market -> market.number(70_000));
        call("large(12345)", market -> market.large(12345));
        call("large(2^40)", market -> market.large(1L << 40));
        call("single(0.1)", market -> market.single(0.1f));
        call("price(1.25)", market -> market.price(1.25));
        call("price(NaN)", market -> market.price(Double.NaN));
        call("boxed(5)", market -> market.boxed(5L));
        call("boxed(null)", market -> market.boxed(null));
        call("two('a', 7)", market -> market.two("a", 7));
        call("two(null, 300)", market -> market.two(null, 300));
        call("six(...)", market -> market.six(true, (byte) -1, 70_000, 1.25, "a", new ProbeLeaf("bob", 3)));
        call("six(... null)", market -> market.six(false, (byte) 0, 0, 0, null, null));
    }

    private void addObjects() {
        call("leaf(leaf)", market -> market.leaf(new ProbeLeaf("bob", 3)));
        call("leaf(null)", market -> market.leaf(null));
        call("twoLeaves(leaf, leaf)", market -> market.twoLeaves(new ProbeLeaf("a", 1), new ProbeLeaf("b", 2)));
        call("fixed(leaf)", market -> market.fixed(fixedLeaf()));
        call("any(leaf)", market -> market.any(new ProbeLeaf("bob", 3)));
        call("any(5)", market -> market.any(5));
        call("any('x')", market -> market.any("x"));
        call("any(null)", market -> market.any(null));
        call("any([1, 'a'])", market -> market.any(List.of(1, "a")));
        call("any({a: 1})", market -> market.any(new LinkedHashMap<>(Map.of("a", 1))));
        call("side(BUY)", market -> market.side(ProbeSide.BUY));
        call("side(null)", market -> market.side(null));
        call("date(2024-01-15)", market -> market.date(LocalDate.of(2024, 1, 15)));
        call("uuid(1, 2)", market -> market.uuid(new UUID(1, 2)));
        call("bytes(1, 2, 255)", market -> market.bytes(new byte[]{1, 2, -1}));
        call("store(1, 2, 255)", market -> market.store(Bytes.wrapForRead(new byte[]{1, 2, -1})));
        call("ints(1, 300)", market -> market.ints(new int[]{1, 300}));
        call("texts('a', null)", market -> market.texts(new String[]{"a", null}));
        call("list('a', 'b')", market -> market.list(List.of("a", "b")));
        call("list()", market -> market.list(List.of()));
        call("leaves(leaf)", market -> market.leaves(List.of(new ProbeLeaf("a", 1))));
        call("set('a')", market -> market.set(new LinkedHashSet<>(List.of("a"))));
        call("map(a: 1)", market -> market.map(new LinkedHashMap<>(Map.of("a", 1L))));
        call("map(sorted)", market -> market.map(new TreeMap<>(Map.of("b", 2L, "a", 1L))));
    }

    private void addIds() {
        call("at(nanos)", market -> market.at(1_700_000_000_123_456_789L));
        call("at(0)", market -> market.at(0));
        call("from(nanos, 'a')", market -> market.from(1_700_000_000_123_456_789L, "a"));
        call("shorter('a') with an id", market -> market.shorter("a"));
        call("numbered(5) with an id", market -> market.numbered(5));
        call("nothing() with an id", ProbeCallTypes.Market::nothing);
        call("ordinary('a') by default", market -> market.ordinary("a"));
    }

    private void addChains() {
        call("to('x').deliver('m')", market -> market.to("x").deliver("m"));
        call("to('x').send(leaf)", market -> market.to("x").send(new ProbeLeaf("bob", 3)));
        call("to('x').done()", market -> market.to("x").done());
        call("to('x').and('y').deliver('m')", market -> market.to("x").and("y").deliver("m"));
        call("via().deliver('m')", market -> market.via().deliver("m"));
        call("route('x', 2).deliver('m')", market -> market.route("x", 2).deliver("m"));
        call("through(1).deliver('m') with an id", market -> market.through(1).deliver("m"));
        call("past(leaf).deliver('m')", market -> market.past(new ProbeLeaf("bob", 3)).deliver("m"));
    }

    private void addGenerics() {
        generic("accept('x')", "x");
        generic("accept(5)", 5);
        generic("accept(leaf)", new ProbeLeaf("bob", 3));
    }

    private void call(String name, Consumer<ProbeCallTypes.Market> call) {
        market.put(name, call);
        probes.add(new Probe("call " + name, "methodWriter(Market.class)", true,
                wire -> call.accept(generated(wire, ProbeCallTypes.Market.class)),
                wire -> CallRecorder.read(wire, ProbeCallTypes.Market.class)));
    }

    @SuppressWarnings("unchecked")
    private void generic(String name, Object value) {
        probes.add(new Probe("call " + name + " of a generic", "methodWriter(Sink.class)", true,
                wire -> generated(wire, ProbeCallTypes.Sink.class).accept(value),
                wire -> CallRecorder.read(wire, ProbeCallTypes.Sink.class)));
    }

    private static <T> T generated(Wire wire, Class<T> type) {
        T writer = wire.methodWriter(type);
        if (Proxy.isProxyClass(writer.getClass()))
            throw new IllegalStateException("not generated: " + type);
        return writer;
    }

    private static ProbeTypes.FixedLeaf fixedLeaf() {
        ProbeTypes.FixedLeaf leaf = new ProbeTypes.FixedLeaf();
        leaf.count = 3;
        leaf.name = "bob";
        return leaf;
    }
}
