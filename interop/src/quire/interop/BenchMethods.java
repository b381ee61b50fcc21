package quire.interop;

import java.io.File;
import java.io.OutputStream;
import java.io.PrintStream;

import net.openhft.chronicle.bytes.MethodReader;
import net.openhft.chronicle.core.pool.ClassAliasPool;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.main.DumpMain;
import net.openhft.chronicle.wire.SelfDescribingMarshallable;

/** What {@link Bench} times of messages: calls of one method with an object of five fields, and the dump. */
final class BenchMethods {
    private static final String[] SYMBOLS = {"EURUSD", "GBPUSD", "USDJPY", "AUDUSD", "EURGBP", "USDCHF", "NZDUSD", "EURJPY"};

    private BenchMethods() {
    }

    /** The interface of the calls. */
    public interface Market {
        void trade(Trade trade);
    }

    /** Number n is of symbol n % 8, and has n % 10000 hundredths above 100 as its price. */
    public static final class Trade extends SelfDescribingMarshallable {
        public String symbol;
        public long id;
        public double price;
        public long quantity;
        public int side;

        void fill(long number) {
            symbol = SYMBOLS[(int) (number % SYMBOLS.length)];
            id = number;
            price = 100 + number % 10_000 / 100.0;
            quantity = number % 1000;
            side = (int) (number % 2);
        }
    }

    static void addAlias() {
        ClassAliasPool.CLASS_ALIASES.addAlias(Trade.class, "Trade");
    }

    /** A call for each number; the checksum is the sum of the numbers. */
    static final class Write extends Bench.Loop {
        private final Market market;
        private final Trade trade = new Trade();

        Write(ChronicleQueue queue) {
            super(Long.BYTES);
            market = Releases.appender(queue).methodWriter(Market.class);
        }

        @Override
        void one(long number) {
            trade.fill(number);
            market.trade(trade);
            checksum += number;
        }
    }

    /** Reads the calls; the checksum is the sum of their numbers. */
    static final class Read extends Bench.Loop implements Market {
        private final MethodReader reader;

        Read(ChronicleQueue queue) {
            super(Long.BYTES);
            reader = queue.createTailer().methodReader((Market) this::trade);
        }

        @Override
        void one(long number) {
            if (!reader.readOne())
                throw new IllegalStateException("the queue ended early: number=" + number);
        }

        @Override
        public void trade(Trade trade) {
            checksum += trade.id;
        }
    }

    /** The text of the whole directory, each time; the checksum is its length. */
    static final class Dump extends Bench.Loop {
        private final File directory;

        Dump(String directory) {
            super(Long.BYTES);
            this.directory = new File(directory);
        }

        @Override
        void one(long number) {
            DumpMain.dump(directory, new PrintStream(new OutputStream() {
                @Override
                public void write(int one) {
                    checksum++;
                }

                @Override
                public void write(byte[] bytes, int from, int count) {
                    checksum += count;
                }
            }), Long.MAX_VALUE);
        }
    }
}
