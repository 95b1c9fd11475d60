//! An async CORBA Object Request Broker.
//!
//! zorb calls and serves CORBA objects with GIOP 1.0 to 1.2 over TCP, TLS and Unix sockets. Peers may be
//! other zorb programs, omniORB, TAO, JacORB, or any other IIOP ORB.
//!
//! The [guide](https://github.com/zorb-rs/zorb/blob/main/docs/guide/src/SUMMARY.md) is the tutorial. This
//! page is an overview of the API.
//!
//! # Example
//!
//! ```
//! use zorb::prelude::*;
//!
//! zorb::idl! {
//!     module Clock {
//!         interface Watch { long long now(in string zone); };
//!     };
//! }
//!
//! struct MyWatch;
//!
//! impl clock::WatchServant for MyWatch {
//!     async fn now(&self, zone: &str) -> Result<i64, SystemException> {
//!         Ok(zone.len() as i64)
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await?;
//! let watch: clock::WatchRef = server.activate(MyWatch)?;
//!
//! let client = Orb::builder().build().await?;
//! let watch: clock::WatchRef = client.resolve(&watch.to_string()).await?;
//! assert_eq!(watch.now("UTC").await?, 3);
//! # server.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! # IDL
//!
//! [`idl!`] compiles IDL from a text or from a file. `zorb-build` compiles IDL in a build script, and `idlc`
//! on the command line. An interface `Watch` in a module `Clock` becomes:
//!
//! * `clock::WatchRef`, a typed reference with an async method for each operation,
//! * `clock::WatchServant`, the async trait that servants implement,
//! * `clock::watch::NowError` for an operation `now` that raises user exceptions.
//!
//! [IDL-MAPPING.md](https://github.com/zorb-rs/zorb/blob/main/docs/IDL-MAPPING.md) lists what each construct
//! becomes.
//!
//! # ORBs, references and servants
//!
//! An [`Orb`] owns connections, objects and limits. [`Orb::builder`] configures an ORB. A process may have
//! several ORBs. Cloning an [`Orb`] or a reference is cheap: it increments a reference count.
//!
//! [`Orb::resolve`] makes a typed reference from a URL or IOR. It asks the server whether the object has that
//! type, unless the IOR names the type. [`Orb::resolve_unchecked`] does not ask. [`ObjectRef`] is a reference
//! to an object of any type. All references implement the trait [`Reference`]. Its options, such as
//! [`with_timeout`](Reference::with_timeout), return a new reference with the option.
//!
//! [`Orb::activate`] and [`Orb::activate_named`] serve a servant at the root object adapter. [`poa`] has the
//! whole POA: policies, managers, servant activators and locators. [`cos_naming`] is the client of naming
//! services. [`dynamic`] has calls and servants for interfaces that are known only at run time.
//!
//! # Errors
//!
//! The error type of an operation is [`SystemException`], or its own type if it raises user exceptions. A
//! [`SystemException`] has a [kind](SystemExceptionKind), a [minor code](MinorCode) and a
//! [`CompletionStatus`], which says whether the request may have been executed. `Display` shows the reason,
//! too.
//!
//! # Cancel safety
//!
//! Every call may be dropped at any await point. If its request was sent, a CancelRequest follows. The
//! connection stays usable, and nothing leaks. The request of a oneway call is queued as a whole or not at
//! all. A call that reads its argument from a [`ByteSource`] is different: it has a connection of its own,
//! which is closed if the call is dropped before it ends.
//!
//! # Limits
//!
//! [`Limits`] has a limit for everything that a peer can make the ORB keep in memory. By default, all these
//! limits are finite. Each limit documents what follows if it is reached.
//!
//! # Features
//!
//! No feature is enabled by default. Features add items. They do not change existing items.
//!
//! | feature | adds |
//! |---|---|
//! | `admin` | an HTTP endpoint with Prometheus metrics, health and a live page (`OrbBuilder::admin`); includes `tracing` |
//! | `cos-events`, `cos-notification` | the types of the OMG's event and notification services |
//! | `csi` | CSIv2: logins, asserted identities and authorization rules (`zorb::csi`) |
//! | `dynamic` | IDL that is read at run time, and an Interface Repository (`dynamic::Idl`) |
//! | `encoding_rs` | further code sets ([`OrbBuilder::char_code_sets`]) |
//! | `experiments` | strategies for comparison, slower than the defaults (`OrbBuilder::demux`, `OrbBuilder::zero_copy`) |
//! | `interface-repository` | typed stubs of the Interface Repository (`zorb::interface_repository`) |
//! | `metrics` | counters and gauges for the `metrics` facade (`Orb::record_metrics`) |
//! | `serde` | JSON of values of any type, and `Limits` from a configuration file |
//! | `tls` | TLS connections, SSLIOP (`zorb::tls`, `OrbBuilder::tls`) |
//! | `trace-stderr` | a log on standard error by `-ORBtraceLevel` |
//! | `tracing` | a span for each call, and trace contexts in requests (`zorb::telemetry`) |
//! | `uring` | io_uring as a transport on Linux ([`Transport::IoUring`]) |
#![forbid(unsafe_code)]

