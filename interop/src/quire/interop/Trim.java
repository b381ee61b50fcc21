package quire.interop;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/**
 * Cuts the zeros at the end of a queue's files, to a multiple of 4096 bytes and at least one past the last document.
 * An appender or tailer grows such a file again before it maps it, so a cut queue is as good as before.
 */
final class Trim {
    private static final int PAGE = 4096;

    private Trim() {
    }

    static void directory(Path directory) throws IOException {
        List<Path> files;
        try (Stream<Path> entries = Files.list(directory)) {
            files = entries.filter(path -> path.toString().matches(".*\\.cq4t?")).toList();
        }
        for (Path file : files)
            file(file);
    }

    private static void file(Path path) throws IOException {
        try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
            long used = usedLength(file);
            long headerAfterLast = used + Integer.BYTES;
            file.setLength(Math.min(file.length(), (headerAfterLast + PAGE - 1) / PAGE * PAGE));
        }
    }

    private static long usedLength(RandomAccessFile file) throws IOException {
        byte[] page = new byte[PAGE];
        long end = file.length();
        while (end > 0) {
            long begin = (end - 1) / PAGE * PAGE;
            file.seek(begin);
            file.readFully(page, 0, (int) (end - begin));
            for (int i = (int) (end - begin) - 1; i >= 0; i--)
                if (page[i] != 0)
                    return begin + i + 1;
            end = begin;
        }
        return 0;
    }
}
