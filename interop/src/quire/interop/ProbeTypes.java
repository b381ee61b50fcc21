package quire.interop;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.core.pool.ClassAliasPool;
import net.openhft.chronicle.wire.AbstractMarshallableCfg;
import net.openhft.chronicle.wire.Base85LongConverter;
import net.openhft.chronicle.wire.BytesInBinaryMarshallable;
import net.openhft.chronicle.wire.LongConversion;
import net.openhft.chronicle.wire.NanoTimestampLongConverter;
import net.openhft.chronicle.wire.SelfDescribingMarshallable;
import net.openhft.chronicle.wire.WireIn;
import net.openhft.chronicle.wire.WireOut;

/** The objects of {@link ProbeMessages}: public fields, which the library finds by itself. */
public final class ProbeTypes {
    private ProbeTypes() {
    }

    /** All have an alias but {@link Unnamed}. */
    static void addAliases() {
        ClassAliasPool.CLASS_ALIASES.addAlias(ProbeSide.class, ProbeLeaf.class);
        ClassAliasPool.CLASS_ALIASES.addAlias(Flat.class, "Flat");
        ClassAliasPool.CLASS_ALIASES.addAlias(Boxed.class, "Boxed");
        ClassAliasPool.CLASS_ALIASES.addAlias(Times.class, "Times");
        ClassAliasPool.CLASS_ALIASES.addAlias(Converted.class, "Converted");
        ClassAliasPool.CLASS_ALIASES.addAlias(Nested.class, "Nested");
        ClassAliasPool.CLASS_ALIASES.addAlias(Collections.class, "Collections");
        ClassAliasPool.CLASS_ALIASES.addAlias(Arrays.class, "Arrays");
        ClassAliasPool.CLASS_ALIASES.addAlias(Child.class, "Child");
        ClassAliasPool.CLASS_ALIASES.addAlias(Generic.class, "Generic");
        ClassAliasPool.CLASS_ALIASES.addAlias(Configuration.class, "Configuration");
        ClassAliasPool.CLASS_ALIASES.addAlias(ByHand.class, "ByHand");
        ClassAliasPool.CLASS_ALIASES.addAlias(FixedLeaf.class, "FixedLeaf");
        ClassAliasPool.CLASS_ALIASES.addAlias(Fixed.class, "Fixed");
        ClassAliasPool.CLASS_ALIASES.addAlias(FixedNumbers.class, "FixedNumbers");
        ClassAliasPool.CLASS_ALIASES.addAlias(FixedObjects.class, "FixedObjects");
    }

    /** Primitives and a text. */
    public static final class Flat extends SelfDescribingMarshallable {
        public boolean flag;
        public byte tiny;
        public short small;
        public char letter;
        public int number;
        public long large;
        public float single;
        public double price;
        public String text;
        public transient int left = 5;
    }

    /** The same, boxed. */
    public static final class Boxed extends SelfDescribingMarshallable {
        public Boolean flag;
        public Byte tiny;
        public Short small;
        public Character letter;
        public Integer number;
        public Long large;
        public Float single;
        public Double price;
    }

    /** Dates, times and other values with a text of their own. */
    public static final class Times extends SelfDescribingMarshallable {
        public LocalDate date;
        public LocalTime time;
        public LocalDateTime dateTime;
        public ZonedDateTime zoned;
        public Instant instant;
        public Duration duration;
        public UUID uuid;
        public BigDecimal decimal;
        public BigInteger integer;
        public ProbeSide side;
        public Class<?> type;
    }

    /** Longs with a text of their own. */
    public static final class Converted extends SelfDescribingMarshallable {
        @LongConversion(NanoTimestampLongConverter.class)
        public long at;
        @LongConversion(Base85LongConverter.class)
        public long name;
    }

    /** Objects in an object, by declared type and not. */
    public static final class Nested extends SelfDescribingMarshallable {
        public ProbeLeaf leaf;
        public Nested inner;
        public Object any;
        public Base base;
    }

    /** Collections with and without a declared type of the elements. */
    public static final class Collections extends SelfDescribingMarshallable {
        public List<String> texts = new ArrayList<>();
        public List<Long> longs = new ArrayList<>();
        public List<Double> doubles = new ArrayList<>();
        public List<ProbeLeaf> leaves = new ArrayList<>();
        public List<ProbeSide> sides = new ArrayList<>();
        public List<Object> objects = new ArrayList<>();
        public List<List<Long>> lists = new ArrayList<>();
        public Set<String> set = new LinkedHashSet<>();
        public Map<String, Long> counts = new LinkedHashMap<>();
        public Map<Long, String> names = new LinkedHashMap<>();
        public Map<ProbeSide, Double> prices = new LinkedHashMap<>();
        public Map<String, ProbeLeaf> byName = new LinkedHashMap<>();
    }

    /** Arrays and blobs. */
    public static final class Arrays extends SelfDescribingMarshallable {
        public byte[] bytes;
        public int[] ints;
        public long[] longs;
        public double[] doubles;
        public String[] texts;
        public ProbeLeaf[] leaves;
        public Bytes<?> store;
    }

    /** What a field can be declared as. */
    public static class Base extends SelfDescribingMarshallable {
        public int z;
        public int b;
    }

    /** It has the fields of its base too. */
    public static final class Child extends Base {
        public int c;
        public int a;
    }

    /** Of any type. */
    public static final class Generic<T> extends SelfDescribingMarshallable {
        public T value;
    }

    /** It leaves out what is as it is by default. */
    public static final class Configuration extends AbstractMarshallableCfg {
        public int size = 10;
        public String name = "none";
        public boolean fast;
    }

    /** It writes and reads itself. */
    public static final class ByHand extends SelfDescribingMarshallable {
        public int number;
        public String text;

        @Override
        public void writeMarshallable(WireOut wire) {
            wire.write("n").int32(number).write("t").text(text);
        }

        @Override
        public void readMarshallable(WireIn wire) {
            number = wire.read("n").int32();
            text = wire.read("t").text();
        }
    }

    /** Without an alias. */
    public static final class Unnamed extends SelfDescribingMarshallable {
        public int number;
    }

    /** Of fixed layout. */
    public static final class FixedLeaf extends BytesInBinaryMarshallable {
        public int count;
        public String name;
    }

    /** Of fixed layout: everything that has one. */
    public static final class Fixed extends BytesInBinaryMarshallable {
        public boolean flag;
        public byte tiny;
        public short small;
        public char letter;
        public int number;
        public long large;
        public float single;
        public double price;
        public String text;
    }

    /** Of fixed layout: numbers alone. */
    public static final class FixedNumbers extends BytesInBinaryMarshallable {
        public long id;
        public double price;
        public int quantity;
        public short venue;
        public byte side;
        public boolean firm;
    }

    /** Of fixed layout, with objects in it. */
    public static final class FixedObjects extends BytesInBinaryMarshallable {
        public FixedLeaf leaf;
        public Long boxed;
        public ProbeSide side;
        public List<String> texts = new ArrayList<>();
        public Map<String, Long> counts = new LinkedHashMap<>();
        public double[] doubles;
        public byte[] bytes;
    }
}
