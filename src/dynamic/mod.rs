//! Interfaces, calls and servants that are not known at compile time.
//!
//! With the feature `dynamic` they may come from IDL that is read at run time: `Idl`.

#[cfg(feature = "dynamic")]
mod idl;
#[cfg(feature = "dynamic")]
mod ifr;
#[cfg(feature = "dynamic")]
mod value_info;

pub use orb_runtime::dynamic::*;

#[cfg(feature = "dynamic")]
pub use idl::{Definition, DefinitionKind, Idl, IdlError, IdlFinding, IdlOptions};
#[cfg(feature = "dynamic")]
pub use ifr::{
    DefinitionDetails, DescribedDefinition, FetchError, InterfaceList, InterfaceRepository, ServeError,
    describe_contents, describe_definition, interface_of, look_up, look_up_interface, look_up_value,
};
#[cfg(feature = "dynamic")]
pub use value_info::{InitializerInfo, ValueInfo};
