//! The encodings of the zorb ORB: CDR, GIOP messages, IORs (object references), URLs, code sets and type
//! codes. This crate only converts between bytes and values; it uses no sockets and no clocks.
#![forbid(unsafe_code)]

pub mod any;
pub mod cdr;
pub mod code_set;
pub mod csi;
pub mod dynamic;
mod error;
pub mod exception;
pub mod giop;
pub mod ior;
mod order;
mod printable;
mod program;
pub mod typecode;
pub mod url;
pub mod value;
mod walk;

pub use error::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};
pub use order::{ByteOrder, Version};
pub use printable::{OneLine, Printable, is_printable};

#[doc(hidden)]
pub use zerocopy as __zerocopy;
