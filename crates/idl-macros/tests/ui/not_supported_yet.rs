idl_macros::idl! {
    struct T { map<long, string> m; };
    local interface L { };
}

idl_macros::idl! {
    typedef sequence<any> Anys;
    struct S { any a; CORBA::TypeCode b; };
    interface I {
        any f(in any x) context ("user");
    };
}

fn main() {}
