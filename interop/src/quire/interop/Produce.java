package quire.interop;

import java.io.PrintStream;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;

import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.wire.DocumentContext;

/**
 * A live producer on the machine's clock: {@code --count} messages of {@link ProducerPayload} for {@code --id}, padded
 * to a random length up to {@code --max-length}, {@code --pause-us} apart. Prints {@code READY} before the first and
 * {@code DONE} after the last; {@code --ack} prints {@code index counter} as soon as an append has returned.
 *
 * <p>{@code --hold-open-document} then opens a document, writes half a message, prints {@code HOLDING} and waits, by
 * default for ever: kill it there. {@code --hold-lock} does the same without a byte written. After {@code --hold-ms}
 * the document is rolled back.
 */
final class Produce implements Verb {
    @Override
    public void run(Options options, PrintStream out) throws InterruptedException {
        try (ChronicleQueue queue = Queues.open(options)) {
            ExcerptAppender appender = Releases.appender(queue);
            out.println("READY");
            produce(appender, options, out);
            if (options.flag("hold-open-document") || options.flag("hold-lock"))
                hold(appender, options, out);
            out.println("DONE");
        }
    }

    private static void produce(ExcerptAppender appender, Options options, PrintStream out) {
        int producer = (int) options.number("id", 0);
        long count = options.number("count");
        int maxLength = (int) options.number("max-length", 200);
        long pauseNanos = options.number("pause-us", 0) * 1000;
        boolean ack = options.flag("ack");
        Random random = new Random(options.number("seed", producer));
        for (long counter = 0; counter < count; counter++) {
            int length = ProducerPayload.HEADER_LENGTH
                    + random.nextInt(Math.max(1, maxLength - ProducerPayload.HEADER_LENGTH + 1));
            Messages.appendBytes(appender, new ProducerPayload(producer, counter).encode(length, random));
            if (ack)
                out.println(Long.toHexString(appender.lastIndexAppended()) + " " + counter);
            if (pauseNanos > 0)
                LockSupport.parkNanos(pauseNanos);
        }
    }

    private static void hold(ExcerptAppender appender, Options options, PrintStream out) throws InterruptedException {
        try (DocumentContext document = appender.writingDocument()) {
            if (options.flag("hold-open-document"))
                document.wire().bytes().write("half a message, never to be published".getBytes());
            out.println("HOLDING");
            Thread.sleep(options.number("hold-ms", Long.MAX_VALUE));
            document.rollbackOnClose();
        }
    }
}
