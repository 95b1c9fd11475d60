//! Modules that have the Rust of the standard's own IDL.

/// Declares public modules, each with the Rust of a file that the IDL compiler has itself.
macro_rules! standard_modules {
    ($($(#[$attribute:meta])* $module:ident = $file:literal;)*) => {
        $($(#[$attribute])*
        pub mod $module {
            mod stubs {
                crate::idl!($file);
            }

            pub use stubs::$module::*;
        })*
    };
}
