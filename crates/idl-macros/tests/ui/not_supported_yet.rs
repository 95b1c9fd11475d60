idl_macros::idl! {
    struct T { map<long, string> m; };
}

idl_macros::idl! {
    abstract interface A { };
}

fn main() {}
