package quire.interop.vanilla;

import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.nio.channels.SelectableChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

import net.openhft.chronicle.tcp.TcpConnectionListener;

/** Prints {@code LISTENING port}; connections go to stderr. */
record Announcing(PrintStream out) implements TcpConnectionListener {
    @Override
    public void onListen(ServerSocketChannel channel) {
        try {
            out.println("LISTENING " + ((InetSocketAddress) channel.getLocalAddress()).getPort());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void onConnect(SocketChannel channel) {
        System.err.println("connected: " + channel);
    }

    @Override
    public void onDisconnect(SocketChannel channel) {
        System.err.println("disconnected: " + channel);
    }

    @Override
    public void onError(SelectableChannel channel, Exception exception) {
        System.err.println("failed: " + channel + ": " + exception);
    }
}
