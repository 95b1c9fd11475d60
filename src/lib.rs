#![doc = include_str!("../README.md")]
//!
//! # Cancel safety
//! Every call may be dropped at any await point: a CancelRequest goes out if the request did, the connection stays
//! good, and nothing leaks. A oneway is queued whole or not at all. Only a call that reads its octets from a [`ByteSource`] closes its
//! connection when it is dropped in their middle: one that it has for itself.
//!
//! # Features
//! None is on by default; each adds and changes nothing else.
//!
//! * `uring`: io_uring as a transport on Linux ([`Transport::IoUring`]).
//! * `tls`: connections by TLS (SSLIOP), with certificates of both sides (`zorb::tls`, `OrbBuilder::tls`).
//! * `csi`: who calls, and what he may (CSIv2): logins, asserted identities, rules from a file (`zorb::csi`, `OrbBuilder::logins`,
//!   `OrbBuilder::credentials`, `OrbBuilder::authorizer`).
//! * `encoding_rs`: further code sets for the text of peers that know no UTF-8 ([`OrbBuilder::char_sets`]).
//! * `tracing`: a span for each call on both sides, with the fields of OpenTelemetry, and the trace that it belongs to, which travels with
//!   requests (`zorb::telemetry`, `OrbBuilder::propagate`). Without a subscriber that wants them calls cost what they cost without it.
//! * `admin`: an HTTP endpoint on loopback with Prometheus metrics, health and a page of what the ORB is doing (`OrbBuilder::admin`), which `zorb top`
//!   shows, too. Off until it is asked for. Includes `tracing`.
//! * `dynamic`: IDL that is read at run time (`dynamic::Idl`). Compiles the IDL compiler into the program.
//! * `cos-events`, `cos-notification`: the Rust of the OMG's event and notification services (`zorb::cos_event_comm`,
//!   `zorb::cos_notification` and their like), which IDL refers to that includes their files.
//! * `interface-repository`: the Rust of the Interface Repository's own IDL (`zorb::interface_repository`), for typed calls to one.
//! * `metrics`: counters and gauges of the `metrics` facade: connections, messages, octets that were moved or copied, the pool of receive
//!   buffers, TLS, logins, and the limits that were hit (`zorb_limit_hits_total`). docs/OBSERVABILITY.md has all of them. They are brought
//!   up to date once a second while connections are open, and by `Orb::record_metrics`. The same figures are always there by
//!   [`Orb::stats`], [`Orb::pool_stats`] and [`Orb::transport_stats`].
#![forbid(unsafe_code)]

// Generated code names the crate so, here too.
extern crate self as zorb;

pub mod cos_naming;
pub mod dynamic;
mod errors;
#[macro_use]
mod standard;

pub use idl_macros::idl;

#[cfg(doctest)]
mod guide;

/// The Rust that a build script made of IDL by the crate `zorb-build`: `zorb::include_idl!("bank")` for `bank.idl`.
///
/// It is what `zorb::idl!("bank.idl")` would stand for, and may stand in a module or at the top of a crate.
#[macro_export]
macro_rules! include_idl {
    ($name:literal) => {
        ::core::include!(::core::concat!(::core::env!("OUT_DIR"), "/", $name, ".rs"));
    };
}

pub use orb_runtime::{
    ActivateError, Activation, ArgsError, BuildError, ByteSource, ByteStream, CallError, CallErrorKind,
    CompletionStatus, Context, Demux, DepositError, DepositTarget, InvalidName, ItemSource, ItemStream,
    Latency, Limit, LimitHits, Limits, LimitsError, LocalReference, MinorCode, NarrowError, ObjectDemux,
    ObjectId, ObjectRef, OneLine, OperationDemux, Orb, OrbBuilder, PathDemux, Peer, PoolStats, Printable,
    ProtocolError, RaisedBy, Reference, ReplyInfo, Request, ResolveError, ResultExt, Retry, SeqSource,
    SeqStream, Servant, ServantFuture, Serves, ServesLocally, ShutdownReport, Stats, SyncScope,
    SystemException, SystemExceptionKind, Transport, TransportStats, blocking, minor, request, testing,
    try_request,
};

pub use orb_runtime::{Answer, Defer, Deferred, FanOut, fan_out};

/// Types of the IDL mapping that Rust itself does not have.
pub use orb_runtime::types::{
    Adaptive, Any, AnyError, BitsError, BoundError, Bounded, Bytes, Char, CreateError, Element, Fixed,
    FixedError, FixedSeq, InvalidText, LoneSurrogate, LongDouble, Pad, RangeError, Ranged, Rounding, Seq,
    TcKind, TypeCode, TypeCodeError, TypeRef, TypeSet, Typed, UnionLabel, Uses, ValueModifier, Visibility,
    WChar, WStr, WString,
};

/// Value types: graphs that travel by value, with sharing, cycles and null.
pub mod values {
    pub use orb_runtime::values::*;
}

pub use orb_runtime::values::{Abstract, AbstractReference, GraphBuilder, Value, ValueBase, ValueRef};

