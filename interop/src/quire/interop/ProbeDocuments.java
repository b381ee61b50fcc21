package quire.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.Function;

import net.openhft.chronicle.wire.DocumentContext;
import net.openhft.chronicle.wire.MessageHistory;
import net.openhft.chronicle.wire.ValueOut;
import net.openhft.chronicle.wire.VanillaMessageHistory;
import net.openhft.chronicle.wire.Wire;

/** Probes of whole documents: names, values without names, collections of a declared type, bindings, histories. */
final class ProbeDocuments {
    private static final Map<String, Integer> ONE = Map.of("a", 1);
    private static final Map<String, Integer> SORTED = new TreeMap<>(Map.of("b", 2, "a", 1));

    private final List<Probe> probes = new ArrayList<>();

    static List<Probe> all() {
        ProbeDocuments documents = new ProbeDocuments();
        documents.addNames();
        documents.addBare();
        documents.addDeclaredCollections();
        documents.addArrays();
        documents.addBindings();
        documents.addBetween();
        documents.addHistories();
        return documents.probes;
    }

    private void addNames() {
        for (String name : new String[]{"", "a", "n".repeat(31), "n".repeat(32), "n".repeat(200), "caf\u00e9", "\u20ac", "a b",
                "a: b", "0", "12", "007", "1a", "-1", "12345678", "2147483647", "2147483648"})
            add("field named '" + shown(name) + "'", "write(name).int32(1)",
                    wire -> wire.write(name).int32(1), wire -> wire.read(name).int32());
        for (String name : new String[]{"", "a", "n".repeat(40), "12", "caf\u00e9"})
            add("event named '" + shown(name) + "'", "writeEventName(name).int32(1)",
                    wire -> wire.writeEventName(name).int32(1), wire -> wire.read(name).int32());
        for (int id : new int[]{0, 5, 200, 70_000, -1})
            add("event numbered " + id, "writeEventName(id).text(\"x\")", wire -> wire.writeEventId(id).text("x"), null);
        add("event of an object", "writeEvent(Integer.class, 5).text(\"x\")",
                wire -> wire.writeEvent(Integer.class, 5).text("x"), null);
        add("three fields", "three times write(name)", wire -> {
            wire.write("number").int64(7);
            wire.write("name").text("name 7");
            wire.write("half").float64(3.5);
        }, wire -> List.of(wire.read("number").int64(), wire.read("name").text(), wire.read("half").float64()));
        add("the same field twice", "twice write(\"a\")", wire -> {
            wire.write("a").int32(1);
            wire.write("a").int32(2);
        }, null);
    }

    private void addBare() {
        bare("text", out -> out.text("hello"));
        bare("text of null", out -> out.text((String) null));
        bare("int64", out -> out.int64(5));
        bare("float64", out -> out.float64(1.5));
        bare("bool", out -> out.bool(true));
        bare("object Integer", out -> out.object(5));
        bare("object Leaf", out -> out.object(new ProbeLeaf("bob", 3)));
        bare("list", out -> out.object(List.of(1, "a")));
        bare("map", out -> out.object(ONE));
        bare("bytes", out -> out.bytes(new byte[]{1, 2}));
        bare("four values", out -> {
            out.int32(1);
            out.text("two");
            out.float64(3.5);
            out.bool(true);
        });
        add("no value", "nothing", wire -> { }, null);
        add("raw bytes", "bytes().write(\"raw bytes\")", wire -> wire.bytes().write("raw bytes".getBytes()), null);
    }

    private void addDeclaredCollections() {
        value("list declared Long", out -> out.list(List.of(1L, 300L, 1L << 40), Long.class), in -> in.read("f").list(Long.class));
        value("list declared Leaf", out -> out.list(List.of(new ProbeLeaf("a", 1)), ProbeLeaf.class),
                in -> in.read("f").list(ProbeLeaf.class));
        value("list undeclared", out -> out.list(List.of(1, "a")), in -> in.read("f").list(Object.class));
        value("set declared String", out -> out.set(Set.of("a"), String.class), in -> in.read("f").set(String.class));
        value("map marshallable", out -> out.marshallable(ONE), in -> in.read("f").object(Map.class));
        value("map marshallable sorted", out -> out.marshallable(SORTED), null);
        value("map declared", out -> out.marshallable(Map.of("a", 1L), String.class, Long.class, false), null);
        value("map as a leaf", out -> out.marshallable(Map.of("a", 1L), String.class, Long.class, true), null);
        value("sequence", out -> out.sequence(inner -> {
            inner.int64(1);
            inner.text("a");
            inner.sequence(deeper -> deeper.float64(2.5));
        }), null);
        value("sequence of nothing", out -> out.sequence(inner -> { }), null);
        value("marshallable by hand", out -> out.marshallable(inner -> {
            inner.write("a").int32(1);
            inner.write("b").marshallable(deeper -> deeper.write("c").text("x"));
        }), null);
        value("marshallable of nothing", out -> out.marshallable(inner -> { }), null);
        value("marshallable of 300 bytes", out -> out.marshallable(inner -> inner.write("a").text("x".repeat(300))), null);
    }

