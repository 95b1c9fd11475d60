package decimal;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.omg.CORBA.MARSHAL;
import org.omg.CORBA.portable.InputStream;
import org.omg.CORBA.portable.OutputStream;

/**
 * Values of fixed types, byte by byte: the streams of the Java EE ORBs are not told how many digits such a type has, so they
 * can not write leading zeros.
 */
public final class Packed {
    private Packed() { }

    /** Two digits in each byte, the sign in the last half: 0xc, or 0xd below zero. */
    public static BigDecimal read(InputStream in, int digits, int scale) {
        byte[] bytes = new byte[digits / 2 + 1];
        in.read_octet_array(bytes, 0, bytes.length);
        StringBuilder text = new StringBuilder();
        for (byte pair : bytes) text.append(Character.forDigit(pair >> 4 & 15, 16)).append(Character.forDigit(pair & 15, 16));
        char sign = text.charAt(text.length() - 1);
        text.setLength(text.length() - 1);
        if (sign != 'c' && sign != 'd' || !text.chars().allMatch(Character::isDigit)) throw new MARSHAL("no fixed value: " + text + sign);
        BigInteger number = new BigInteger(text.toString());
        return new BigDecimal(sign == 'd' ? number.negate() : number, scale);
    }

    public static void write(OutputStream out, BigDecimal value, int digits, int scale) {
        BigInteger number = value.setScale(scale).unscaledValue();
        String text = number.abs().toString();
        if (text.length() > digits) throw new MARSHAL("too many digits: " + value);
        byte[] bytes = new byte[digits / 2 + 1];
        text = "0".repeat(2 * bytes.length - 1 - text.length()) + text + (number.signum() < 0 ? 'd' : 'c');
        for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
        out.write_octet_array(bytes, 0, bytes.length);
    }
}
