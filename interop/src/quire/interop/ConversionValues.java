package quire.interop;

import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;

/** Encoded values for {@link Conversions}, by name: one or more of every code of the wire, written byte by byte. */
final class ConversionValues {
    private final Map<String, String> values = new LinkedHashMap<>();

    ConversionValues() {
        addIntegers();
        addFloats();
        addTexts();
        addTimes();
        addBlobs();
        addNested();
        addTyped();
        addOthers();
    }

    /** Hex by name. */
    Map<String, String> all() {
        return values;
    }

    private void addIntegers() {
        add("small 5", "05");
        add("small 127", "7f");
        add("u8 0", "a100");
        add("u8 1", "a101");
        add("u8 65", "a141");
        add("u8 255", "a1ff");
        add("u16 256", "a20001");
        add("u16 65535", "a2ffff");
        add("u32 5", "a305000000");
        add("u32 2^31", "a300000080");
        add("u32 2^32-1", "a3ffffffff");
        add("i8 -1", "a4ff");
        add("i8 -128", "a480");
        add("i16 256", "a50001");
        add("i16 -32768", "a50080");
        add("i32 -1", "a6ffffffff");
        add("i32 5", "a605000000");
        add("i32 2^31-1", "a6ffffff7f");
        add("i32 -2^31", "a600000080");
        add("i64 5", "a70500000000000000");
        add("i64 -1", "a7ffffffffffffffff");
        add("i64 2^53+1", "a70100000000002000");
        add("i64 2^63-1", "a7ffffffffffffff7f");
        add("i64 -2^63", "a70000000000000080");
        add("i64_0x 0x1234abcdef", "afefcdab3412000000");
        add("set low i8 255", "a8ff");
        add("set low i16 65535", "a9ffff");
        add("false", "b0");
        add("true", "b1");
    }

    private void addFloats() {
        add("f32 1.5", "900000c03f");
        add("f32 3", "9000004040");
        add("f32 -0.0", "9000000080");
        add("f32 0.1", "90cdcccc3d");
        add("f32 2^32", "900000804f");
        add("f32 -2^33", "90000000d0");
        add("f32 NaN", "900000c07f");
        add("f32 infinity", "900000807f");
        add("f32 -infinity", "90000080ff");
        add("f64 1.5", "91000000000000f83f");
        add("f64 -1", "91000000000000f0bf");
        add("f64 0.1", "919a9999999999b93f");
        add("f64 pi", "91182d4454fb210940");
        add("f64 2^63", "91000000000000e043");
        add("f64 1e300", "919c7500883ce4377e");
        add("f64 NaN", "91000000000000f87f");
        add("f64 -infinity", "91000000000000f0ff");
        add("stop 2 1.5", "929601");
        add("stop 2 -2.5", "92f98100");
        add("stop 2 3", "92ac02");
        add("stop 4 0.001", "940a");
        add("stop 6 0.000001", "9601");
        add("stop 6 3.14159", "96d6dfbf01");
    }

    private void addTexts() {
        for (String text : new String[]{"", "5", "-7", "300", "+5", " 5", "5 ", "1.0", "1.5", "1e3", "0x1F", "1_000",
                "9223372036854775808", "123456789012345678901234567890", "NaN", "Infinity", "true", "false", "yes", "Y",
                "no", "null", "A", "abc", "\u00e9", "BUY", "buy", "HOLD", "2024-01-15", "10:30", "10:30:00.123456789",
                "2024-01-15T10:30", "2024-01-15T10:30:00Z", "2024-01-15T10:30+01:00[Europe/Paris]", "PT1M30S", "P1D",
                "00000000-0000-0001-0000-000000000002", "1,2", "[1, 2]", "{a: 1}", "int", "java.lang.String"})
            add("text '" + text + "'", text(text));
        add("long form of text 'abc'", "b803" + "616263");
        add("long form of null text", "b88000");
        add("null", "bb");
    }

    private void addTimes() {
        add("time 10:30", "b2" + sized("10:30"));
        add("time 10:30:15.123456789", "b2" + sized("10:30:15.123456789"));
        add("date 2024-01-15", "b3" + sized("2024-01-15"));
        add("dateTime 2024-01-15T10:30", "b4" + sized("2024-01-15T10:30"));
        add("zonedDateTime 2024-01-15T10:30Z", "b5" + sized("2024-01-15T10:30Z"));
        add("zonedDateTime in Paris", "b5" + sized("2024-01-15T10:30+01:00[Europe/Paris]"));
        add("uuid 1, 2", "a0" + "0100000000000000" + "0200000000000000");
    }

