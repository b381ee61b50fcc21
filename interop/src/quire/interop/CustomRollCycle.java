package quire.interop;

import net.openhft.chronicle.core.time.TimeProvider;
import net.openhft.chronicle.queue.RollCycle;

/** A roll cycle of the user's own: {@code custom LENGTH_MS PATTERN INDEX_COUNT INDEX_SPACING}. */
record CustomRollCycle(int lengthInMillis, String format, int defaultIndexCount, int defaultIndexSpacing)
        implements RollCycle {
    static final String PREFIX = "custom ";

    static CustomRollCycle parse(String text) {
        String[] parts = text.split(" ");
        return new CustomRollCycle(Integer.parseInt(parts[1]), parts[2], Integer.parseInt(parts[3]),
                Integer.parseInt(parts[4]));
    }

    private int shift() {
        return Math.max(32, 2 * log2(defaultIndexCount) + log2(defaultIndexSpacing));
    }

    private static int log2(int powerOfTwo) {
        return Integer.numberOfTrailingZeros(powerOfTwo);
    }

    @Override
    public long toIndex(int cycle, long sequenceNumber) {
        return ((long) cycle << shift()) + (sequenceNumber & ((1L << shift()) - 1));
    }

    @Override
    public long toSequenceNumber(long index) {
        return index & ((1L << shift()) - 1);
    }

    @Override
    public int toCycle(long index) {
        return (int) (index >> shift());
    }

    @Override
    public long maxMessagesPerCycle() {
        return Math.min((1L << shift()) - 1, (long) defaultIndexCount * defaultIndexCount * defaultIndexSpacing);
    }

    /** Later releases have it; 5.20 leaves it to the roll cycle. */
    public int current(TimeProvider time, long epoch) {
        return (int) ((time.currentTimeMillis() - epoch) / lengthInMillis);
    }

    @Override
    public String toString() {
        return format;
    }
}
