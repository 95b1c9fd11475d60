//! The code of the guide, `docs/guide`: each page is a module whose examples are compiled, and run where they can be.
//! `crates/zorb-cli/tests/cli/guide.rs` checks that every page with Rust is here.

macro_rules! pages {
    ($($name:ident $page:literal)+) => {
        $(
            #[doc = include_str!(concat!("../docs/guide/src/", $page))]
            mod $name {}
        )+
    };
}

pages! {
    getting_started "getting-started.md"
    idl "idl.md"
    from_omniorb "migrating/omniorb.md"
    from_tao "migrating/tao.md"
    from_jacorb "migrating/jacorb.md"
    tuning "tuning.md"
    securing "securing.md"
    operating "operating.md"
    troubleshooting "troubleshooting.md"
}
