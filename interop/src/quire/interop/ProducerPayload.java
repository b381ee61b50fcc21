package quire.interop;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;
import java.util.zip.CRC32;

/**
 * The payload of a live producer, little-endian:
 *
 * <pre>
 *   0   u32   CRC-32 of everything after it
 *   4   u32   producer
 *   8   i64   counter, from 0
 *  16   ...   random padding
 * </pre>
 */
public record ProducerPayload(int producer, long counter) {
    public static final int HEADER_LENGTH = 16;

    public byte[] encode(int length, Random random) {
        byte[] payload = new byte[Math.max(length, HEADER_LENGTH)];
        random.nextBytes(payload);
        ByteBuffer buffer = ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN);
        buffer.putInt(4, producer).putLong(8, counter).putInt(0, crcOf(payload));
        return payload;
    }

    /** The decoded payload, or null if it is not one or its checksum does not match. */
    public static ProducerPayload decode(byte[] payload) {
        if (payload.length < HEADER_LENGTH)
            return null;
        ByteBuffer buffer = ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN);
        if (buffer.getInt(0) != crcOf(payload))
            return null;
        return new ProducerPayload(buffer.getInt(4), buffer.getLong(8));
    }

    private static int crcOf(byte[] payload) {
        CRC32 crc = new CRC32();
        crc.update(payload, 4, payload.length - 4);
        return (int) crc.getValue();
    }
}
