//! Policies in references and service contexts: quality of service as a server offers it and a caller asks for it.

use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::encapsulation::{encapsulation, open_encapsulation, put_octets, read_octets_owned};
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::giop::{ContextId, ServiceContext};
use crate::{DecodeError, DecodeErrorKind, EncodeError};

/// Most policies that a component or context may have; more is `MARSHAL`.
pub const MAX_POLICIES: usize = 64;

/// Which policy it is.
///
/// Source clause: "Policy Object" (`CORBA::PolicyType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyType(pub u32);

impl PolicyType {
    /// `REBIND_POLICY_TYPE`.
    pub const REBIND: Self = Self(23);
    /// `SYNC_SCOPE_POLICY_TYPE`.
    pub const SYNC_SCOPE: Self = Self(24);
    /// `REQUEST_PRIORITY_POLICY_TYPE`.
    pub const REQUEST_PRIORITY: Self = Self(25);
    /// `REPLY_PRIORITY_POLICY_TYPE`.
    pub const REPLY_PRIORITY: Self = Self(26);
    /// `REQUEST_START_TIME_POLICY_TYPE`.
    pub const REQUEST_START_TIME: Self = Self(27);
    /// `REQUEST_END_TIME_POLICY_TYPE`.
    pub const REQUEST_END_TIME: Self = Self(28);
    /// `REPLY_START_TIME_POLICY_TYPE`.
    pub const REPLY_START_TIME: Self = Self(29);
    /// `REPLY_END_TIME_POLICY_TYPE`.
    pub const REPLY_END_TIME: Self = Self(30);
    /// `RELATIVE_REQ_TIMEOUT_POLICY_TYPE`.
    pub const RELATIVE_REQUEST_TIMEOUT: Self = Self(31);
    /// `RELATIVE_RT_TIMEOUT_POLICY_TYPE`.
    pub const RELATIVE_ROUNDTRIP_TIMEOUT: Self = Self(32);
    /// `ROUTING_POLICY_TYPE`.
    pub const ROUTING: Self = Self(33);
    /// `MAX_HOPS_POLICY_TYPE`.
    pub const MAX_HOPS: Self = Self(34);
    /// `QUEUE_ORDER_POLICY_TYPE`.
    pub const QUEUE_ORDER: Self = Self(35);
    /// `BIDIRECTIONAL_POLICY_TYPE`.
    pub const BIDIRECTIONAL: Self = Self(37);
}