    private void addBlobs() {
        add("blob of none", "80018a");
        add("blob 1, 2, 255", "80048a0102ff");
        add("blob of '5'", "80028a35");
        add("blob of 300 bytes", "812d018a" + "61".repeat(300));
        add("blob, 32-bit length", "82030000008a0102");
        add("bytes without a code", "800461626364");
        add("i64 array of 2, 1 used", nested("8d" + "0200000000000000" + "0100000000000000" + "0500000000000000"
                + "0000000000000000"));
        add("gzip of 1, 2, 255", type("gzip") + "80188a" + "1f8b08000000000002036364fa0f002a3eb7e103000000");
    }

    private void addNested() {
        add("empty list or map", "8200000000");
        add("list 1, 2", nested("a101a102"));
        add("list 1, 2 of 8-bit length", "8004a101a102");
        add("list 1, 2 of 16-bit length", "810400a101a102");
        add("list of boxed 1, 2", nested("a601000000a602000000"));
        add("list 'a', 'b'", nested("e161e162"));
        add("list '1', '2'", nested("e131e132"));
        add("list 1.5, null, true", nested("929601bbb1"));
        add("list of one 5", nested("a105"));
        add("list of one list of 5", nested(nested("a105")));
        add("map a: 1", nested("c161a101"));
        add("map a: 1, b: 'two'", nested("c161a101c162e374776f"));
        add("map of event names a: 1", nested("b90161a101"));
        add("map of event objects 5: 'x'", nested("bda105e178"));
        add("map of field numbers 1: 'x'", nested("ba01e178"));
        add("map of a long name", nested("b7" + sized("n".repeat(32)) + "a101"));
        add("map name: bob, count: 3", nested("c4" + hex("name") + "e3" + hex("bob") + "c5" + hex("count") + "a103"));
    }

    private void addTyped() {
        add("!byte 5", type("byte") + "a105");
        add("!int '5'", type("int") + "e135");
        add("!String 'x'", type("String") + "e178");
        add("!ProbeSide BUY", type("ProbeSide") + "e3" + hex("BUY"));
        add("!int[] 1, 2", type("int[]") + nested("a101a102"));
        add("!byte[] 1, 2", type("byte[]") + "80038a0102");
        add("!!oset 'a'", type("!oset") + nested("e161"));
        add("!!set 'a'", type("!set") + nested("e161"));
        add("!!omap a: 1", type("!omap") + nested("b90161a101"));
        add("!!seqmap", type("!seqmap") + nested("c161a101"));
        add("!ProbeLeaf", type("ProbeLeaf") + nested("c4" + hex("name") + "e3" + hex("bob")));
        add("!java.time.Instant", type("java.time.Instant") + text("2024-01-15T10:30:00Z"));
        add("!java.util.Date", type("java.util.Date") + text("2024-01-15T10:30:00.000 GMT"));
        add("!java.math.BigDecimal '1.50'", type("java.math.BigDecimal") + text("1.50"));
        add("!Nowhere 'x'", type("Nowhere") + "e178");
        add("!Nowhere map", type("Nowhere") + nested("c161a101"));
        add("type literal int", "bc" + sized("int"));
        add("type literal Nowhere", "bc" + sized("Nowhere"));
    }

    private void addOthers() {
        add("padding, u8 5", "8fa105");
        add("padding32 of 2, u8 5", "8e020000000000a105");
        add("comment, u8 5", "be" + sized("hi") + "a105");
        add("hint", "bfa105");
        add("reserved 83", "83");
        add("reserved 8b", "8b");
        add("reserved 9a", "9a");
        add("reserved aa", "aa");
        add("field anchor 87", "870161");
        add("anchor 88", "8801");
        add("updated alias 89", "8901");
    }

    private void add(String name, String hex) {
        HexFormat.of().parseHex(hex);
        values.put(name, hex);
    }

    private static String nested(String hex) {
        int size = hex.length() / 2;
        return String.format("82%02x%02x0000", size & 0xff, size >> 8) + hex;
    }

    private static String type(String name) {
        return "b6" + sized(name);
    }

    /** Text shorter than 128 bytes behind its length. */
    private static String sized(String text) {
        return String.format("%02x", text.getBytes(StandardCharsets.UTF_8).length) + hex(text);
    }

    private static String text(String text) {
        int size = text.getBytes(StandardCharsets.UTF_8).length;
        return size < 32 ? String.format("%02x", 0xe0 + size) + hex(text) : "b8" + sized(text);
    }

    private static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }
}
