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
import net.openhft.chronicle.wire.SelfDescribingMarshallable;

/** One field of each declared type that {@link Conversions} reads into; {@link #after} shows where the reading stopped. */
public final class ConversionTarget extends SelfDescribingMarshallable {
    public byte aByte;
    public short aShort;
    public int anInt;
    public long aLong;
    public float aFloat;
    public double aDouble;
    public boolean aBoolean;
    public char aChar;
    public Integer boxedInt;
    public Long boxedLong;
    public Double boxedDouble;
    public Boolean boxedBoolean;
    public String text;
    public LocalDate date;
    public LocalTime time;
    public LocalDateTime dateTime;
    public ZonedDateTime zonedDateTime;
    public Instant instant;
    public Duration duration;
    public UUID uuid;
    public BigDecimal decimal;
    public BigInteger integer;
    public ProbeSide side;
    public Class<?> type;
    public byte[] bytes;
    public Bytes<?> store;
    public long[] longs;
    public double[] doubles;
    public String[] texts;
    public List<Object> objectList;
    public List<String> textList;
    public List<Long> longList;
    public Set<String> textSet;
    public Map<String, Object> objectMap;
    public Map<String, Long> longMap;
    public ProbeLeaf leaf;
    public Object object;

    public int after;
}
