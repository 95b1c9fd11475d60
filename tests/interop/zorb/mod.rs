//! zorb's peer of the interoperability tests: the servants of `idl/*.idl`, and a client that drives every operation of
//! any server of them. `../README.md` says what each operation does; `../omniorb` and `../jacorb` are its siblings.

pub mod checks;
pub mod checks_calls;
pub mod checks_echo;
pub mod checks_references;
pub mod servant;
pub mod servant_echo;
pub mod servant_references;
pub mod transform;

/// What `idl!` makes of `types.idl`.
pub mod types {
    zorb::idl!("tests/interop/idl/types.idl");
}

/// Of `extras.idl`, which JacORB's compiler refuses.
pub mod extras {
    zorb::idl!("tests/interop/idl/extras.idl");
}

/// Of `guard.idl`, which omniORB's compiler refuses.
pub mod guard {
    zorb::idl!("tests/interop/idl/guard.idl");
}
