package quire.interop;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.StringJoiner;
import java.util.function.Consumer;

import net.openhft.chronicle.bytes.MethodReader;
import net.openhft.chronicle.wire.Wire;

/** Implements any interface by telling of each call, and passing it on; what a call returns does so with the chained. */
final class CallRecorder {
    private CallRecorder() {
    }

    /** The calls of the document of a wire. */
    static List<String> read(Wire wire, Class<?> type) {
        List<String> calls = new ArrayList<>();
        MethodReader reader = wire.methodReader(of(type, calls::add, null));
        reader.readOne();
        return calls;
    }

    /** {@code next} gets the calls too, unless it is null. */
    static Object of(Class<?> type, Consumer<String> told, Object next) {
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[]{type}, (proxy, method, arguments) -> {
            if (method.getDeclaringClass() == Object.class)
                return ofObject(proxy, method, arguments);
            told.accept(described(method, arguments));
            Object chained = next == null ? null : method.invoke(next, arguments);
            return method.getReturnType().isInterface() ? of(method.getReturnType(), told, chained) : null;
        });
    }

    private static String described(Method method, Object[] arguments) {
        StringJoiner text = new StringJoiner(", ", method.getName() + "(", ")");
        if (arguments != null)
            for (Object argument : arguments)
                text.add(Described.of(argument));
        return text.toString();
    }

    private static Object ofObject(Object proxy, Method method, Object[] arguments) {
        return switch (method.getName()) {
            case "equals" -> proxy == arguments[0];
            case "hashCode" -> System.identityHashCode(proxy);
            default -> "recorder";
        };
    }
}
