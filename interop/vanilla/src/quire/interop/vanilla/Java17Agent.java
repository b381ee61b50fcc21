package quire.interop.vanilla;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;

import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.commons.ClassRemapper;
import org.objectweb.asm.commons.SimpleRemapper;

/**
 * Lets Chronicle 3 run on Java 17. {@code sun.misc.Cleaner} is {@code jdk.internal.ref.Cleaner} now, which
 * {@code jvm.args} exports. {@code String} and {@code StringBuilder} no longer hold the {@code char[]} that the library
 * takes from them: the two methods that do so ask for a copy, or append one by one.
 */
public final class Java17Agent implements ClassFileTransformer {
    private static final String LIBRARY = "net/openhft/lang/";
    private static final SimpleRemapper CLEANER =
            new SimpleRemapper("sun/misc/Cleaner", "jdk/internal/ref/Cleaner");

    private Java17Agent() {
    }

    public static void premain(String arguments, Instrumentation instrumentation) {
        instrumentation.addTransformer(new Java17Agent());
    }

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] code) {
        if (name == null || !name.startsWith(LIBRARY))
            return null;
        ClassWriter adapted = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        new ClassReader(code).accept(new ClassRemapper(new TextMethods(adapted), CLEANER), 0);
        return adapted.toByteArray();
    }

    private static final class TextMethods extends ClassVisitor {
        TextMethods(ClassVisitor next) {
            super(Opcodes.ASM9, next);
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] thrown) {
            MethodVisitor method = super.visitMethod(access, name, descriptor, signature, thrown);
            return switch (name + descriptor) {
                case "extractChars(Ljava/lang/String;)[C" -> (access & Opcodes.ACC_ABSTRACT) == 0 ? copied(method) : method;
                case "readUTF1(Ljava/lang/StringBuilder;I)V" -> appended(method);
                default -> method;
            };
        }

        /** {@code return string.toCharArray();} */
        private static MethodVisitor copied(MethodVisitor method) {
            method.visitCode();
            method.visitVarInsn(Opcodes.ALOAD, 1);
            method.visitMethodInsn(Opcodes.INVOKEVIRTUAL, "java/lang/String", "toCharArray", "()[C", false);
            method.visitInsn(Opcodes.ARETURN);
            return ended(method);
        }

        /** {@code readUTF1((Appendable) builder, length);} */
        private static MethodVisitor appended(MethodVisitor method) {
            method.visitCode();
            method.visitVarInsn(Opcodes.ALOAD, 0);
            method.visitVarInsn(Opcodes.ALOAD, 1);
            method.visitVarInsn(Opcodes.ILOAD, 2);
            method.visitMethodInsn(Opcodes.INVOKESPECIAL, "net/openhft/lang/io/NativeBytes", "readUTF1",
                    "(Ljava/lang/Appendable;I)V", false);
            method.visitInsn(Opcodes.RETURN);
            return ended(method);
        }

        /** No visitor for what the method did before. */
        private static MethodVisitor ended(MethodVisitor method) {
            method.visitMaxs(0, 0);
            method.visitEnd();
            return null;
        }
    }
}
