package quire.interop;

import net.openhft.chronicle.core.time.TimeProvider;

/** A clock that stands still until it is told to move, so that the files come out the same every time. */
final class ManualClock implements TimeProvider {
    private long millis;

    ManualClock(long millis) {
        this.millis = millis;
    }

    @Override
    public long currentTimeMillis() {
        return millis;
    }

    void set(long epochMillis) {
        millis = epochMillis;
    }

    void advance(long step) {
        millis += step;
    }
}
