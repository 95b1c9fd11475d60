// Messages about files name the files.
idl_macros::idl!("../../../tmp/ui-files/main.idl", include = ["../../../tmp/ui-files/inc"]);

// What is elsewhere must be said.
idl_macros::idl!("../../../tmp/ui-files/uses.idl", include_policy = extern);

// A second file that is not there, and one that is.
idl_macros::idl!("../../../tmp/ui-files/uses.idl", "no/such.idl");

// A directive among Rust tokens.
idl_macros::idl! {
    #include "x.idl"
    struct S { long x; };
}

fn main() {}
