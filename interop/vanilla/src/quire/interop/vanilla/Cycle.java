package quire.interop.vanilla;

/** How often a chronicle rolls: the cycles of 3.6.4, which has them under the same names, and the weekly one of before. */
enum Cycle {
    SECONDS("yyyyMMddHHmmss", 1000, 28),
    MINUTES("yyyyMMddHHmm", 60 * 1000, 34),
    HOURS("yyyyMMddHH", 60 * 60 * 1000, 40),
    DAYS("yyyyMMdd", 24 * 60 * 60 * 1000, 40),
    WEEKS("yyyyMMdd", 7 * 24 * 60 * 60 * 1000, 40);

    final String format;
    final int milliseconds;
    final long entries;

    Cycle(String format, int milliseconds, int sequenceBits) {
        this.format = format;
        this.milliseconds = milliseconds;
        this.entries = 1L << sequenceBits;
    }
}
