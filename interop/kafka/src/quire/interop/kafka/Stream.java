package quire.interop.kafka;

import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.concurrent.FutureTask;

import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import quire.interop.Options;
import quire.interop.Verb;

/**
 * Sends {@code --warm-up} and then {@code --count} messages of {@code --size} bytes through the broker at
 * {@code --port}, as fast as it can, one call each; another thread consumes them. Prints how many nanoseconds passed from
 * the first call until that thread had the last message, and the sum of the numbers in them (0 to {@code --distinct} - 1,
 * in turn) as i64.
 */
final class Stream implements Verb {
    private static final Duration WAIT = Duration.ofSeconds(30);

    @Override
    public void run(Options options, PrintStream out) throws Exception {
        Clients.createTopic(options);
        int distinct = (int) options.number("distinct");
        byte[][] payloads = payloads(distinct, (int) options.number("size"));
        try (KafkaProducer<byte[], byte[]> producer = Clients.producer(options);
                KafkaConsumer<byte[], byte[]> consumer = Clients.consumer(options)) {
            pass(producer, consumer, payloads, options.number("warm-up"));
            long count = options.number("count");
            long begin = System.nanoTime();
            long sum = pass(producer, consumer, payloads, count);
            long nanos = System.nanoTime() - begin;
            out.printf("{\"nanos\": %d, \"count\": %d, \"checksum\": %d}%n", nanos, count, sum);
        }
    }

    private static byte[][] payloads(int distinct, int size) {
        byte[][] payloads = new byte[distinct][size];
        for (int number = 0; number < distinct; number++) {
            for (int place = Long.BYTES; place < size; place++)
                payloads[number][place] = (byte) place;
            ByteBuffer.wrap(payloads[number]).order(ByteOrder.LITTLE_ENDIAN).putLong(number);
        }
        return payloads;
    }

    /** Sends so many, and returns the sum of the numbers that came. */
    private static long pass(KafkaProducer<byte[], byte[]> producer, KafkaConsumer<byte[], byte[]> consumer,
            byte[][] payloads, long count) throws Exception {
        var consuming = new FutureTask<>(() -> consume(consumer, count));
        new Thread(consuming).start();
        for (long sent = 0; sent < count; sent++)
            producer.send(new ProducerRecord<>(Clients.TOPIC, payloads[(int) (sent % payloads.length)]));
        producer.flush();
        return consuming.get();
    }

    private static long consume(KafkaConsumer<byte[], byte[]> consumer, long count) {
        long sum = 0;
        for (long had = 0; had < count;) {
            var found = consumer.poll(WAIT);
            if (found.isEmpty())
                throw new IllegalStateException("no message comes: had=" + had + " count=" + count);
            for (var record : found)
                sum += ByteBuffer.wrap(record.value()).order(ByteOrder.LITTLE_ENDIAN).getLong();
            had += found.count();
        }
        return sum;
    }
}
