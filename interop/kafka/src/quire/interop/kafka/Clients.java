package quire.interop.kafka;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import quire.interop.Options;

/** Connects to the broker at {@code --port} of 127.0.0.1, and its only topic, of one partition. */
final class Clients {
    static final String TOPIC = "m";

    private Clients() {
    }

    private static String broker(Options options) {
        return "127.0.0.1:" + options.number("port");
    }

    static void createTopic(Options options) throws InterruptedException, ExecutionException {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker(options)))) {
            admin.createTopics(List.of(new NewTopic(TOPIC, 1, (short) 1))).all().get();
        } catch (ExecutionException error) {
            if (!(error.getCause() instanceof TopicExistsException))
                throw error;
        }
    }

    /** Acknowledged by the broker; {@code --linger-ms} is how long a message may wait for others. */
    static KafkaProducer<byte[], byte[]> producer(Options options) {
        return new KafkaProducer<>(
                Map.of("bootstrap.servers", broker(options), "acks", "1", "linger.ms", options.number("linger-ms", 0)),
                new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** From the first message on, without a group. */
    static KafkaConsumer<byte[], byte[]> consumer(Options options) {
        var consumer = new KafkaConsumer<>(
                Map.of("bootstrap.servers", broker(options), "enable.auto.commit", "false"),
                new ByteArrayDeserializer(), new ByteArrayDeserializer());
        var partition = List.of(new TopicPartition(TOPIC, 0));
        consumer.assign(partition);
        consumer.seekToBeginning(partition);
        return consumer;
    }
}
