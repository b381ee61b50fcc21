package quire.interop.vanilla;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;

import net.openhft.chronicle.Chronicle;
import net.openhft.chronicle.ExcerptAppender;
import quire.interop.Options;
import quire.interop.ProducerPayload;
import quire.interop.Verb;

/**
 * Live producers on the machine's clock: {@code --threads} of them, numbered from {@code --id} on, append {@code --count}
 * messages of {@link ProducerPayload} each, padded to a random length up to {@code --max-length}, {@code --pause-us}
 * apart. Prints {@code READY}, then {@code index producer counter} after each append, and {@code DONE}.
 */
final class Produce implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws Exception {
        int threads = (int) options.number("threads", 1);
        int first = (int) options.number("id", 0);
        var plan = new Plan(options.number("count"), (int) options.number("max-length", 200),
                options.number("pause-us", 0) * 1000);
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try (Chronicle chronicle = Chronicles.open(options)) {
            out.println("READY");
            List<Callable<Void>> producers = new ArrayList<>();
            for (int id = first; id < first + threads; id++) {
                int producer = id;
                producers.add(() -> produce(chronicle, producer, plan, out));
            }
            for (Future<Void> producer : pool.invokeAll(producers))
                producer.get();
        } finally {
            pool.shutdown();
        }
        out.println("DONE");
    }

    private record Plan(long count, int maxLength, long pauseNanos) {
    }

    private static Void produce(Chronicle chronicle, int producer, Plan plan, PrintStream out) throws Exception {
        ExcerptAppender appender = chronicle.createAppender();
        Random random = new Random(producer);
        int spread = Math.max(1, plan.maxLength - ProducerPayload.HEADER_LENGTH + 1);
        for (long counter = 0; counter < plan.count; counter++) {
            int length = ProducerPayload.HEADER_LENGTH + random.nextInt(spread);
            byte[] payload = new ProducerPayload(producer, counter).encode(length, random);
            out.println(Long.toHexString(Chronicles.append(appender, payload)) + " " + producer + " " + counter);
            if (plan.pauseNanos > 0)
                LockSupport.parkNanos(plan.pauseNanos);
        }
        return null;
    }
}
