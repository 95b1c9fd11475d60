import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;

/**
 * What the peer does with the values of types.idl, by reflection: their transformation
 * and their text form. Both follow ../README.md; two values are the same when their
 * texts are.
 */
final class Echo {
    private Echo() { }

    private static boolean isEnum(Object v) {
        return v instanceof Interop.Color || v instanceof Interop.Names.Result;
    }

    private static boolean isUnion(Object v) throws ReflectiveOperationException {
        for (Field f : v.getClass().getDeclaredFields())
            if (f.getName().equals("discriminator")) return true;
        return false;
    }

    private static List<Field> fields(Object v) {
        List<Field> fields = new ArrayList<>();
        for (Field f : v.getClass().getDeclaredFields())
            if (!Modifier.isStatic(f.getModifiers()) && !f.getName().equals("discriminator")) {
                f.setAccessible(true);
                fields.add(f);
            }
        return fields;
    }

    private static Field discriminator(Object union) throws ReflectiveOperationException {
        Field d = union.getClass().getDeclaredField("discriminator");
        d.setAccessible(true);
        return d;
    }

    /** The member that the discriminator selects; null for an implicit default. */
    private static Field member(Object union) throws ReflectiveOperationException {
        for (Field f : fields(union)) {
            Method getter = union.getClass().getMethod(f.getName());
            try {
                getter.invoke(union);
                return f;
            } catch (java.lang.reflect.InvocationTargetException notThis) {
                // BAD_OPERATION: another member is selected
            }
        }
        return null;
    }

    // ---------------------------------------------------------- transformation

    static Object transform(Object v) throws ReflectiveOperationException {
        if (v == null || v instanceof org.omg.CORBA.Object) return v;
        if (v instanceof Boolean) return !(Boolean) v;
        if (v instanceof Byte) return (byte) ((Byte) v ^ 0x20);
        if (v instanceof Character) return (char) ((Character) v ^ 0x20);
        if (v instanceof Short) return (short) ~(Short) v;
        if (v instanceof Integer) return ~(Integer) v;
        if (v instanceof Long) return ~(Long) v;
        if (v instanceof Float) return -(Float) v;
        if (v instanceof Double) return -(Double) v;
        if (v instanceof BigDecimal) return ((BigDecimal) v).negate();
        if (v instanceof String) return swapCase((String) v);
        if (v instanceof Interop.Color) return Interop.Color.from_int((((Interop.Color) v).value() + 1) % 3);
        if (v instanceof Interop.Names.Result) return Interop.Names.Result.from_int((((Interop.Names.Result) v).value() + 1) % 2);
        if (v.getClass().isArray()) {
            int n = Array.getLength(v);
            Object out = Array.newInstance(v.getClass().getComponentType(), n);
            for (int i = 0; i < n; i++) Array.set(out, i, transform(Array.get(v, n - 1 - i)));
            return out;
        }
        Object out = v.getClass().getDeclaredConstructor().newInstance();
        if (isUnion(v)) {
            discriminator(out).set(out, discriminator(v).get(v));
            Field f = member(v);
            if (f != null) f.set(out, transform(f.get(v)));
        } else {
            for (Field f : fields(v)) f.set(out, transform(f.get(v)));
        }
        return out;
    }

    static String swapCase(String s) {
        StringBuilder out = new StringBuilder(s);
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') out.setCharAt(i, (char) (c ^ 0x20));
        }
        return out.toString();
    }

    // --------------------------------------------------------------- text form

    static String text(Object v) throws ReflectiveOperationException { return text(v, false); }

    /** unsigned: what Java holds as a signed number is an unsigned one in IDL. */
    static String text(Object v, boolean unsigned) throws ReflectiveOperationException {
        StringBuilder out = new StringBuilder();
        show(out, v, unsigned);
        return out.toString();
    }

    private static void show(StringBuilder out, Object v, boolean unsigned) throws ReflectiveOperationException {
        if (v == null) out.append("nil");
        else if (v instanceof org.omg.CORBA.Object) out.append("reference");
        else if (v instanceof Boolean || isEnum(v)) out.append(v);
        else if (v instanceof Byte) out.append((Byte) v & 0xff);
        else if (v instanceof Character) out.append((int) (Character) v);
        else if (v instanceof Short) out.append(unsigned ? (Short) v & 0xffff : (Short) v);
        else if (v instanceof Integer) out.append(unsigned ? Integer.toUnsignedString((Integer) v) : v.toString());
        else if (v instanceof Long) out.append(unsigned ? Long.toUnsignedString((Long) v) : v.toString());
        else if (v instanceof Float) out.append(String.format("0x%08x", Float.floatToIntBits((Float) v)));
        else if (v instanceof Double) out.append(String.format("0x%016x", Double.doubleToLongBits((Double) v)));
        else if (v instanceof BigDecimal) out.append(((BigDecimal) v).toPlainString());
        else if (v instanceof String) {
            out.append('"');
            for (char c : ((String) v).toCharArray()) {
                if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '\'') out.append(c);
                else out.append(String.format("\\u%04x", (int) c));
            }
            out.append('"');
        } else if (v.getClass().isArray()) {
            out.append('[');
            for (int i = 0; i < Array.getLength(v); i++) {
                if (i > 0) out.append(',');
                show(out, Array.get(v, i), unsigned);
            }
            out.append(']');
        } else if (isUnion(v)) {
            out.append('(');
            show(out, discriminator(v).get(v), unsigned);
            Field f = member(v);
            if (f != null) {
                out.append(':');
                show(out, f.get(v), unsigned);
            }
            out.append(')');
        } else {
            char comma = '{';
            for (Field f : fields(v)) {
                out.append(comma);
                comma = ',';
                boolean natural = v instanceof Interop.Mixed && List.of("port", "mask", "stamp").contains(f.getName());
                show(out, f.get(v), natural);
            }
            out.append(comma == '{' ? "{}" : "}");
        }
    }
}
