package quire.interop.kafka;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import quire.interop.Options;
import quire.interop.Verb;

/**
 * One half of a latency measurement through a broker at {@code --port}. {@code --role produce} sends {@code --count}
 * messages of {@code --size} bytes, {@code --rate} a second, sleeping in between; a message holds its number and when it
 * was due, as i64 of {@link System#nanoTime()}; when each call began and what it took goes to {@code --out}, two
 * little-endian i64 each. {@code --role tail} prints READY, polls all messages and writes number, due and the time it had
 * the message to {@code --out}, three little-endian i64 each.
 */
final class Latency implements Verb {
    private static final long LEAST_SLEEP_NS = 10_000;
    private static final Duration WAIT = Duration.ofSeconds(30);

    @Override
    public void run(Options options, PrintStream out) throws Exception {
        int count = (int) options.number("count");
        Clients.createTopic(options);
        switch (options.text("role")) {
            case "produce" -> produce(options, count);
            case "tail" -> tail(options, count, out);
            default -> throw new Options.UsageException("no such role: " + options.text("role"));
        }
    }

    private static void produce(Options options, int count) throws IOException {
        int size = (int) options.number("size");
        long rate = options.number("rate");
        ByteBuffer appends = records(2 * count);
        try (KafkaProducer<byte[], byte[]> producer = Clients.producer(options)) {
            producer.partitionsFor(Clients.TOPIC);
            long first = System.nanoTime();
            for (int number = 0; number < count; number++) {
                long due = first + number * 1_000_000_000L / rate;
                byte[] payload = new byte[size]; // the producer keeps it
                ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN).putLong(number).putLong(due);
                long begin;
                while ((begin = System.nanoTime()) < due)
                    if (due - begin >= LEAST_SLEEP_NS)
                        LockSupport.parkNanos(due - begin);
                producer.send(new ProducerRecord<>(Clients.TOPIC, payload));
                appends.putLong(begin).putLong(System.nanoTime() - begin);
            }
        }
        Files.write(Path.of(options.text("out")), appends.array());
    }

    private static void tail(Options options, int count, PrintStream out) throws IOException {
        ByteBuffer records = records(3 * count);
        try (KafkaConsumer<byte[], byte[]> consumer = Clients.consumer(options)) {
            consumer.poll(Duration.ofMillis(1));
            out.println("READY");
            while (records.hasRemaining()) {
                var found = consumer.poll(WAIT);
                long had = System.nanoTime();
                if (found.isEmpty())
                    throw new IllegalStateException("no message comes: bytes left=" + records.remaining());
                for (var record : found) {
                    ByteBuffer payload = ByteBuffer.wrap(record.value()).order(ByteOrder.LITTLE_ENDIAN);
                    records.putLong(payload.getLong(0)).putLong(payload.getLong(Long.BYTES)).putLong(had);
                }
            }
        }
        Files.write(Path.of(options.text("out")), records.array());
    }

    private static ByteBuffer records(int values) {
        return ByteBuffer.allocate(values * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    }
}
