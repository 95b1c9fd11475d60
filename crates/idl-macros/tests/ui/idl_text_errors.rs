idl_macros::idl!(
    r#"
    module M {
        struct S { Nowhere n; };
        const wstring W = L"ok";
        const short X = 70000;
    };
    "#
);

fn main() {}
