package quire.interop;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/** {@code --name value} and {@code --flag} arguments; a name nobody asked for is an error at the end. */
public final class Options {
    private final Map<String, String> values = new LinkedHashMap<>();
    private final Set<String> asked = new HashSet<>();

    Options(String... arguments) {
        for (int i = 0; i < arguments.length; i++) {
            if (!arguments[i].startsWith("--"))
                throw new UsageException("expected --name, found: " + arguments[i]);
            boolean hasValue = i + 1 < arguments.length && !arguments[i + 1].startsWith("--");
            values.put(arguments[i].substring(2), hasValue ? arguments[++i] : "true");
        }
    }

    /** The same options with another value for one of them. */
    Options with(String name, String value) {
        Options other = new Options();
        other.values.putAll(values);
        other.values.put(name, value);
        return other;
    }

    public boolean has(String name) {
        asked.add(name);
        return values.containsKey(name);
    }

    public boolean flag(String name) {
        return Boolean.parseBoolean(text(name, "false"));
    }

    public String text(String name) {
        if (!has(name))
            throw new UsageException("missing --" + name);
        return values.get(name);
    }

    public String text(String name, String orElse) {
        return has(name) ? values.get(name) : orElse;
    }

    public long number(String name) {
        try {
            return Long.decode(text(name));
        } catch (NumberFormatException e) {
            throw new UsageException("not a number: --" + name + " " + text(name));
        }
    }

    public long number(String name, long orElse) {
        return has(name) ? number(name) : orElse;
    }

    /** A message index as the peers print it: hexadecimal without a prefix. */
    public long index(String name) {
        return Long.parseUnsignedLong(text(name), 16);
    }

    void rejectUnused() {
        Set<String> unused = new HashSet<>(values.keySet());
        unused.removeAll(asked);
        if (!unused.isEmpty())
            throw new UsageException("options without a meaning here: " + unused);
    }

    public static final class UsageException extends RuntimeException {
        private static final long serialVersionUID = 1;

        public UsageException(String message) {
            super(message);
        }
    }
}