// Generated code refers to the crate by this name, even in the crate itself.
extern crate self as zorb;

pub mod cos_naming;
mod errors;
#[macro_use]
mod standard;

pub use idl_macros::idl;

#[cfg(doctest)]
mod guide;

/// Includes the Rust code that a build script generated with the crate `zorb-build`:
/// `zorb::include_idl!("bank")` for `bank.idl`.
///
/// It has the same result as `zorb::idl!("bank.idl")`, and may be used in a module or at the root of a crate.
#[macro_export]
macro_rules! include_idl {
    ($name:literal) => {
        ::core::include!(::core::concat!(::core::env!("OUT_DIR"), "/", $name, ".rs"));
    };
}

pub use orb_runtime::{
    ActivateError, Activation, Answer, ArgsError, BuildError, ByteSource, ByteStream, CallError,
    CallErrorKind, CompletionStatus, Context, Defer, Deferred, DepositError, DepositTarget, FanOut,
    InvalidName, ItemSource, ItemStream, Limit, LimitHits, Limits, LimitsError, LocalReference, MinorCode,
    NarrowError, ObjectId, ObjectRef, OneLine, Orb, OrbBuilder, Peer, PoolStats, Printable, ProtocolError,
    RaisedBy, Reference, ReplyInfo, Request, ResolveError, ResultExt, Retry, SeqSource, SeqStream, Servant,
    ServantFuture, Serves, ServesLocally, ShutdownReport, Stats, SyncScope, SystemException,
    SystemExceptionKind, Transport, TransportStats, WaitStrategy, blocking, fan_out, minor, request, testing,
    try_request,
};

#[cfg(feature = "experiments")]
pub use orb_runtime::{Demux, ObjectDemux, OperationDemux, PathDemux};

/// Types of the IDL mapping that Rust itself does not have.
pub use orb_runtime::types::{
    Adaptive, Any, AnyError, BitsError, BoundError, Bounded, Bytes, Char, CreateError, Element, Fixed,
    FixedError, FixedSeq, InvalidText, LoneSurrogate, LongDouble, Pad, RangeError, Ranged, Rounding, Seq,
    TcKind, TypeCode, TypeCodeError, TypeRef, TypeSet, Typed, UnionLabel, Uses, ValueModifier, Visibility,
    WChar, WStr, WString,
};

/// Value types: objects that are passed by value, as graphs with sharing, cycles and null.
pub mod values {
    pub use orb_runtime::values::*;
}

pub use orb_runtime::values::{Abstract, AbstractReference, GraphBuilder, Value, ValueBase, ValueRef};

/// The Portable Object Adapter (POA), its policies, and the ids of its objects.
pub mod poa {
    pub use orb_runtime::poa::*;
}

pub use orb_runtime::poa::{Poa, PoaManager};

/// Authentication and authorization: logins and asserted identities in requests (CSIv2), and rules for calls.
#[cfg(feature = "csi")]
pub mod csi {
    pub use orb_runtime::csi::*;
}

/// Observation of calls: spans of the `tracing` facade, and trace contexts.
#[cfg(feature = "tracing")]
pub mod telemetry {
    pub use orb_runtime::telemetry::*;
}

/// TLS for connections (SSLIOP): the ORB's identity, the trusted certificates, and what peers must provide.
#[cfg(feature = "tls")]
pub mod tls {
    pub use orb_runtime::tls::*;
}

/// Interfaces, calls and servants that are not known at compile time.
///
/// With the feature `dynamic`, interfaces can come from IDL that is read at run time: see `Idl`.
pub mod dynamic {
    pub use orb_runtime::dynamic::*;
    #[cfg(feature = "dynamic")]
    pub use zorb_dynamic::{
        Definition, DefinitionDetails, DefinitionKind, DescribedDefinition, FetchError, Idl, IdlError,
        IdlFinding, IdlOptions, InitializerInfo, InterfaceList, InterfaceRepository, ServeError, ValueInfo,
        describe_contents, describe_definition, interface_of, look_up, look_up_interface, look_up_value,
    };
}

