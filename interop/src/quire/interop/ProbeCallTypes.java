package quire.interop;

import java.time.LocalDate;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.bytes.MethodId;
import net.openhft.chronicle.wire.LongConversion;
import net.openhft.chronicle.wire.NanoTimestampLongConverter;

/** The interfaces of {@link ProbeCalls}; the library generates their writers and readers. */
public interface ProbeCallTypes {

    /** Methods of every kind of argument. */
    interface Market {
        void none();

        void say(String text);

        void flag(boolean value);

        void tiny(byte value);

        void small(short value);

        void letter(char value);

        void number(int value);

        void large(long value);

        void single(float value);

        void price(double value);

        void boxed(Long value);

        void two(String text, long number);

        void six(boolean flag, byte tiny, int number, double price, String text, ProbeLeaf leaf);

        void leaf(ProbeLeaf leaf);

        void twoLeaves(ProbeLeaf one, ProbeLeaf other);

        void fixed(ProbeTypes.FixedLeaf leaf);

        void any(Object object);

        void side(ProbeSide side);

        void date(LocalDate date);

        void uuid(UUID uuid);

        void bytes(byte[] bytes);

        void store(Bytes<?> bytes);

        void ints(int[] ints);

        void texts(String[] texts);

        void list(List<String> list);

        void leaves(List<ProbeLeaf> list);

        void set(Set<String> set);

        void map(Map<String, Long> map);

        void at(@LongConversion(NanoTimestampLongConverter.class) long nanos);

        void from(@LongConversion(NanoTimestampLongConverter.class) long nanos, String text);

        @MethodId('s')
        void shorter(String text);

        @MethodId(200)
        void numbered(long number);

        @MethodId(7)
        void nothing();

        default void ordinary(String text) {
            say(text);
        }

        Destination to(String destination);

        Destination via();

        Destination route(String name, int hops);

        @MethodId(300)
        Destination through(long id);

        Destination past(ProbeLeaf leaf);
    }

    /** What a chained call goes to. */
    interface Destination {
        void deliver(String message);

        void send(ProbeLeaf leaf);

        void done();

        Destination and(String destination);
    }

    /** Of any type of argument. */
    interface Sink<T> {
        void accept(T value);
    }
}
