// Warnings of the IDL are warnings of rustc, which this crate makes errors.
#![deny(deprecated)]

mod file {
    idl_macros::idl!("../../../tmp/ui-files/warns.idl");
}

mod text {
    idl_macros::idl!(
        r#"
#warning written by hand
struct Data { long x; };
interface I { void f(in Data data); };
"#
    );
}

mod tokens {
    idl_macros::idl! {
        // Which other compilers refuse, though none of them reads this.
        exception E {};
        interface J { void g(in J j) raises (E, E); };
    }
}

mod chosen {
    idl_macros::idl!("../../../tmp/ui-files/warns.idl", no_warnings);
}

#[allow(deprecated)]
mod allowed {
    idl_macros::idl!("../../../tmp/ui-files/warns.idl");
}

fn main() {}