    private void addArrays() {
        value("array double", out -> out.array(new double[]{1, 0.5, 0.1}, 3), null);
        value("array double, two of three", out -> out.array(new double[]{1, 0.5, 0.1}, 2), null);
        value("arrayDelta double", out -> out.arrayDelta(new double[]{100.5, 100.75, 100.25}, 3), null);
        value("array long", out -> out.array(new long[]{1, 300, 1L << 40}, 3), null);
        value("arrayDelta long", out -> out.arrayDelta(new long[]{1000, 1001, 999}, 3), null);
        value("array int", out -> out.array(new int[]{1, 300, -70_000}, 3), null);
        value("array boolean", out -> out.array(new boolean[]{true, false}, 2), null);
        value("array byte", out -> out.array(new byte[]{1, -1}, 2), null);
    }

    private void addBindings() {
        value("int64forBinding", out -> out.int64forBinding(5), in -> in.read("f").int64());
        value("int32forBinding", out -> out.int32forBinding(5), in -> in.read("f").int32());
        value("boolForBinding", out -> out.boolForBinding(true, out.wireOut().newBooleanReference()), null);
        value("int128forBinding", out -> out.int128forBinding(5, 6), null);
        value("int64array", out -> out.int64array(3), null);
        add("int64forBinding behind a text", "write(\"t\").text(…); write(\"f\").int64forBinding(5)", wire -> {
            wire.write("t").text("abc");
            wire.write("f").int64forBinding(5);
        }, null);
        add("int32forBinding behind a text", "write(\"t\").text(…); write(\"f\").int32forBinding(5)", wire -> {
            wire.write("t").text("abcde");
            wire.write("f").int32forBinding(5);
        }, null);
    }

    private void addBetween() {
        add("comment", "writeComment(…); write(\"a\").int32(1)", wire -> {
            wire.writeComment("a remark");
            wire.write("a").int32(1);
        }, wire -> wire.read("a").int32());
        add("comment behind a field", "write(\"a\").int32(1); writeComment(…)", wire -> {
            wire.write("a").int32(1);
            wire.writeComment("a remark");
        }, wire -> wire.read("a").int32());
        add("comment in an object", "marshallable with writeComment(…)", wire -> wire.write("f").marshallable(inner -> {
            inner.write("a").int32(1);
            inner.writeComment("a remark");
            inner.write("b").int32(2);
        }), null);
        for (int padding : new int[]{1, 4, 5, 9})
            add("padding of " + padding, "addPadding(" + padding + "); write(\"a\").int32(1)", wire -> {
                wire.addPadding(padding);
                wire.write("a").int32(1);
            }, wire -> wire.read("a").int32());
    }

    private void addHistories() {
        history("self-describing", false, message -> message.addTiming(1111));
        history("self-describing of one source", false, ProbeDocuments::oneHop);
        history("as bytes of one source", true, ProbeDocuments::oneHop);
        history("self-describing of three sources", false, ProbeDocuments::threeHops);
        history("as bytes of three sources", true, ProbeDocuments::threeHops);
    }

    private static void oneHop(VanillaMessageHistory message) {
        message.addSource(1, 0x4cdb_0000_0002L);
        message.addTiming(1111);
        message.addTiming(2222);
    }

    private static void threeHops(VanillaMessageHistory message) {
        oneHop(message);
        message.addSource(300, 0x4cdb_0000_0003L);
        message.addTiming(1_700_000_000_000_000_000L);
        message.addSource(-2, -1);
        message.addTiming(1_700_000_000_000_000_001L);
    }

    /** As a method writer puts it in front of its call. */
    private void history(String name, boolean asBytes, Consumer<VanillaMessageHistory> fill) {
        probes.add(new Probe("history " + name, "MessageHistory.writeHistory(document)", true, wire -> {
            VanillaMessageHistory message = new FixedHistory();
            Releases.useBytes(message, asBytes);
            fill.accept(message);
            MessageHistory.set(message);
            try (DocumentContext document = wire.writingDocument()) {
                MessageHistory.writeHistory(document);
                document.wire().writeEventName("say").text("hello");
            } finally {
                MessageHistory.set(null);
            }
        }, wire -> {
            try (DocumentContext document = wire.readingDocument()) {
                VanillaMessageHistory message = new VanillaMessageHistory();
                document.wire().readEvent(String.class);
                document.wire().getValueIn().marshallable(message);
                return message.toString() + document.wire().read("say").text();
            }
        }));
    }

    private void bare(String name, Consumer<ValueOut> write) {
        add("bare " + name, "getValueOut().…", wire -> write.accept(wire.getValueOut()), null);
    }

    private void value(String name, Consumer<ValueOut> write, Function<Wire, Object> read) {
        String called = name.split(" ", 2)[0];
        add(name, "write(\"f\")." + called + "(…)", wire -> write.accept(wire.write("f")), read);
    }

    private void add(String name, String how, Consumer<Wire> write, Function<Wire, Object> read) {
        probes.add(new Probe(name, how, false, write, read));
    }

    private static String shown(String name) {
        return name.length() < 30 ? name : name.length() + " letters";
    }

    /** A history whose last timing is always the same. */
    private static final class FixedHistory extends VanillaMessageHistory {
        @Override
        protected long nanoTime() {
            return 3333;
        }
    }
}
