package quire.interop;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Maps with every kind of value that {@code writeMap} takes from a foreign language: each is a function of its number. */
final class MapCases {
    private static final List<Map<String, Object>> CASES = List.of(
            map("none", null),
            map("yes", true, "no", false),
            map("zero", 0, "one", 1, "minus", -1, "least", Integer.MIN_VALUE, "greatest", Integer.MAX_VALUE),
            map("above", 1L << 31, "below", -(1L << 31) - 1, "least", Long.MIN_VALUE, "greatest", Long.MAX_VALUE),
            map("zero", 0.0, "minusZero", -0.0, "whole", 3.0, "tenth", 0.1, "pi", Math.PI, "huge", 1e300),
            map("nan", Double.NaN, "infinite", Double.POSITIVE_INFINITY, "minus", Double.NEGATIVE_INFINITY),
            map("empty", "", "ascii", "text", "accent", "caf\u00e9", "euro", "\u20ac", "face", "a\ud83d\ude00b"),
            map("of31", "x".repeat(31), "of32", "x".repeat(32), "of300", "x".repeat(300), "nul", "a\0b",
                    "lines", "\"quoted\"\n\tand: {more}, [of, it]\\"),
            map("three", new byte[]{1, 2, -1}, "none", new byte[0], "many", new byte[300]),
            map("mixed", Arrays.asList(1, "two", 3.5, null, true), "none", List.of(), "in", List.of(List.of(1), List.of())),
            map("inner", map("a", 1, "b", map("c", "deep")), "none", Map.of(), "listed", List.of(map("d", 1L << 40))),
            map("caf\u00e9", 1, "12", 2, "with space", 3, "k".repeat(40), 4));

    private MapCases() {
    }

    static Map<String, Object> numbered(long number) {
        return CASES.get((int) (number % CASES.size()));
    }

    private static Map<String, Object> map(Object... keysAndValues) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < keysAndValues.length; i += 2)
            map.put((String) keysAndValues[i], keysAndValues[i + 1]);
        return map;
    }
}
