//! References, invocation, connections, transports and dispatch of the zorb ORB, on tokio.
//!
//! The path of a request:
//!
//! 1. A generated stub calls [`private::invoke`].
//! 2. Module `client` binds the reference to a connection and encodes the request.
//! 3. `connection` queues and writes it. The state machine of `giop-proto` adds the message framing.
//! 4. At the server, `connection` reads it, `server` finds the object in `poa` and polls the future of the
//!    generated skeleton, by default in the task of the connection.
//!
//! The reply takes the same path back.
//!
//! The modules are layered: each uses only modules of lower layers (`tests/runtime/architecture.rs`). State
//! that several modules share is in `runtime`.
#![deny(unsafe_code)]

#[cfg(feature = "admin")]
mod admin;
mod client;
mod config;
mod connection;
mod conversions;
#[cfg(feature = "csi")]
pub mod csi;
pub mod dynamic;
mod endpoint;
mod errors;
#[cfg(feature = "experiments")]
mod experiments;
mod lock;
#[doc(hidden)]
pub mod lossy;
#[cfg(any(feature = "admin", feature = "metrics"))]
mod metrics;
mod object_key;
mod opaque;
mod orb;
pub mod poa;
mod quirks;
mod reference;
mod runtime;
mod servant;
mod server;
pub mod signal;
mod stream;
#[cfg(feature = "tracing")]
pub mod telemetry;
#[cfg(not(feature = "tracing"))]
#[path = "telemetry/disabled.rs"]
mod telemetry;
pub mod testing;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(not(feature = "tls"))]
#[path = "tls/disabled.rs"]
mod tls;
mod trace;
mod transport;

pub use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
pub use giop_codec::{OneLine, Printable};
pub use giop_proto::pool::PoolStats;
pub use giop_proto::{
    CallError, CallErrorKind, DepositTarget, Limit, LimitHits, Limits, LimitsError, ProtocolError, Stats,
};

pub use client::{Answer, Defer, Deferred, FanOut, RaisedBy, fan_out};
pub use config::{BuildError, WaitStrategy};
pub use connection::blocking;
#[cfg(feature = "experiments")]
pub use experiments::{Demux, ObjectDemux, OperationDemux, PathDemux};
pub use orb::{ActivateError, Activation, ArgsError, Orb, OrbBuilder, ShutdownReport};
pub use poa::ObjectId;
pub use reference::context::Context;
pub use reference::{
    InvalidName, LocalReference, NarrowError, ObjectRef, Reference, ReplyInfo, ResolveError, Retry, Serves,
    ServesLocally, SyncScope, abstract_value as values,
};
pub use servant::{
    ByteStream, DepositError, ItemStream, Request, SeqStream, Servant, ServantFuture, request, try_request,
};
pub use stream::{ByteSource, ItemSource, SeqSource};
pub use transport::{Peer, Transport, TransportStats};

/// Types of the IDL mapping that Rust itself does not have.
pub mod types {
    pub use bytes::Bytes;
    pub use giop_codec::any::{Any, AnyError};
    pub use giop_codec::cdr::{
        BitsError, BoundError, Bounded, Char, Element, Fixed, FixedError, FixedSeq, InvalidText,
        LoneSurrogate, LongDouble, Pad, RangeError, Ranged, Rounding, Seq, WChar, WStr, WString,
    };
    pub use giop_codec::dynamic::{Adaptive, Uses};
    pub use giop_codec::typecode::{
        CreateError, TcKind, TypeCode, TypeCodeError, TypeRef, TypeSet, Typed, UnionLabel, ValueModifier,
        Visibility,
    };
}

/// Types of the wire format: references, service contexts, versions.
pub mod wire {
    pub use giop_codec::code_set::CodeSetId;
    pub use giop_codec::giop::{ContextId, ObjectKey, ServiceContext, ServiceContexts};
    pub use giop_codec::ior::{IiopProfile, Ior, RebindMode, TaggedComponent, TaggedProfile};
    pub use giop_codec::url::{Corbaname, NameText, NameTextError, ObjectUrl};
    pub use giop_codec::{ByteOrder, Version};

    pub use crate::quirks::{QUIRKS, Quirk, REPLIES_IN_NATIVE_SET, Recognition};
}

/// Converts any error to a system exception. Servants use it as in
/// `std::fs::read(path).or_system_exception(SystemExceptionKind::PersistStore)?`.
pub trait ResultExt<T> {
    /// Returns the value, or a COMPLETED_MAYBE exception of this kind with the error as its source.
    ///
    /// # Errors
    /// The system exception, if `self` is an error.
    fn or_system_exception(self, kind: SystemExceptionKind) -> Result<T, SystemException>;
}

impl<T, E> ResultExt<T> for Result<T, E>
where
    E: Into<Box<dyn std::error::Error + Send + Sync + 'static>>,
{
    fn or_system_exception(self, kind: SystemExceptionKind) -> Result<T, SystemException> {
        self.map_err(|error| {
            SystemException::new(kind, MinorCode::NONE, CompletionStatus::Maybe).with_source(error)
        })
    }
}

/// Internals for fuzz targets and the program `zorb`. They are not part of the API.
#[doc(hidden)]
pub mod inside {
    pub use crate::object_key::*;
    #[cfg(feature = "tls")]
    pub use crate::testing::tls_end::TlsEnd;
}

/// Items for generated code. They are not part of the API.
#[doc(hidden)]
pub mod private {
    pub use bytes::Bytes;
    pub use giop_codec::any::Any;
    pub use giop_codec::cdr::*;
    pub use giop_codec::dynamic::reflect::{
        Adaptive, Blank, CompiledDecode, CompiledEncode, CompiledMut, CompiledRef, Optional, OptionalMut,
        ReflectRead, ReflectReader, ReflectWrite, ReflectWriter, Uses, enumerator_from_ordinal,
        read_interpreted, read_interpreted_array, read_interpreted_vec, write_interpreted,
        write_interpreted_slice,
    };
    pub use giop_codec::dynamic::{AttributeDesc, Described, InterfaceDesc, Mode, OperationDesc};
    pub use giop_codec::exception::{
        CompletionStatus, MinorCode, SystemException, SystemExceptionKind, check_argument,
    };
    pub use giop_codec::typecode::{
        Definition, Shape, TcKind, TypeCode, TypeDesc, Typed, ValueModifier, Visibility,
    };
    pub use giop_codec::value::{
        AbstractForm, Casts, CustomMarshal, Extends, Flow, Progress, Value, ValueBase, ValueForm, ValuePart,
        ValueRef, ValueType,
    };
    pub use giop_codec::{
        __zerocopy as zerocopy, DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, OneLine,
    };

    pub use crate::client::{
        LocalServant, boxed_array, invoke, invoke_from, invoke_into, local, send_oneway, send_oneway_from,
        sendc,
    };
    pub use crate::errors::{OrbError, because_of};
    pub use crate::reference::abstract_value::{Abstract, AbstractReference};
    pub use crate::reference::context::Context;
    pub use crate::reference::operation::{Interface, Operation};
    pub use crate::reference::{
        LocalObject, LocalReference, Native, ObjectRef, Reference, Serves, ServesLocally, not_received,
        not_sent,
    };
    pub use crate::servant::{
        BoxedFuture, ByteStream, DispatchSlot, ItemStream, OpTable, Operations, Outcome, ResultSource,
        SeqStart, SeqStream, ServantFuture, ServerRequest, Skeleton, StreamStart, UserException,
        unknown_user_exception,
    };
    pub use crate::stream::{ByteSource, ItemSource, SeqSource, StreamedArgument, StreamedResult};
}
