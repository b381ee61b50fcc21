package quire.interop;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

import net.openhft.chronicle.core.pool.ClassAliasPool;
import net.openhft.chronicle.core.pool.ClassLookup;

/** Knows the types that the library knows, and none of ours: what a reader has who comes from elsewhere. */
final class Strangers {
    static final ClassLookup LOOKUP = (ClassLookup) Proxy.newProxyInstance(
            ClassLookup.class.getClassLoader(), new Class<?>[]{ClassLookup.class}, (proxy, method, arguments) -> {
                if (method.getName().equals("wrap"))
                    return proxy;
                Object found = ofPool(method, arguments);
                return found instanceof Class<?> type && type.getName().startsWith("quire.")
                        ? ofPool(method, "no.such." + arguments[0]) : found;
            });

    private Strangers() {
    }

    private static Object ofPool(Method method, Object... arguments) throws Throwable {
        try {
            return method.invoke(ClassAliasPool.CLASS_ALIASES, arguments);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }
}
