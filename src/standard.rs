//! Modules generated from the standard's own IDL.

/// Declares public modules, each generated from a file that the IDL compiler contains.
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