/// The Portable Object Adapter: which objects there are, under which ids, by which policies.
pub mod poa {
    pub use orb_runtime::poa::*;
}

pub use orb_runtime::poa::{Poa, PoaManager};

/// Who calls, and what he may: logins and asserted identities beside requests (CSIv2), and rules for calls.
#[cfg(feature = "csi")]
pub mod csi {
    pub use orb_runtime::csi::*;
}

/// Who looks on at calls: spans of the `tracing` facade, and the traces that calls belong to.
#[cfg(feature = "tracing")]
pub mod telemetry {
    pub use orb_runtime::telemetry::*;
}

/// TLS for connections (SSLIOP): who this ORB is, whom it trusts, and what it asks of its peers.
#[cfg(feature = "tls")]
pub mod tls {
    pub use orb_runtime::tls::*;
}

/// The signal that ends a server.
pub mod signal {
    pub use orb_runtime::signal::*;
}

/// What the wire carries: references, service contexts, versions.
pub mod wire {
    pub use orb_runtime::wire::*;
}

/// What `orb.idl` declares in module `CORBA`: sequences of basic types, names and ids, policies.
///
/// IDL that includes `<orb.idl>` refers to these types, so that all programs share them. What belongs to an ORB itself has no Rust here:
/// `docs/IDL-MAPPING.md` has the list.
pub mod corba {
    mod stubs {
        crate::idl!("<orb.idl>");
    }

    pub use crate::{TcKind, TypeCode};
    pub use stubs::corba::*;
}

/// The objects of an Interface Repository, as `ir.idl` declares them in module `CORBA`: for typed calls to one, and for IDL that names
/// them. [`dynamic`] has a repository, and makes programs of what others say.
#[cfg(feature = "interface-repository")]
pub mod interface_repository {
    mod stubs {
        crate::idl!("<ir.idl>");
    }

    pub use stubs::corba::*;
}

standard_modules! {
    /// Profiles, components and service contexts as `IOP.idl` declares them; [`wire`] has what the ORB itself uses.
    iop = "<IOP.idl>";
    /// The headers of messages as `GIOP.idl` declares them, for programs that keep or show messages.
    giop = "<GIOP.idl>";
    /// The profiles of IIOP as `IIOP.idl` declares them.
    iiop = "<IIOP.idl>";
    /// Time as the OMG's services count it: `TimeBase.idl`.
    time_base = "<TimeBase.idl>";
    /// The constants and types of CORBA Messaging, and the base of handlers of replies: `Messaging.idl`.
    messaging = "<Messaging.idl>";
    /// The values of policies as `PortableServer.idl` declares them; the object adapter is in [`poa`].
    portable_server = "<PortableServer.idl>";
    /// The types of real-time CORBA: `RTCORBA.idl`.
    rtcorba = "<RTCORBA.idl>";
    /// The event service, what sends and receives events: `CosEventComm.idl`.
    #[cfg(feature = "cos-events")]
    cos_event_comm = "<CosEventComm.idl>";
    /// The event service, its channels: `CosEventChannelAdmin.idl`.
    #[cfg(feature = "cos-events")]
    cos_event_channel_admin = "<CosEventChannelAdmin.idl>";
    /// The typed event service, what sends and receives events: `CosTypedEventComm.idl`.
    #[cfg(feature = "cos-events")]
    cos_typed_event_comm = "<CosTypedEventComm.idl>";
    /// The typed event service, its channels: `CosTypedEventChannelAdmin.idl`.
    #[cfg(feature = "cos-events")]
    cos_typed_event_channel_admin = "<CosTypedEventChannelAdmin.idl>";
    /// The notification service, structured events and quality of service: `CosNotification.idl`.
    #[cfg(feature = "cos-notification")]
    cos_notification = "<CosNotification.idl>";
    /// The notification service, what sends and receives events: `CosNotifyComm.idl`.
    #[cfg(feature = "cos-notification")]
    cos_notify_comm = "<CosNotifyComm.idl>";
    /// The notification service, its filters: `CosNotifyFilter.idl`.
    #[cfg(feature = "cos-notification")]
    cos_notify_filter = "<CosNotifyFilter.idl>";
    /// The notification service, its channels: `CosNotifyChannelAdmin.idl`.
    #[cfg(feature = "cos-notification")]
    cos_notify_channel_admin = "<CosNotifyChannelAdmin.idl>";
}

/// What almost every program needs: `use zorb::prelude::*;`.
pub mod prelude {
    pub use std::time::Duration;

    pub use crate::cos_naming::OrbNaming;
    pub use crate::{
        AbstractReference, Any, Bounded, Bytes, Char, CompletionStatus, Defer, Fixed, LocalReference,
        LongDouble, MinorCode, ObjectRef, Orb, Reference, ResultExt, Seq, SystemException,
        SystemExceptionKind, TypeCode, Typed, Value, ValueBase, WChar, WStr, WString, minor, request,
    };
}

/// What generated code names. Nothing here is for users.
#[doc(hidden)]
pub mod __private {
    /// The items that the generated code of this version names.
    pub mod v1 {
        pub use orb_runtime::private::*;
    }
}
