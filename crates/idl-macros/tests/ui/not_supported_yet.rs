idl_macros::idl! {
    struct T { map<long, string> m; };
}

idl_macros::idl! {
    typedef sequence<ValueBase> Values;
    struct S { ValueBase a; any b; };
    interface I {
        any f(in ValueBase x);
    };
}

fn main() {}
