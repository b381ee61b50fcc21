package quire.interop;

import java.util.Collection;
import java.util.Map;
import java.util.StringJoiner;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** One JSON object on one line, from names and values in turn; a value can be a map or a list. */
public final class Json {
    private Json() {
    }

    public static String object(Object... namesAndValues) {
        StringJoiner fields = new StringJoiner(", ", "{", "}");
        for (int i = 0; i < namesAndValues.length; i += 2)
            fields.add(quote((String) namesAndValues[i]) + ": " + value(namesAndValues[i + 1]));
        return fields.toString();
    }

    private static String value(Object value) {
        if (value instanceof Map<?, ?> map)
            return object(map.entrySet().stream()
                    .flatMap(entry -> Stream.of(entry.getKey(), entry.getValue())).toArray());
        if (value instanceof Collection<?> list)
            return list.stream().map(Json::value).collect(Collectors.joining(", ", "[", "]"));
        return value instanceof Number || value instanceof Boolean || value == null
                ? String.valueOf(value) : quote(value.toString());
    }

    private static String quote(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        text.chars().forEach(c -> {
            if (c == '"' || c == '\\')
                quoted.append('\\').append((char) c);
            else if (c < 0x20 || c > 0x7e)
                quoted.append(String.format("\\u%04x", c));
            else
                quoted.append((char) c);
        });
        return quoted.append('"').toString();
    }
}
