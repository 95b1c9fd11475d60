import Interop.*;

/** Attributes that raise exceptions; ../README.md says when. */
final class GuardImpl implements GuardOperations {
    private boolean locked;
    private String text = "open";

    public synchronized String guarded() throws Locked {
        if (locked) throw new Locked();
        return text;
    }

    public synchronized void guarded(String value) throws Refused {
        if (value.length() > 8) throw new Refused("too long", value.length());
        text = value;
    }

    public synchronized int fragile() throws Locked, Refused {
        if (locked) throw new Locked();
        if (text.isEmpty()) throw new Refused("empty", 0);
        return text.length();
    }

    public synchronized void lock() { locked = true; }

    public synchronized void unlock() { locked = false; }
}
