package quire.interop;

import java.lang.reflect.Array;
import java.util.Collection;
import java.util.HexFormat;
import java.util.Map;
import java.util.StringJoiner;

import net.openhft.chronicle.bytes.BytesStore;

/** A value in words that another language can compare: {@code type:text}, and of its elements too. */
final class Described {
    private Described() {
    }

    static String of(Object value) {
        return value == null ? "null" : value.getClass().getSimpleName() + ":" + textOf(value);
    }

    /** Without the type in front. */
    static String textOf(Object value) {
        if (value instanceof byte[] bytes)
            return HexFormat.of().formatHex(bytes);
        if (value instanceof BytesStore<?, ?> bytes)
            return HexFormat.of().formatHex(bytes.toByteArray());
        if (value instanceof Map<?, ?> map)
            return entriesOf(map);
        if (value instanceof Collection<?> collection)
            return elementsOf(collection.toArray());
        if (value.getClass().isArray())
            return elementsOf(value);
        if (value instanceof Class<?> type)
            return type.getName();
        if (value instanceof Throwable thrown)
            return String.valueOf(thrown.getMessage());
        return value.toString();
    }

    /** What it came from, where wrapping it says nothing. */
    static String thrown(Throwable thrown) {
        return thrown.getClass().getName();
    }

    private static String entriesOf(Map<?, ?> map) {
        StringJoiner entries = new StringJoiner(", ", "{", "}");
        map.forEach((key, value) -> entries.add(of(key) + "=" + of(value)));
        return entries.toString();
    }

    private static String elementsOf(Object array) {
        StringJoiner elements = new StringJoiner(", ", "[", "]");
        for (int i = 0; i < Array.getLength(array); i++)
            elements.add(of(Array.get(array, i)));
        return elements.toString();
    }
}
