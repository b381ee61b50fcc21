package quire.interop;

import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.bytes.MethodReader;
import net.openhft.chronicle.core.Jvm;
import net.openhft.chronicle.core.onoes.ExceptionKey;
import net.openhft.chronicle.core.pool.ClassAliasPool;
import net.openhft.chronicle.wire.DocumentContext;
import net.openhft.chronicle.wire.ValueIn;
import net.openhft.chronicle.wire.Wire;
import net.openhft.chronicle.wire.WireType;

/**
 * Reads each of {@link ConversionValues} as each type of {@link ConversionTarget}, in the ways a user can: as the argument
 * of a method, as a field of an object, by {@code object(Class)}, and by the call of its own, {@code int32()} and the
 * like. Prints a JSON object a line for each value. Its members, one for each way, map an answer to the types that give
 * it; what {@code argument} says of a type is not repeated by the other ways.
 */
final class Conversions implements Verb {
    private static final byte[] AFTER = HexFormat.of().parseHex("c56166746572a107");
    private static final int AFTER_VALUE = 7;
    private static final Map<String, Function<ValueIn, Object>> CALLS = calls();

    private final List<Field> fields = Arrays.stream(ConversionTarget.class.getDeclaredFields())
            .filter(field -> !field.getName().equals("after")).toList();

    @Override
    public void run(Options options, PrintStream out) {
        ClassAliasPool.CLASS_ALIASES.addAlias(ProbeSide.class, ProbeLeaf.class);
        new ConversionValues().all().forEach((name, hex) -> {
            byte[] value = HexFormat.of().parseHex(hex);
            Map<String, String> asArgument = each(field -> asArgument(field, value));
            out.println(Json.object("name", name, "hex", hex,
                    "argument", byAnswer(asArgument, Map.of()),
                    "field", byAnswer(each(field -> asField(field, value)), asArgument),
                    "object", byAnswer(each(field -> asObject(field, value)), asArgument),
                    "call", byAnswer(each(field -> byCall(field, value)), asArgument)));
        });
    }

    /** The answer for each type that has one. */
    private Map<String, String> each(Function<Field, String> answer) {
        Map<String, String> answers = new LinkedHashMap<>();
        for (Field field : fields) {
            String found = answer.apply(field);
            if (found != null)
                answers.put(labelOf(field.getGenericType()), found);
        }
        return answers;
    }

    private static Map<String, String> byAnswer(Map<String, String> answers, Map<String, String> known) {
        Map<String, String> types = new LinkedHashMap<>();
        answers.forEach((type, answer) -> {
            if (!answer.equals(known.get(type)))
                types.merge(answer, type, (some, one) -> some + " " + one);
        });
        return types;
    }

    private static String asField(Field field, byte[] value) {
        return answerOf(wire -> {
            ConversionTarget target = new ConversionTarget();
            target.readMarshallable(wire);
            return answered(field, get(field, target), target.after);
        }, document(field.getName(), value));
    }

    private static String asObject(Field field, byte[] value) {
        return answerOf(wire -> answered(field, wire.read(field.getName()).object(field.getType()),
                wire.read("after").int32()), document(field.getName(), value));
    }

    private static String byCall(Field field, byte[] value) {
        Function<ValueIn, Object> call = CALLS.get(field.getName());
        if (call == null)
            return null;
        return answerOf(wire -> answered(field, call.apply(wire.read(field.getName())),
                wire.read("after").int32()), document(field.getName(), value));
    }

    /** Of a method reader that gets the call and, as the next document, another. */
    private static String asArgument(Field field, byte[] value) {
        Object[] kept = {Conversions.class};
        ConversionCalls handler = argument -> kept[0] = argument;
        return answerOf(wire -> {
            Wire framed = wireOf(new byte[0]);
            try (DocumentContext document = framed.writingDocument()) {
                document.wire().bytes().write(wire.bytes());
            }
            MethodReader reader = framed.methodReader(handler);
            reader.readOne();
            return kept[0] == Conversions.class ? "!not called" : answered(field, kept[0], AFTER_VALUE);
        }, event(field.getName(), value));
    }

    private static String answerOf(Function<Wire, String> read, byte[] document) {
        Map<ExceptionKey, Integer> logged = Jvm.recordExceptions(false, false, false);
        try {
            String answer = read.apply(wireOf(document));
            return logged.isEmpty() ? answer : "~" + answer;
        } catch (Throwable e) {
            return "!" + e.getClass().getSimpleName();
        }
    }

    /** A reader that stopped in the wrong place did not find what follows. */
    private static String answered(Field field, Object value, int after) {
        String place = after == AFTER_VALUE ? "" : "?";
        if (value == null)
            return place + "null";
        return place + "=" + (field.getType() == Object.class ? Described.of(value) : Described.textOf(value));
    }

    private static Wire wireOf(byte[] document) {
        Bytes<?> bytes = Bytes.allocateElasticDirect(1024);
        bytes.write(document);
        Probe.endWithZeros(bytes);
        return WireType.BINARY_LIGHT.apply(bytes);
    }

    private static byte[] document(String field, byte[] value) {
        return joined(new byte[]{(byte) (0xc0 + field.length())}, ascii(field), value, AFTER);
    }

    private static byte[] event(String name, byte[] value) {
        return joined(new byte[]{(byte) 0xb9, (byte) name.length()}, ascii(name), value);
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static byte[] joined(byte[]... parts) {
        Bytes<?> all = Bytes.allocateElasticOnHeap();
        for (byte[] part : parts)
            all.write(part);
        return all.toByteArray();
    }

    private static Object get(Field field, Object target) {
        try {
            return field.get(target);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }

    /** {@code List<String>} and the like, without packages. */
    private static String labelOf(Type type) {
        return type instanceof Class<?> plain ? plain.getSimpleName()
                : type.getTypeName().replaceAll("[a-z]+\\.| ", "");
    }

    private static Map<String, Function<ValueIn, Object>> calls() {
        Map<String, Function<ValueIn, Object>> calls = new LinkedHashMap<>();
        calls.put("aByte", ValueIn::int8);
        calls.put("aShort", ValueIn::int16);
        calls.put("anInt", ValueIn::int32);
        calls.put("aLong", ValueIn::int64);
        calls.put("aFloat", ValueIn::float32);
        calls.put("aDouble", ValueIn::float64);
        calls.put("aBoolean", ValueIn::bool);
        calls.put("aChar", ValueIn::character);
        calls.put("text", ValueIn::text);
        calls.put("date", ValueIn::date);
        calls.put("time", ValueIn::time);
        calls.put("dateTime", ValueIn::dateTime);
        calls.put("zonedDateTime", ValueIn::zonedDateTime);
        calls.put("uuid", ValueIn::uuid);
        calls.put("side", value -> value.asEnum(ProbeSide.class));
        calls.put("type", ValueIn::typeLiteral);
        calls.put("bytes", value -> value.bytes());
        calls.put("store", ValueIn::bytesStore);
        calls.put("objectList", value -> value.list(Object.class));
        calls.put("textList", value -> value.list(String.class));
        calls.put("longList", value -> value.list(Long.class));
        calls.put("textSet", value -> value.set(String.class));
        calls.put("objectMap", value -> value.marshallableAsMap(String.class, Object.class));
        calls.put("longMap", value -> value.marshallableAsMap(String.class, Long.class));
        return calls;
    }
}
