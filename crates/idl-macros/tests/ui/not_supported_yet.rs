idl_macros::idl! {
    valuetype V { public long x; };
    struct S { any a; };
    struct T { map<long, string> m; };
    local interface L { };
}

fn main() {}
