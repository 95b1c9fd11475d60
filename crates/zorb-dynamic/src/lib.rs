//! IDL that is read at run time, and the Interface Repository, of the zorb ORB.
//!
//! [`Idl`] reads IDL by the compiler of `zorb::idl!` and returns type codes, interfaces and constants as the
//! data of `orb_runtime::dynamic`. [`InterfaceRepository`] serves these descriptions, and those of generated
//! types, to other programs. [`interface_of`] and [`look_up`] query the repositories of other ORBs.
//!
//! No code is generated from the repository's own IDL: its objects are dynamic servants of the `ir.idl` that
//! the compiler contains.
//!
//! Programs use this crate as `zorb::dynamic`, with the feature `dynamic` of `zorb`.
#![forbid(unsafe_code)]

mod conversions;
mod idl;
mod ifr;
mod value_info;

pub use idl::{Definition, DefinitionKind, Idl, IdlError, IdlFinding, IdlOptions};
pub use ifr::{
    DefinitionDetails, DescribedDefinition, FetchError, InterfaceList, InterfaceRepository, ServeError,
    describe_contents, describe_definition, interface_of, look_up, look_up_interface, look_up_value,
};
pub use value_info::{InitializerInfo, ValueInfo};
