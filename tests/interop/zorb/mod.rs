//! zorb's peer of the interoperability tests: the servants of `idl/*.idl`, and a client that calls every
//! operation of any server of them. `../README.md` describes each operation; `../omniorb` and `../jacorb` are
//! the other implementations.

pub mod checks;
pub mod checks_calls;
pub mod checks_echo;
pub mod checks_references;
pub mod servant;
pub mod servant_echo;
pub mod servant_references;
pub mod transform;

/// The code that `idl!` generates for `types.idl`.
pub mod types {
    zorb::idl!("tests/interop/idl/types.idl");
}

/// The code for `extras.idl`, which JacORB's compiler rejects.
pub mod extras {
    zorb::idl!("tests/interop/idl/extras.idl");
}

/// The code for `guard.idl`, which omniORB's compiler rejects.
pub mod guard {
    zorb::idl!("tests/interop/idl/guard.idl");
}
