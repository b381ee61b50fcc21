package quire.interop;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.Period;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.Date;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;

import net.openhft.chronicle.bytes.Bytes;

/** Probes of {@code wire.write("f").object(value)}, where the value says of which type it is. */
final class ProbeObjects {
    private final List<Probe> probes = new ArrayList<>();

    static List<Probe> all() {
        ProbeObjects objects = new ProbeObjects();
        objects.addBoxed();
        objects.addTimes();
        objects.addArrays();
        objects.addCollections();
        objects.addMaps();
        objects.addOthers();
        return objects.probes;
    }

    private void addBoxed() {
        add("null", null);
        add("Byte 5", (byte) 5);
        add("Short 5", (short) 5);
        add("Integer 5", 5);
        add("Integer -1", -1);
        add("Long 5", 5L);
        add("Long 2^40", 1L << 40);
        add("Float 1", 1f);
        add("Float 0.1", 0.1f);
        add("Double 1", 1.0);
        add("Double -0.0", -0.0);
        add("Double 0.1", 0.1);
        add("Boolean true", true);
        add("Character a", 'a');
        add("String", "text");
        add("StringBuilder", new StringBuilder("text"));
        add("BigDecimal", new BigDecimal("-1.50"));
        add("BigDecimal 1E+30", new BigDecimal("1E+30"));
        add("BigInteger", new BigInteger("123456789012345678901234567890"));
        add("enum", ProbeSide.BUY);
        add("Class", ProbeLeaf.class);
    }

    private void addTimes() {
        add("LocalTime", LocalTime.parse("10:30:15.5"));
        add("LocalDate", LocalDate.parse("2024-01-15"));
        add("LocalDateTime", LocalDateTime.parse("2024-01-15T10:30"));
        add("ZonedDateTime", ZonedDateTime.of(2024, 1, 15, 10, 30, 0, 1, ZoneId.of("Europe/Paris")));
        add("OffsetDateTime", OffsetDateTime.parse("2024-01-15T10:30:00+01:00"));
        add("Instant", Instant.ofEpochSecond(1_705_314_600, 123_000_000));
        add("Date", new Date(1_705_314_600_123L));
        add("Duration", Duration.ofMillis(90_500));
        add("Period", Period.ofDays(3));
        add("UUID", new UUID(1, 2));
    }

    private void addArrays() {
        add("byte[] 1, 2, 255", new byte[]{1, 2, -1});
        add("byte[] empty", new byte[0]);
        add("Bytes", Bytes.wrapForRead(new byte[]{1, 2, -1}));
        add("int[]", new int[]{1, 300, -70_000});
        add("int[] empty", new int[0]);
        add("long[]", new long[]{1, 1L << 40, Long.MIN_VALUE});
        add("double[]", new double[]{1, 0.1, Double.NaN});
        add("float[]", new float[]{1, 0.1f});
        add("short[]", new short[]{1, -300});
        add("char[]", new char[]{'a', '\u20ac'});
        add("boolean[]", new boolean[]{true, false});
        add("String[]", new String[]{"a", null, ""});
        add("Integer[]", new Integer[]{1, null});
        add("Object[]", new Object[]{1, "a", 2.5, null});
        add("int[][]", new int[][]{{1, 2}, {3}});
        add("Leaf[]", new ProbeLeaf[]{new ProbeLeaf("a", 1), null});
    }

    private void addCollections() {
        add("list empty", new ArrayList<>());
        add("list of ints", new ArrayList<>(List.of(1, 2)));
        add("list mixed", Arrays.asList(1, 2L, "two", 3.5, 0.5f, null, true, 'c', (byte) 1, (short) 2));
        add("list of List.of", List.of("a", "b"));
        add("list of lists", List.of(List.of(1), List.of(), List.of(List.of(2))));
        add("list of maps", List.of(map("a", 1), map("b", map("c", 2))));
        add("list of leaves", List.of(new ProbeLeaf("a", 1), new ProbeLeaf("b", 2)));
        add("list of dates", List.of(LocalDate.parse("2024-01-15"), new UUID(1, 2), ProbeSide.SELL, new BigDecimal("1.5")));
        add("set empty", new LinkedHashSet<>());
        add("set", new LinkedHashSet<>(List.of("a", "b")));
        add("set sorted", new TreeSet<>(List.of(2, 1)));
        add("set in a list", List.of(new LinkedHashSet<>(List.of(1))));
        add("collection unmodifiable", Collections.unmodifiableList(List.of(1)));
    }

