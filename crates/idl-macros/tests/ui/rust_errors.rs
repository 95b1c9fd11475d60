idl_macros::idl! {
    struct fooBar { long aB; long a_b; };
    struct foo_bar { long x; };
    interface I {
        attribute long size;
        void set_size(in long x);
    };
}

idl_macros::idl! {
    @zero_copy struct Huge { double d[10000]; };
}

fn main() {}
