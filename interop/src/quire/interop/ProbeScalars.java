package quire.interop;

import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.function.BiConsumer;
import java.util.function.Function;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.wire.ValueIn;
import net.openhft.chronicle.wire.ValueOut;

/** Probes of {@code wire.write("f")} and one call that writes a single value. */
final class ProbeScalars {
    private static final long[] LONGS = {
        0, 1, 127, 128, 255, 256, 32767, 32768, 65535, 65536, (1L << 31) - 1, 1L << 31, (1L << 32) - 1, 1L << 32,
        (1L << 32) + 1, 1L << 53, (1L << 53) + 1, 1_700_000_000_000_000_000L, Long.MAX_VALUE - 1, Long.MAX_VALUE, -1, -128,
        -129, -32768, -32769, -(1L << 31), -(1L << 31) - 1, -(1L << 33), -(1L << 53) - 1, Long.MIN_VALUE + 1, Long.MIN_VALUE};
    private static final int[] INTS = {0, 255, 256, 32768, 65536, Integer.MAX_VALUE, -1, -129, -32769, Integer.MIN_VALUE};
    private static final double[] DOUBLES = {
        0.0, -0.0, 1, 255, 256, 65535, 65536, 16777217, 4294967295.0, 4294967296.0, 4294967297.0, 1e15, 1e300, -1, -128,
        -129, -32768, -32769, -40000, -16777217, -2147483648.0, -2147483649.0, 1.5, 0.25, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6,
        1e-7, -2.5, -0.000001, 3.14159, 123456.789, 34359.738367, 34359.738368, -34359.738367, -34359.738368,
        4398046.511103, 4398046.511104, 4398046.5, Math.PI, 0.1f, 4.9e-324, Double.MAX_VALUE, Double.NaN,
        Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY};
    private static final float[] FLOATS = {
        0f, -0f, 1, 255, 256, 65535, 65536, 16777216, 1e10f, -1, -129, -32769, 1.5f, 0.1f, 0.01f, 0.001f, 1e-6f, 3.14f,
        -2.5f, -0.01f, 2.097151f, 2.097152f, -0.016384f, 123.456f, Float.MIN_VALUE, Float.MAX_VALUE, Float.NaN,
        Float.NEGATIVE_INFINITY};

    private final List<Probe> probes = new ArrayList<>();

    static List<Probe> all() {
        ProbeScalars scalars = new ProbeScalars();
        scalars.addIntegers();
        scalars.addFloats();
        scalars.addTexts();
        scalars.addTimes();
        scalars.addBlobs();
        return scalars.probes;
    }

    private void addIntegers() {
        for (long value : LONGS)
            add("int64 " + value, (out, v) -> out.int64(v), value, ValueIn::int64);
        for (int value : INTS)
            add("int32 " + value, (out, v) -> out.int32(v), value, ValueIn::int32);
        for (byte value : new byte[]{-128, -1, 0, 127})
            add("int8 " + value, (out, v) -> out.int8(v), value, ValueIn::int8);
        for (short value : new short[]{-32768, -1, 255, 256})
            add("int16 " + value, (out, v) -> out.int16(v), value, ValueIn::int16);
        add("uint8 255", (out, v) -> out.uint8(v), 255, ValueIn::int32);
        add("uint16 65535", (out, v) -> out.uint16(v), 65535, ValueIn::int32);
        add("uint32 4294967295", (out, v) -> out.uint32(v), 4294967295L, ValueIn::int64);
        for (long value : new long[]{0, 1, 255, 0x1234abcdefL, -1})
            add("int64_0x " + value, (out, v) -> out.int64_0x(v), value, ValueIn::int64);
        add("fixedInt8 5", (out, v) -> out.fixedInt8(v), (byte) 5, ValueIn::int8);
        add("fixedInt16 5", (out, v) -> out.fixedInt16(v), (short) 5, ValueIn::int16);
        add("fixedInt32 5", (out, v) -> out.fixedInt32(v), 5, ValueIn::int32);
        add("fixedInt64 5", (out, v) -> out.fixedInt64(v), 5L, ValueIn::int64);
        add("bool true", (out, v) -> out.bool(v), true, ValueIn::bool);
        add("bool false", (out, v) -> out.bool(v), false, ValueIn::bool);
        add("bool null", (out, v) -> out.bool(v), (Boolean) null, null);
    }

    private void addFloats() {
        for (double value : DOUBLES)
            add("float64 " + value, (out, v) -> out.float64(v), value, ValueIn::float64);
        for (float value : FLOATS)
            add("float32 " + value, (out, v) -> out.float32(v), value, ValueIn::float32);
        add("fixedFloat32 1", (out, v) -> out.fixedFloat32(v), 1f, ValueIn::float32);
        add("fixedFloat64 1", (out, v) -> out.fixedFloat64(v), 1.0, ValueIn::float64);
    }