/// Makes an enum of numbers on the wire.
macro_rules! numbers {
    ($(#[$doc:meta])* $name:ident: $number:ty { $($(#[$of:meta])* $variant:ident = $value:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr($number)]
        pub enum $name {
            $($(#[$of])* $variant = $value,)*
        }

        impl $name {
            /// The value of that number; `None` where there is none.
            pub const fn from_number(number: $number) -> Option<Self> {
                match number {
                    $($value => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

numbers! {
    /// Whether calls may go to another place than before (`Messaging::RebindMode`).
    ///
    /// Source clause: "Messaging QoS / Rebind Support".
    RebindMode: i16 {
        /// Connections are made anew and forwards followed unseen: the default.
        Transparent = 0,
        /// Connections may be made anew; a forward that would change the policies in force is `REBIND`.
        NoRebind = 1,
        /// Neither: a connection that must be made anew is `REBIND`, too.
        NoReconnect = 2,
    }
}

numbers! {
    /// When a oneway completes for its caller (`Messaging::SyncScope`).
    ///
    /// Source clause: "Messaging QoS / Synchronization Scope".
    SyncScope: i16 {
        /// At once.
        None = 0,
        /// When the transport has it.
        WithTransport = 1,
        /// When the server has it.
        WithServer = 2,
        /// When the servant is done.
        WithTarget = 3,
    }
}

numbers! {
    /// How a request may be delivered (`Messaging::RoutingType`).
    RoutingType: i16 {
        /// Over a connection to the target.
        None = 0,
        /// By routers, without being stored.
        Forward = 1,
        /// By routers that store it.
        StoreAndForward = 2,
    }
}

numbers! {
    /// What an object wants of transactions (`CosTransactions::OTSPolicyValue`).
    OtsPolicy: u16 {
        /// Calls must be inside of one.
        Requires = 1,
        /// Calls must not be inside of one.
        Forbids = 2,
        /// Either.
        Adapts = 3,
    }
}

numbers! {
    /// How an object may be called inside of transactions (`CosTransactions::InvocationPolicyValue`).
    InvocationPolicy: u16 {
        /// Directly or by routers.
        Either = 0,
        /// Directly: caller and object share the transaction.
        Shared = 1,
        /// By routers: they do not.
        Unshared = 2,
    }
}

/// The least and the greatest value that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RangeOf<T> {
    /// The least.
    pub min: T,
    /// The greatest.
    pub max: T,
}

impl<T: Ord + Copy> RangeOf<T> {
    /// What is in both; `None` where nothing is.
    #[must_use]
    pub fn intersection(self, other: Self) -> Option<Self> {
        let both = Self { min: self.min.max(other.min), max: self.max.min(other.max) };
        (both.min <= both.max).then_some(both)
    }
}

/// A moment, as the time service writes it (`TimeBase::UtcT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UtcTime {
    /// Units of 100 ns since 15 October 1582, 00:00 UTC.
    pub time: u64,
    /// How far it may be off to either side, in units of 100 ns; 48 bits travel.
    pub inaccuracy: u64,
    /// The time zone of whoever wrote it: minutes east of Greenwich.
    pub displacement: i16,
}

/// From 15 October 1582 to 1 January 1970, in units of 100 ns.
const UNIX_EPOCH: u64 = 0x01b2_1dd2_1381_4000;

impl UtcTime {
    /// The moment, in UTC and exact. One before 1582 or beyond what can be written is the nearest that can.
    pub fn from_system(moment: SystemTime) -> Self {
        let time = match moment.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => UNIX_EPOCH.saturating_add(ticks(since)),
            Err(before) => UNIX_EPOCH.saturating_sub(ticks(before.duration())),
        };
        Self { time, inaccuracy: 0, displacement: 0 }
    }

    /// The moment; `None` where the system's clock has no such one.
    pub fn to_system(self) -> Option<SystemTime> {
        if self.time >= UNIX_EPOCH {
            SystemTime::UNIX_EPOCH.checked_add(span(self.time - UNIX_EPOCH))
        } else {
            SystemTime::UNIX_EPOCH.checked_sub(span(UNIX_EPOCH - self.time))
        }
    }
}

/// A span of time in units of 100 ns, as `TimeBase::TimeT` counts; what is too long is the longest.
fn ticks(span: Duration) -> u64 {
    u64::try_from(span.as_nanos() / 100).unwrap_or(u64::MAX)
}

fn span(ticks: u64) -> Duration {
    Duration::new(ticks / 10_000_000, (ticks % 10_000_000) as u32 * 100)
}

/// A policy with its value, as references and service contexts carry it.
///
/// Each travels as its type and an encapsulation of its value. One of an unknown type, or with a value that does not decode or does not
/// exist, is [`Other`](Self::Other): it must not spoil what stands beside it.
/// Source clause: "Messaging QoS" (`Messaging::PolicyValue`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// `RebindPolicy`.
    Rebind(RebindMode),
    /// `SyncScopePolicy`.
    SyncScope(SyncScope),
    /// `RequestPriorityPolicy`.
    RequestPriority(RangeOf<i16>),
    /// `ReplyPriorityPolicy`.
    ReplyPriority(RangeOf<i16>),
    /// `RequestStartTimePolicy`: the request must not be processed before.
    RequestStartTime(UtcTime),
    /// `RequestEndTimePolicy`: nor after.
    RequestEndTime(UtcTime),
    /// `ReplyStartTimePolicy`: the reply must not be handed to the caller before.
    ReplyStartTime(UtcTime),
    /// `ReplyEndTimePolicy`: nor after.
    ReplyEndTime(UtcTime),
    /// `RelativeRequestTimeoutPolicy`, in steps of 100 ns: how long the request may take to its target.
    RelativeRequestTimeout(Duration),
    /// `RelativeRoundtripTimeoutPolicy`, in steps of 100 ns: how long request and reply may take.
    RelativeRoundtripTimeout(Duration),
    /// `RoutingPolicy`.
    Routing(RangeOf<RoutingType>),
    /// `MaxHopsPolicy`: how many routers a request may pass.
    MaxHops(u16),
    /// `QueueOrderPolicy`, bits: 1 any order, 2 by time, 4 by priority, 8 by deadline.
    QueueOrder(u16),
    /// `BidirectionalPolicy`: whether calls may come back over a connection (`BOTH`).
    Bidirectional(bool),
    /// Any other.
    Other {
        /// Which.
        kind: PolicyType,
        /// Its value: an encapsulation.
        value: Bytes,
    },
}

impl Policy {
    /// Which policy it is.
    pub fn kind(&self) -> PolicyType {
        match self {
            Self::Rebind(_) => PolicyType::REBIND,
            Self::SyncScope(_) => PolicyType::SYNC_SCOPE,
            Self::RequestPriority(_) => PolicyType::REQUEST_PRIORITY,
            Self::ReplyPriority(_) => PolicyType::REPLY_PRIORITY,
            Self::RequestStartTime(_) => PolicyType::REQUEST_START_TIME,
            Self::RequestEndTime(_) => PolicyType::REQUEST_END_TIME,
            Self::ReplyStartTime(_) => PolicyType::REPLY_START_TIME,
            Self::ReplyEndTime(_) => PolicyType::REPLY_END_TIME,
            Self::RelativeRequestTimeout(_) => PolicyType::RELATIVE_REQUEST_TIMEOUT,
            Self::RelativeRoundtripTimeout(_) => PolicyType::RELATIVE_ROUNDTRIP_TIMEOUT,
            Self::Routing(_) => PolicyType::ROUTING,
            Self::MaxHops(_) => PolicyType::MAX_HOPS,
            Self::QueueOrder(_) => PolicyType::QUEUE_ORDER,
            Self::Bidirectional(_) => PolicyType::BIDIRECTIONAL,
            Self::Other { kind, .. } => *kind,
        }
    }

    /// The policy with that encapsulated value.
    pub fn from_value(kind: PolicyType, value: Bytes) -> Self {
        match Self::read(kind, &value) {
            Ok(Some(policy)) => policy,
            Ok(None) | Err(_) => Self::Other { kind, value },
        }
    }

    fn read(kind: PolicyType, value: &Bytes) -> Result<Option<Self>, DecodeError> {
        let mut d = open_encapsulation(value)?;
        let d = &mut d;
        Ok(Some(match kind {
            PolicyType::REBIND => match RebindMode::from_number(d.read_i16()?) {
                Some(mode) => Self::Rebind(mode),
                None => return Ok(None),
            },
            PolicyType::SYNC_SCOPE => match SyncScope::from_number(d.read_i16()?) {
                Some(scope) => Self::SyncScope(scope),
                None => return Ok(None),
            },
            PolicyType::REQUEST_PRIORITY => Self::RequestPriority(read_priorities(d)?),
            PolicyType::REPLY_PRIORITY => Self::ReplyPriority(read_priorities(d)?),
            PolicyType::REQUEST_START_TIME => Self::RequestStartTime(UtcTime::decode(d)?),
            PolicyType::REQUEST_END_TIME => Self::RequestEndTime(UtcTime::decode(d)?),
            PolicyType::REPLY_START_TIME => Self::ReplyStartTime(UtcTime::decode(d)?),
            PolicyType::REPLY_END_TIME => Self::ReplyEndTime(UtcTime::decode(d)?),
            PolicyType::RELATIVE_REQUEST_TIMEOUT => Self::RelativeRequestTimeout(span(d.read_u64()?)),
            PolicyType::RELATIVE_ROUNDTRIP_TIMEOUT => Self::RelativeRoundtripTimeout(span(d.read_u64()?)),
            PolicyType::ROUTING => {
                match (RoutingType::from_number(d.read_i16()?), RoutingType::from_number(d.read_i16()?)) {
                    (Some(min), Some(max)) => Self::Routing(RangeOf { min, max }),
                    _ => return Ok(None),
                }
            }
            PolicyType::MAX_HOPS => Self::MaxHops(d.read_u16()?),
            PolicyType::QUEUE_ORDER => Self::QueueOrder(d.read_u16()?),
            PolicyType::BIDIRECTIONAL => match d.read_u16()? {
                0 => Self::Bidirectional(false),
                1 => Self::Bidirectional(true),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }

    fn put_value(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        match self {
            Self::Rebind(mode) => e.put_i16(*mode as i16),
            Self::SyncScope(scope) => e.put_i16(*scope as i16),
            Self::RequestPriority(range) | Self::ReplyPriority(range) => {
                e.put_i16(range.min);
                e.put_i16(range.max);
            }
            Self::RequestStartTime(time)
            | Self::RequestEndTime(time)
            | Self::ReplyStartTime(time)
            | Self::ReplyEndTime(time) => time.encode(e)?,
            Self::RelativeRequestTimeout(time) | Self::RelativeRoundtripTimeout(time) => {
                e.put_u64(ticks(*time));
            }
            Self::Routing(range) => {
                e.put_i16(range.min as i16);
                e.put_i16(range.max as i16);
            }
            Self::MaxHops(number) | Self::QueueOrder(number) => e.put_u16(*number),
            Self::Bidirectional(both) => e.put_u16(u16::from(*both)),
            Self::Other { .. } => {}
        }
        Ok(())
    }
}

fn read_priorities(d: &mut Decoder<'_>) -> Result<RangeOf<i16>, DecodeError> {
    Ok(RangeOf { min: d.read_i16()?, max: d.read_i16()? })
}

impl CdrEncode for UtcTime {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let inaccuracy = self.inaccuracy.min((1 << 48) - 1);
        e.put_u64(self.time);
        e.put_u32(inaccuracy as u32);
        e.put_u16((inaccuracy >> 32) as u16);
        e.put_i16(self.displacement);
        Ok(())
    }
}

impl CdrDecode for UtcTime {
    const MIN_SIZE: usize = 16;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (time, low, high) = (d.read_u64()?, d.read_u32()?, d.read_u16()?);
        let inaccuracy = u64::from(high) << 32 | u64::from(low);
        Ok(Self { time, inaccuracy, displacement: d.read_i16()? })
    }
}

impl CdrEncode for Policy {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u32(self.kind().0);
        match self {
            Self::Other { value, .. } => put_octets(e, value),
            known => put_octets(e, &encapsulation(|e| known.put_value(e))?),
        }
    }
}

impl CdrDecode for Policy {
    /// Two ulongs.
    const MIN_SIZE: usize = 8;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let kind = PolicyType(d.read_u32()?);
        Ok(Self::from_value(kind, read_octets_owned(d)?))
    }
}

/// What a component `TAG_POLICIES` or a service context `INVOCATION_POLICIES` holds.
///
/// Source clause: "Messaging QoS / Propagation of QoS" (`Messaging::PolicyValueSeq`).
#[doc(alias = "PolicyValueSeq")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policies(pub Vec<Policy>);

impl Policies {
    /// The first of that type.
    pub fn find(&self, kind: PolicyType) -> Option<&Policy> {
        self.0.iter().find(|policy| policy.kind() == kind)
    }

    /// The service context to send: what the caller asks for.
    ///
    /// # Errors
    /// More policies than a ulong counts.
    pub fn to_service_context(&self) -> Result<ServiceContext, EncodeError> {
        ServiceContext::encapsulate(ContextId::INVOCATION_POLICIES, self)
    }
}

impl CdrEncode for Policies {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_len(self.0.len())?;
        Policy::encode_slice(&self.0, e)
    }
}

impl CdrDecode for Policies {
    /// The count.
    const MIN_SIZE: usize = 4;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let at = d.position();
        let count = d.read_len(Policy::MIN_SIZE)?;
        if count > MAX_POLICIES {
            return Err(DecodeError::new(DecodeErrorKind::LimitExceeded, at));
        }
        (0..count).map(|_| Policy::decode(d)).collect::<Result<_, _>>().map(Self)
    }
}
