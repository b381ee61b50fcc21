package quire.interop;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.wire.ValueOut;

/** Probes of objects of {@link ProbeTypes}, each written as {@code object(value)} and, with its type declared, bare. */
final class ProbeMessages {
    private final List<Probe> probes = new ArrayList<>();

    static List<Probe> all() {
        ProbeMessages messages = new ProbeMessages();
        messages.add("flat of defaults", new ProbeTypes.Flat());
        messages.add("flat", flat());
        messages.add("flat of limits", limits());
        messages.add("boxed of nothing", new ProbeTypes.Boxed());
        messages.add("boxed", boxed());
        messages.add("times of nothing", new ProbeTypes.Times());
        messages.add("times", times());
        messages.add("converted", converted());
        messages.add("nested of nothing", new ProbeTypes.Nested());
        messages.add("nested", nested());
        messages.add("collections of nothing", new ProbeTypes.Collections());
        messages.add("collections", collections());
        messages.add("arrays of nothing", new ProbeTypes.Arrays());
        messages.add("arrays", arrays());
        messages.add("child", child());
        messages.add("generic of an int", generic(5));
        messages.add("generic of a text", generic("x"));
        messages.add("generic of a leaf", generic(new ProbeLeaf("bob", 3)));
        messages.add("configuration of defaults", new ProbeTypes.Configuration());
        messages.add("configuration", configuration());
        messages.add("by hand", byHand());
        messages.add("without an alias", new ProbeTypes.Unnamed());
        messages.add("fixed of defaults", new ProbeTypes.Fixed());
        messages.add("fixed", fixed());
        messages.add("fixed of numbers", fixedNumbers());
        messages.add("fixed with objects of nothing", new ProbeTypes.FixedObjects());
        messages.add("fixed with objects", fixedObjects());
        return messages.probes;
    }

    /** The object by a method or a field that is declared Object, and by one that is declared of its class. */
    private void add(String name, Object value) {
        probes.add(new Probe("message " + name, "write(\"f\").object(x)", false,
                wire -> wire.write("f").object(value), wire -> wire.read("f").object()));
        probes.add(new Probe("message " + name + ", declared", "write(\"f\").object(X.class, x)", false,
                wire -> writeDeclared(wire.write("f"), value), wire -> wire.read("f").object(value.getClass())));
    }

    private static <T> void writeDeclared(ValueOut out, T value) {
        @SuppressWarnings("unchecked")
        Class<T> type = (Class<T>) value.getClass();
        out.object(type, value);
    }

    private static ProbeTypes.Flat flat() {
        ProbeTypes.Flat flat = new ProbeTypes.Flat();
        flat.flag = true;
        flat.tiny = -1;
        flat.small = 300;
        flat.letter = 'x';
        flat.number = 70_000;
        flat.large = 1L << 40;
        flat.single = 0.1f;
        flat.price = 101.25;
        flat.text = "EURUSD";
        return flat;
    }

    private static ProbeTypes.Flat limits() {
        ProbeTypes.Flat flat = new ProbeTypes.Flat();
        flat.tiny = Byte.MIN_VALUE;
        flat.small = Short.MIN_VALUE;
        flat.letter = '\u20ac';
        flat.number = Integer.MIN_VALUE;
        flat.large = Long.MIN_VALUE;
        flat.single = Float.NaN;
        flat.price = Double.NEGATIVE_INFINITY;
        flat.text = "";
        return flat;
    }

    private static ProbeTypes.Boxed boxed() {
        ProbeTypes.Boxed boxed = new ProbeTypes.Boxed();
        boxed.flag = true;
        boxed.tiny = 5;
        boxed.small = 5;
        boxed.letter = 'x';
        boxed.number = 5;
        boxed.large = 5L;
        boxed.single = 5f;
        boxed.price = 5.0;
        return boxed;
    }

    private static ProbeTypes.Times times() {
        ProbeTypes.Times times = new ProbeTypes.Times();
        times.date = LocalDate.of(2024, 1, 15);
        times.time = LocalTime.of(10, 30);
        times.dateTime = LocalDateTime.of(2024, 1, 15, 10, 30);
        times.zoned = ZonedDateTime.of(times.dateTime, ZoneId.of("Europe/Paris"));
        times.instant = Instant.ofEpochSecond(1_705_314_600);
        times.duration = Duration.ofSeconds(90);
        times.uuid = new UUID(1, 2);
        times.decimal = new BigDecimal("1.50");
        times.integer = new BigInteger("123456789012345678901234567890");
        times.side = ProbeSide.SELL;
        times.type = ProbeLeaf.class;
        return times;
    }