    private void addTexts() {
        addText("empty", "");
        addText("null", null);
        addText("one letter", "a");
        addText("31 letters", "x".repeat(31));
        addText("32 letters", "x".repeat(32));
        addText("127 letters", "x".repeat(127));
        addText("128 letters", "x".repeat(128));
        addText("300 letters", "x".repeat(300));
        addText("15 letters of two bytes", "\u00e9".repeat(15));
        addText("16 letters of two bytes", "\u00e9".repeat(16));
        addText("31 letters of two bytes", "\u00e9".repeat(31));
        addText("11 letters of three bytes", "\u20ac".repeat(11));
        addText("surrogates", "a\ud83d\ude00b");
        addText("half a surrogate", "\ud83d");
        addText("zero", "a\0b");
        addText("lines", "one\ntwo\r\n\tthree\n");
        for (String text : new String[]{"true", "null", "~", "12", "-1", "1e3", "NaN", " x", "x ", "a b", "a: b", "a,b", "# a",
                "- a", "[a]", "{a}", "!a", "&a", "*a", "\"quoted\"", "it's", "\"it's\"", "back\\slash", "a#b", "a?b", "<<", "=",
                "\u007f", "\u0080", "\u00a0", "\u2028", "\u0001\u001b", "%a", "@a", "`a", "|", ">"})
            addText("'" + text + "'", text);
        add("character a", (out, v) -> out.character(v), 'a', ValueIn::character);
        add("character euro", (out, v) -> out.character(v), '\u20ac', ValueIn::character);
        add("character zero", (out, v) -> out.character(v), '\0', ValueIn::character);
        add("utf8 of a", (out, v) -> out.utf8(v), (int) 'a', null);
        add("utf8 of euro", (out, v) -> out.utf8(v), 0x20ac, null);
    }

    private void addTimes() {
        for (String time : new String[]{"00:00", "10:30", "10:30:15", "10:30:15.120", "10:30:15.123456789"})
            add("time " + time, (out, v) -> out.time(v), LocalTime.parse(time), ValueIn::time);
        for (String date : new String[]{"2024-01-15", "0001-01-01", "9999-12-31", "-0044-03-15", "+12024-01-15"})
            add("date " + date, (out, v) -> out.date(v), LocalDate.parse(date), ValueIn::date);
        for (String time : new String[]{"2024-01-15T10:30", "2024-01-15T10:30:15.000001"})
            add("dateTime " + time, (out, v) -> out.dateTime(v), LocalDateTime.parse(time), ValueIn::dateTime);
        for (String zone : new String[]{"Z", "UTC", "+01:00", "Europe/Paris"})
            add("zonedDateTime in " + zone, (out, v) -> out.zonedDateTime(v),
                    ZonedDateTime.of(2024, 1, 15, 10, 30, 0, 0, ZoneId.of(zone)), ValueIn::zonedDateTime);
        add("uuid", (out, v) -> out.uuid(v), new UUID(0x0123456789abcdefL, 0x8899aabbccddeeffL), ValueIn::uuid);
        add("typeLiteral of a class", (out, v) -> out.typeLiteral(v), String.class, null);
        add("typeLiteral of a name", (out, v) -> out.typeLiteral(v), (CharSequence) "Nowhere", null);
        add("typeLiteral null", (out, v) -> out.typeLiteral(v), (CharSequence) null, null);
        add("asEnum", (out, v) -> out.asEnum(v), ProbeSide.SELL, in -> in.asEnum(ProbeSide.class));
        add("asEnum null", (out, v) -> out.asEnum(v), (ProbeSide) null, in -> in.asEnum(ProbeSide.class));
    }

    private void addBlobs() {
        for (int length : new int[]{0, 1, 3, 254, 255, 256, 65534, 65535})
            add("bytes of " + length, (out, v) -> out.bytes(v), bytes(length), ValueIn::bytes);
        add("bytes null", (out, v) -> out.bytes(v), (byte[]) null, ValueIn::bytes);
        add("bytes of text", (out, v) -> out.bytes(v), "text".getBytes(), ValueIn::bytes);
        add("bytes with a type", (out, v) -> out.bytes("secret", v), bytes(3), null);
        add("bytes of a store", (out, v) -> out.bytes(v), Bytes.wrapForRead(bytes(3)), ValueIn::bytes);
        add("bytesLiteral of 3", (out, v) -> out.bytesLiteral(v), Bytes.wrapForRead(bytes(3)), null);
        for (String codec : new String[]{"gzip", "lzw", "snappy", "!binary"})
            for (int length : new int[]{4, 300})
                add("compress " + codec + " of " + length, (out, v) -> out.compress(codec, Bytes.wrapForRead(v)),
                        "abcd".repeat(length / 4).getBytes(), ValueIn::bytes);
    }

    private void addText(String name, String text) {
        add("text " + name, (out, v) -> out.text(v), text, ValueIn::text);
    }

    private <V> void add(String name, BiConsumer<ValueOut, V> call, V value, Function<ValueIn, Object> read) {
        String called = name.split(" ", 2)[0];
        probes.add(new Probe(name, "write(\"f\")." + called + "(…)", false,
                wire -> call.accept(wire.write("f"), value),
                read == null ? null : wire -> read.apply(wire.read("f"))));
    }

    /** 0, 1, 2 …, and 255 as the last one. */
    private static byte[] bytes(int length) {
        byte[] bytes = new byte[length];
        for (int i = 0; i < length; i++)
            bytes[i] = (byte) (i == length - 1 ? 255 : i);
        return bytes;
    }
}