    private void addMaps() {
        add("map empty", new LinkedHashMap<>());
        add("map", map("a", 1, "b", "two", "c", null));
        add("map nested", map("a", map("b", map("c", 1)), "d", List.of(map("e", 2))));
        add("map of names", map("", 1, "12", 2, "with space", 3, "caf\u00e9", 4, "k".repeat(40), 5));
        add("map of int keys", map(1, "one", 300, "more"));
        add("map of other keys", map(2.5, 1, true, 2, LocalDate.parse("2024-01-15"), 3, ProbeSide.BUY, 4));
        add("map of leaf keys", map(new ProbeLeaf("a", 1), "x"));
        add("map of null key", map(null, 1));
        add("map sorted", new TreeMap<>(map("b", 2, "a", 1)));
        add("map sorted of int keys", new TreeMap<>(map(2, "b", 1, "a")));
        add("map of enum keys", new EnumMap<>(Map.of(ProbeSide.BUY, 1)));
        add("map of leaves", map("x", new ProbeLeaf("a", 1)));
        add("map of arrays", map("ints", new int[]{1}, "bytes", new byte[]{1, 2}, "texts", new String[]{"a"}));
    }

    private void addOthers() {
        add("Leaf", new ProbeLeaf("bob", 3));
        add("Leaf of nothing", new ProbeLeaf());
        add("serializable BitSet", BitSet.valueOf(new long[]{5}));
        add("throwable", throwable());
        probes.add(new Probe("object declared as Leaf", "write(\"f\").object(Leaf.class, leaf)", false,
                wire -> wire.write("f").object(ProbeLeaf.class, new ProbeLeaf("bob", 3)),
                wire -> wire.read("f").object(ProbeLeaf.class)));
        probes.add(new Probe("object declared as Object", "write(\"f\").object(Object.class, leaf)", false,
                wire -> wire.write("f").object(Object.class, new ProbeLeaf("bob", 3)),
                wire -> wire.read("f").object(Object.class)));
        probes.add(new Probe("typedMarshallable", "write(\"f\").typedMarshallable(leaf)", false,
                wire -> wire.write("f").typedMarshallable(new ProbeLeaf("bob", 3)),
                wire -> wire.read("f").typedMarshallable()));
        probes.add(new Probe("marshallable", "write(\"f\").marshallable(leaf)", false,
                wire -> wire.write("f").marshallable(new ProbeLeaf("bob", 3)),
                wire -> wire.read("f").object(ProbeLeaf.class)));
        probes.add(new Probe("typePrefix of a text", "write(\"f\").typePrefix(\"T\").text(…)", false,
                wire -> wire.write("f").typePrefix("T").text("x"), null));
        probes.add(new Probe("typePrefix of nothing known", "write(\"f\").typePrefix(\"Nowhere\").marshallable(…)", false,
                wire -> wire.write("f").typePrefix("Nowhere").marshallable(inner -> inner.write("a").int32(1)), null));
    }

    /** Its stack is cut to one frame that does not change. */
    private static Throwable throwable() {
        Throwable thrown = new IllegalStateException("it broke");
        thrown.setStackTrace(new StackTraceElement[]{new StackTraceElement("Market", "buy", "Market.java", 12)});
        return thrown;
    }

    private void add(String name, Object value) {
        Class<?> type = value == null ? Object.class : value.getClass();
        probes.add(new Probe("object " + name, "write(\"f\").object(x)", false,
                wire -> wire.write("f").object(value), wire -> wire.read("f").object(type)));
    }

    private static Map<Object, Object> map(Object... keysAndValues) {
        Map<Object, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < keysAndValues.length; i += 2)
            map.put(keysAndValues[i], keysAndValues[i + 1]);
        return map;
    }
}