    private static ProbeTypes.Converted converted() {
        ProbeTypes.Converted converted = new ProbeTypes.Converted();
        converted.at = 1_700_000_000_123_456_789L;
        converted.name = 123_456;
        return converted;
    }

    private static ProbeTypes.Nested nested() {
        ProbeTypes.Nested nested = new ProbeTypes.Nested();
        nested.leaf = new ProbeLeaf("bob", 3);
        nested.inner = new ProbeTypes.Nested();
        nested.inner.any = 5;
        nested.any = new ProbeLeaf("any", 4);
        nested.base = child();
        return nested;
    }

    private static ProbeTypes.Collections collections() {
        ProbeTypes.Collections collections = new ProbeTypes.Collections();
        collections.texts.add("a");
        collections.texts.add(null);
        collections.longs.addAll(List.of(1L, 300L, 1L << 40));
        collections.doubles.addAll(List.of(1.0, 0.1));
        collections.leaves.add(new ProbeLeaf("a", 1));
        collections.sides.add(ProbeSide.BUY);
        collections.objects.addAll(List.of(1, "a", new ProbeLeaf("b", 2)));
        collections.lists.add(List.of(1L, 2L));
        collections.set.add("s");
        collections.counts.put("one", 1L);
        collections.names.put(1L, "one");
        collections.prices.put(ProbeSide.BUY, 1.5);
        collections.byName.put("a", new ProbeLeaf("a", 1));
        return collections;
    }

    private static ProbeTypes.Arrays arrays() {
        ProbeTypes.Arrays arrays = new ProbeTypes.Arrays();
        arrays.bytes = new byte[]{1, 2, -1};
        arrays.ints = new int[]{1, 300, -70_000};
        arrays.longs = new long[]{1, 1L << 40};
        arrays.doubles = new double[]{1, 0.1};
        arrays.texts = new String[]{"a", null};
        arrays.leaves = new ProbeLeaf[]{new ProbeLeaf("a", 1)};
        arrays.store = Bytes.wrapForRead(new byte[]{3, 4});
        return arrays;
    }

    private static ProbeTypes.Child child() {
        ProbeTypes.Child child = new ProbeTypes.Child();
        child.a = 1;
        child.b = 2;
        child.c = 3;
        child.z = 4;
        return child;
    }

    private static <T> ProbeTypes.Generic<T> generic(T value) {
        ProbeTypes.Generic<T> generic = new ProbeTypes.Generic<>();
        generic.value = value;
        return generic;
    }

    private static ProbeTypes.Configuration configuration() {
        ProbeTypes.Configuration configuration = new ProbeTypes.Configuration();
        configuration.size = 11;
        configuration.fast = true;
        return configuration;
    }

    private static ProbeTypes.ByHand byHand() {
        ProbeTypes.ByHand byHand = new ProbeTypes.ByHand();
        byHand.number = 5;
        byHand.text = "five";
        return byHand;
    }

    private static ProbeTypes.Fixed fixed() {
        ProbeTypes.Fixed fixed = new ProbeTypes.Fixed();
        fixed.flag = true;
        fixed.tiny = -1;
        fixed.small = 300;
        fixed.letter = 'x';
        fixed.number = 70_000;
        fixed.large = 1L << 40;
        fixed.single = 0.1f;
        fixed.price = 101.25;
        fixed.text = "caf\u00e9";
        return fixed;
    }

    private static ProbeTypes.FixedNumbers fixedNumbers() {
        ProbeTypes.FixedNumbers fixed = new ProbeTypes.FixedNumbers();
        fixed.id = 1L << 40;
        fixed.price = 101.25;
        fixed.quantity = 300;
        fixed.venue = -2;
        fixed.side = 1;
        fixed.firm = true;
        return fixed;
    }

    private static ProbeTypes.FixedObjects fixedObjects() {
        ProbeTypes.FixedObjects fixed = new ProbeTypes.FixedObjects();
        fixed.leaf = new ProbeTypes.FixedLeaf();
        fixed.leaf.count = 3;
        fixed.leaf.name = "bob";
        fixed.boxed = 5L;
        fixed.side = ProbeSide.SELL;
        fixed.texts.add("a");
        fixed.counts.put("one", 1L);
        fixed.doubles = new double[]{1, 0.1};
        fixed.bytes = new byte[]{1, 2, -1};
        return fixed;
    }
}