/// The signals that end a server.
pub mod signal {
    pub use orb_runtime::signal::*;
}

/// The data that ORBs exchange: references, service contexts, versions.
pub mod wire {
    pub use orb_runtime::wire::*;
}

/// The types that `orb.idl` declares in module `CORBA`: sequences of basic types, names and ids, policies.
///
/// IDL that includes `<orb.idl>` refers to these types, so that all programs share them.
/// `docs/IDL-MAPPING.md` lists the types of `orb.idl` that are not here, because they are parts of an ORB.
pub mod corba {
    mod stubs {
        crate::idl!("<orb.idl>");
    }

    pub use crate::{TcKind, TypeCode};
    pub use stubs::corba::*;
}

/// The interfaces of an Interface Repository, as `ir.idl` declares them in module `CORBA`, for typed calls
/// and for IDL that refers to them. [`dynamic`] has a repository, and a client of other repositories.
#[cfg(feature = "interface-repository")]
pub mod interface_repository {
    #[allow(clippy::too_many_arguments, reason = "operations of the standard have up to ten")]
    mod stubs {
        crate::idl!("<ir.idl>");
    }

    pub use stubs::corba::*;
}

standard_modules! {
    /// Profiles, components and service contexts as `IOP.idl` declares them. The ORB itself uses [`wire`].
    iop = "<IOP.idl>";
    /// The headers of messages as `GIOP.idl` declares them, for programs that store or display messages.
    giop = "<GIOP.idl>";
    /// The profiles of IIOP as `IIOP.idl` declares them.
    iiop = "<IIOP.idl>";
    /// The time types of the OMG's services: `TimeBase.idl`.
    time_base = "<TimeBase.idl>";
    /// The constants and types of CORBA Messaging, and the base of reply handlers: `Messaging.idl`.
    messaging = "<Messaging.idl>";
    /// The values of policies as `PortableServer.idl` declares them. The object adapter is in [`poa`].
    portable_server = "<PortableServer.idl>";
    /// The types of real-time CORBA: `RTCORBA.idl`.
    rtcorba = "<RTCORBA.idl>";
    /// The event service: suppliers and consumers, `CosEventComm.idl`.
    #[cfg(feature = "cos-events")]
    cos_event_comm = "<CosEventComm.idl>";
    /// The event service: channels, `CosEventChannelAdmin.idl`.
    #[cfg(feature = "cos-events")]
    cos_event_channel_admin = "<CosEventChannelAdmin.idl>";
    /// The typed event service: suppliers and consumers, `CosTypedEventComm.idl`.
    #[cfg(feature = "cos-events")]
    cos_typed_event_comm = "<CosTypedEventComm.idl>";
    /// The typed event service: channels, `CosTypedEventChannelAdmin.idl`.
    #[cfg(feature = "cos-events")]
    cos_typed_event_channel_admin = "<CosTypedEventChannelAdmin.idl>";
    /// The notification service: structured events and quality of service, `CosNotification.idl`.
    #[cfg(feature = "cos-notification")]
    cos_notification = "<CosNotification.idl>";
    /// The notification service: suppliers and consumers, `CosNotifyComm.idl`.
    #[cfg(feature = "cos-notification")]
    cos_notify_comm = "<CosNotifyComm.idl>";
    /// The notification service: filters, `CosNotifyFilter.idl`.
    #[cfg(feature = "cos-notification")]
    cos_notify_filter = "<CosNotifyFilter.idl>";
    /// The notification service: channels, `CosNotifyChannelAdmin.idl`.
    #[cfg(feature = "cos-notification")]
    cos_notify_channel_admin = "<CosNotifyChannelAdmin.idl>";
}

/// The items that almost every program needs: `use zorb::prelude::*;`.
pub mod prelude {
    pub use std::time::Duration;

    pub use crate::cos_naming::OrbNaming;
    pub use crate::{
        AbstractReference, Any, Bounded, Bytes, Char, CompletionStatus, Defer, Fixed, LocalReference,
        LongDouble, MinorCode, ObjectRef, Orb, Reference, ResultExt, Seq, SystemException,
        SystemExceptionKind, TypeCode, Typed, Value, ValueBase, WChar, WStr, WString, minor, request,
    };
}

/// The items that generated code refers to. Nothing here is for users.
#[doc(hidden)]
pub mod __private {
    /// The items that the generated code of this version refers to.
    pub mod v1 {
        pub use orb_runtime::private::*;
    }
}
