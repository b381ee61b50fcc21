package quire.interop.vanilla;

import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Date;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Function;

import net.openhft.lang.io.Bytes;
import net.openhft.lang.io.StopCharTester;
import net.openhft.lang.io.StopCharTesters;
import quire.interop.Options;

/** A field of an excerpt by the name of its type: {@code int32}, {@code stop_bit}, ... */
record Fields(BiConsumer<Bytes, String> writer, Function<Bytes, Object> reader) {
    enum Side {BUY, SELL}

    private static final Map<String, Fields> TYPES = Map.ofEntries(
            Map.entry("int8", new Fields((out, text) -> out.writeByte(Byte.parseByte(text)), Bytes::readByte)),
            Map.entry("int16", new Fields((out, text) -> out.writeShort(Short.parseShort(text)), Bytes::readShort)),
            Map.entry("int24", new Fields((out, text) -> out.writeInt24(Integer.parseInt(text)), Bytes::readInt24)),
            Map.entry("int32", new Fields((out, text) -> out.writeInt(Integer.parseInt(text)), Bytes::readInt)),
            Map.entry("int48", new Fields((out, text) -> out.writeInt48(Long.parseLong(text)), Bytes::readInt48)),
            Map.entry("int64", new Fields((out, text) -> out.writeLong(Long.parseLong(text)), Bytes::readLong)),
            Map.entry("float32", new Fields((out, text) -> out.writeFloat(Float.parseFloat(text)),
                    in -> (double) in.readFloat())),
            Map.entry("float64", new Fields((out, text) -> out.writeDouble(Double.parseDouble(text)),
                    Bytes::readDouble)),
            Map.entry("boolean", new Fields((out, text) -> out.writeBoolean(Boolean.parseBoolean(text)),
                    Bytes::readBoolean)),
            Map.entry("char", new Fields((out, text) -> out.writeChar(Integer.parseInt(text)),
                    in -> (int) in.readChar())),
            Map.entry("stop_bit", new Fields((out, text) -> out.writeStopBit(Long.parseLong(text)),
                    Bytes::readStopBit)),
            Map.entry("compact_int", new Fields((out, text) -> out.writeCompactInt(Integer.parseInt(text)),
                    Bytes::readCompactInt)),
            Map.entry("compact_long", new Fields((out, text) -> out.writeCompactLong(Long.parseLong(text)),
                    Bytes::readCompactLong)),
            Map.entry("compact_double", new Fields((out, text) -> out.writeCompactDouble(Double.parseDouble(text)),
                    Bytes::readCompactDouble)),
            Map.entry("enum", new Fields((out, text) -> out.writeEnum(Side.valueOf(text)),
                    in -> in.readEnum(Side.class))),
            Map.entry("utf", new Fields(Bytes::writeUTFΔ, Bytes::readUTFΔ)),
            Map.entry("utf16_length", new Fields(Bytes::writeUTF, Bytes::readUTF)),
            Map.entry("bytes", new Fields((out, text) -> out.write(HexFormat.of().parseHex(text)), in -> {
                throw new Options.UsageException("bytes have no length of their own");
            })),
            Map.entry("object_none", object(text -> null, value -> value)),
            Map.entry("object_bool", object(Boolean::valueOf, value -> value)),
            Map.entry("object_int", object(Integer::valueOf, value -> value)),
            Map.entry("object_long", object(Long::valueOf, value -> value)),
            Map.entry("object_big_int", object(BigInteger::new, Object::toString)),
            Map.entry("object_float", object(Double::valueOf, value -> value)),
            Map.entry("object_decimal", object(BigDecimal::new, Object::toString)),
            Map.entry("object_str", object(text -> text, value -> value)),
            Map.entry("object_date", object(text -> new Date(Long.parseLong(text)), date -> ((Date) date).getTime())),
            Map.entry("object_enum", object(Side::valueOf, Object::toString)),
            Map.entry("object_list", object(List::of, Object::toString)),
            Map.entry("append_int", new Fields((out, text) -> out.append(Long.parseLong(text)).append(' '),
                    Bytes::parseLong)),
            Map.entry("append_float", new Fields((out, text) -> out.append(Double.parseDouble(text)).append(' '),
                    Bytes::parseDouble)),
            Map.entry("append_rounded", new Fields(Fields::appendRounded, Bytes::parseDouble)),
            Map.entry("append_bool", new Fields((out, text) -> out.append(Boolean.parseBoolean(text)).append(' '),
                    in -> in.parseBoolean(StopCharTesters.SPACE_STOP))),
            Map.entry("append_text", new Fields((out, text) -> out.append(text).append(','),
                    in -> text(in, StopCharTesters.COMMA_STOP))),
            Map.entry("append_date", new Fields((out, text) -> out.appendDateMillis(Long.parseLong(text)).append(' '),
                    in -> text(in, StopCharTesters.SPACE_STOP))),
            Map.entry("append_time", new Fields((out, text) -> out.appendTimeMillis(Long.parseLong(text)).append(' '),
                    in -> text(in, StopCharTesters.SPACE_STOP))),
            Map.entry("append_datetime", new Fields(
                    (out, text) -> out.appendDateTimeMillis(Long.parseLong(text)).append(' '),
                    in -> text(in, StopCharTesters.SPACE_STOP))));

    /** {@code parseUtf8}, which is {@code parseUTF} in older releases. */
    private static Object text(Bytes in, StopCharTester stop) {
        try {
            for (Method method : Bytes.class.getMethods())
                if (method.getName().equals("parseUtf8") || method.getName().equals("parseUTF"))
                    if (method.getParameterCount() == 1)
                        return method.invoke(in, stop);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
        throw new IllegalStateException("no method that parses a text");
    }

    /** {@code VALUE/PRECISION}. */
    private static void appendRounded(Bytes out, String text) {
        String[] parts = text.split("/");
        out.append(Double.parseDouble(parts[0]), Integer.parseInt(parts[1])).append(' ');
    }

    private static Fields object(Function<String, Object> value, Function<Object, Object> shown) {
        return new Fields((out, text) -> out.writeObject(value.apply(text)), in -> shown.apply(in.readObject()));
    }

    static Fields of(String type) {
        Fields found = TYPES.get(type);
        if (found == null)
            throw new Options.UsageException("no such type of a field: " + type);
        return found;
    }
}
