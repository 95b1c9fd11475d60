//! Values of types that are known only at run time.

mod any;
mod build;
mod check;
mod decimal;
mod dynany;
mod error;
mod interface;
#[cfg(feature = "serde")]
mod json;
mod part;
mod path;
pub mod program;
#[doc(hidden)]
pub mod reflect;
mod value;

pub use decimal::Decimal;
pub use dynany::{DynAny, DynEnum, DynFixed, DynSequence, DynStruct, DynUnion, DynValue};
pub use error::{DynError, DynErrorKind};
pub use interface::{
    AttributeDesc, AttributeInfo, Described, Interface, InterfaceDesc, Mode, OperationDesc, OperationInfo,
    ParamInfo,
};
#[cfg(feature = "serde")]
pub use json::DynamicSeed;
pub use path::{Path, Step};
pub use reflect::{Adaptive, Uses};
pub use value::{Dynamic, Items, UnionValue, Value, ValueGraph, ValueNode};
