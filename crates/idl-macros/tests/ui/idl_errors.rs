idl_macros::idl! {
    module M {
        struct S { Nowhere n; };
        interface I {
            oneway long f();
            void g(in unsigned short int);
        };
        const octet TOO_BIG = 256;
        struct S { long x; };
    };
}

fn main() {}
