idl_macros::idl! {
    struct fooBar { long aB; @rust_name("a_b") long other; };
    @rust_name("FooBar") struct foo_bar { long x; };
    interface I {
        attribute long size;
        @rust_name("set_size") void resize(in long x);
    };
}

idl_macros::idl! {
    @zero_copy struct Huge { double d[10000]; };
}

fn main() {}
