package quire.interop;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZonedDateTime;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

import net.openhft.chronicle.bytes.Bytes;

/** A method of one argument for each field of {@link ConversionTarget}, of its name and type. */
public interface ConversionCalls {
    /** Gets the argument of each of them. */
    void keep(Object value);

    default void aByte(byte value) {
        keep(value);
    }

    default void aShort(short value) {
        keep(value);
    }

    default void anInt(int value) {
        keep(value);
    }

    default void aLong(long value) {
        keep(value);
    }

    default void aFloat(float value) {
        keep(value);
    }

    default void aDouble(double value) {
        keep(value);
    }

    default void aBoolean(boolean value) {
        keep(value);
    }

    default void aChar(char value) {
        keep(value);
    }

    default void boxedInt(Integer value) {
        keep(value);
    }

    default void boxedLong(Long value) {
        keep(value);
    }

    default void boxedDouble(Double value) {
        keep(value);
    }

    default void boxedBoolean(Boolean value) {
        keep(value);
    }

    default void text(String value) {
        keep(value);
    }

    default void date(LocalDate value) {
        keep(value);
    }

    default void time(LocalTime value) {
        keep(value);
    }

    default void dateTime(LocalDateTime value) {
        keep(value);
    }

    default void zonedDateTime(ZonedDateTime value) {
        keep(value);
    }

    default void instant(Instant value) {
        keep(value);
    }

    default void duration(Duration value) {
        keep(value);
    }

    default void uuid(UUID value) {
        keep(value);
    }

    default void decimal(BigDecimal value) {
        keep(value);
    }

    default void integer(BigInteger value) {
        keep(value);
    }

    default void side(ProbeSide value) {
        keep(value);
    }

    default void type(Class<?> value) {
        keep(value);
    }

    default void bytes(byte[] value) {
        keep(value);
    }

    default void store(Bytes<?> value) {
        keep(value);
    }

    default void longs(long[] value) {
        keep(value);
    }

    default void doubles(double[] value) {
        keep(value);
    }

    default void texts(String[] value) {
        keep(value);
    }

    default void objectList(List<Object> value) {
        keep(value);
    }

    default void textList(List<String> value) {
        keep(value);
    }

    default void longList(List<Long> value) {
        keep(value);
    }

    default void textSet(Set<String> value) {
        keep(value);
    }

    default void objectMap(Map<String, Object> value) {
        keep(value);
    }

    default void longMap(Map<String, Long> value) {
        keep(value);
    }

    default void leaf(ProbeLeaf value) {
        keep(value);
    }

    default void object(Object value) {
        keep(value);
    }
}
