package quire.interop;

import java.io.PrintStream;

/** One thing a peer can be asked to do. */
@FunctionalInterface
public interface Verb {
    /** Runs to its end; what a program is to read goes to {@code out}, one record a line. */
    void run(Options options, PrintStream out) throws Exception;
}
