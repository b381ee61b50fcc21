package quire.interop.vanilla;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectableChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ChronicleQueueBuilder;
import net.openhft.chronicle.ExcerptAppender;
import net.openhft.chronicle.ExcerptTailer;
import net.openhft.chronicle.tcp.TcpConnectionListener;
import quire.interop.Options;
import quire.interop.Verb;

/**
 * One half of a latency measurement through replication on 127.0.0.1, {@code --port}. {@code --role produce} is a source
 * that waits for its sink, and then appends {@code --count} messages of {@code --size} bytes, {@code --rate} a second,
 * sleeping in between; a message holds its number and when it was due, as i64 of {@link System#nanoTime()}; when each
 * append began and what it took goes to {@code --out}, two little-endian i64 each. It ends when {@code --until} is there,
 * the file of the other. {@code --role tail} is the sink: it
 * prints READY, reads all messages from its copy and writes number, due and the time it had the message to {@code --out},
 * three little-endian i64 each.
 */
final class ReplicationLatency implements Verb {
    private static final int STAMPS = 2 * Long.BYTES;
    private static final int SPINS = 1000; // without it a read blocks until something comes
    private static final long PATIENCE_S = 60;
    private static final long LEAST_SLEEP_NS = 10_000;

    @Override
    public void run(Options options, PrintStream out) throws Exception {
        int count = (int) options.number("count");
        int port = (int) options.number("port");
        switch (options.text("role")) {
            case "produce" -> produce(options, port, count);
            case "tail" -> tail(options, port, count, out);
            default -> throw new Options.UsageException("no such role: " + options.text("role"));
        }
    }

    private static void produce(Options options, int port, int count) throws Exception {
        byte[] padding = new byte[(int) options.number("size", 40) - STAMPS];
        long rate = options.number("rate");
        ByteBuffer appends = records(2 * count);
        var connected = new CountDownLatch(1);
        try (Chronicle source = ChronicleQueueBuilder.source(Chronicles.open(options))
                .bindAddress("127.0.0.1", port)
                .connectionListener(new Waiting(connected))
                .build()) {
            if (!connected.await(PATIENCE_S, TimeUnit.SECONDS))
                throw new IllegalStateException("no sink connects: port=" + port);
            ExcerptAppender appender = source.createAppender();
            long first = System.nanoTime();
            for (int number = 0; number < count; number++) {
                long due = first + number * 1_000_000_000L / rate;
                long begin;
                while ((begin = System.nanoTime()) < due)
                    if (due - begin >= LEAST_SLEEP_NS)
                        LockSupport.parkNanos(due - begin);
                appender.startExcerpt(STAMPS + padding.length);
                appender.writeLong(number);
                appender.writeLong(due);
                appender.write(padding);
                appender.finish();
                appends.putLong(begin).putLong(System.nanoTime() - begin);
            }
            write(options, appends);
            Path until = Path.of(options.text("until"));
            while (!Files.exists(until))
                TimeUnit.MILLISECONDS.sleep(1);
        }
    }

    private static void tail(Options options, int port, int count, PrintStream out) throws IOException {
        ByteBuffer records = records(3 * count);
        try (Chronicle sink = Chronicles.builder(options).sink()
                .connectAddress("127.0.0.1", port)
                .readSpinCount(SPINS)
                .build()) {
            ExcerptTailer tailer = sink.createTailer();
            out.println("READY");
            while (records.hasRemaining()) {
                if (!tailer.nextIndex())
                    continue;
                long had = System.nanoTime();
                records.putLong(tailer.readLong()).putLong(tailer.readLong()).putLong(had);
            }
        }
        write(options, records);
    }

    private static ByteBuffer records(int values) {
        return ByteBuffer.allocate(values * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static void write(Options options, ByteBuffer records) throws IOException {
        Files.write(Path.of(options.text("out")), records.array());
    }

    /** Says that a sink is there. */
    private record Waiting(CountDownLatch connected) implements TcpConnectionListener {
        @Override
        public void onListen(ServerSocketChannel channel) {
        }

        @Override
        public void onConnect(SocketChannel channel) {
            connected.countDown();
        }

        @Override
        public void onDisconnect(SocketChannel channel) {
        }

        @Override
        public void onError(SelectableChannel channel, Exception exception) {
        }
    }
}
