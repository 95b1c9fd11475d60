//! The part of the ORB zorb that reads IDL at run time, and its Interface Repository.
//!
//! [`Idl`] reads IDL with the compiler of `zorb::idl!`. It returns type codes, interfaces and constants in
//! the types of `orb_runtime::dynamic`. [`InterfaceRepository`] serves these descriptions, and descriptions
//! of generated types, to other programs. [`interface_of`] and [`look_up`] query the repositories of other
//! ORBs.
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
