//! The examples of `README.md` and `docs`. Each page is a module, so that its examples are compiled, and run
//! unless they say `no_run`. `crates/zorb-cli/tests/cli/guide.rs` checks that all pages with Rust are here.

#[doc = include_str!("../README.md")]
mod readme {}

macro_rules! pages {
    ($($name:ident $page:literal)+) => {
        $(
            #[doc = include_str!(concat!("../docs/", $page))]
            mod $name {}
        )+
    };
}

pages! {
    idl_mapping "IDL-MAPPING.md"
}

#[cfg(feature = "dynamic")]
pages! {
    interface_repository "INTERFACE-REPOSITORY.md"
}

// The page also needs the feature `tracing`, which the feature `admin` enables.
#[cfg(feature = "admin")]
pages! {
    observability "OBSERVABILITY.md"
}

#[cfg(all(feature = "csi", feature = "dynamic", feature = "tls"))]
pages! {
    getting_started "guide/src/getting-started.md"
    idl "guide/src/idl.md"
    servants "guide/src/servants.md"
    factories "guide/src/factories.md"
    callbacks "guide/src/callbacks.md"
    streaming "guide/src/streaming.md"
    versions "guide/src/versions.md"
    containers "guide/src/containers.md"
    from_omniorb "guide/src/migrating/omniorb.md"
    from_tao "guide/src/migrating/tao.md"
    from_jacorb "guide/src/migrating/jacorb.md"
    from_java_ee "guide/src/migrating/java-ee.md"
    tuning "guide/src/tuning.md"
    securing "guide/src/securing.md"
    operating "guide/src/operating.md"
    troubleshooting "guide/src/troubleshooting.md"
}
