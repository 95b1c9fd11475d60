//! Policies in references and service contexts: the quality of service that is offered or requested.

use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::encapsulation::{encapsulation, open_encapsulation, put_octets, read_list, read_octets_owned};
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::{DecodeError, EncodeError};

/// The maximum number of policies in a component or service context. Data with more does not decode.
pub const MAX_POLICIES: usize = 64;

/// The type of a policy.
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

/// Defines an enum whose values are numbers on the wire.
macro_rules! numbered_enum {
    ($(#[$doc:meta])* $name:ident: $number:ty { $($(#[$of:meta])* $variant:ident = $value:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr($number)]
        pub enum $name {
            $($(#[$of])* $variant = $value,)*
        }

        impl $name {
            /// Returns the value with this number; `None` if there is none.
            pub const fn from_number(number: $number) -> Option<Self> {
                match number {
                    $($value => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

numbered_enum! {
    /// What a client may do transparently to reach the object (`Messaging::RebindMode`).
    ///
    /// Source clause: "Messaging QoS / Rebind Support".
    RebindMode: i16 {
        /// Reconnect and follow forwards. This is the default.
        Transparent = 0,
        /// Only reconnect: a forward raises `REBIND`, even if it would not change the policies in effect.
        NoRebind = 1,
        /// Neither reconnect nor follow forwards: both raise `REBIND`.
        NoReconnect = 2,
    }
}

numbered_enum! {
    /// The point at which a oneway call returns to the caller (`Messaging::SyncScope`).
    ///
    /// Source clause: "Messaging QoS / Synchronization Scope".
    SyncScope: i16 {
        /// Immediately.
        None = 0,
        /// When the request has been passed to the transport.
        WithTransport = 1,
        /// When the server has received the request.
        WithServer = 2,
        /// When the servant has returned.
        WithTarget = 3,
    }
}

numbered_enum! {
    /// The ways in which a request may be delivered (`Messaging::RoutingType`).
    RoutingType: i16 {
        /// Over a connection to the target.
        None = 0,
        /// Over routers that do not store the request.
        Forward = 1,
        /// Over routers that store the request.
        StoreAndForward = 2,
    }
}

numbered_enum! {
    /// The requirements of an object on transactions (`CosTransactions::OTSPolicyValue`).
    OtsPolicy: u16 {
        /// Calls must be inside a transaction.
        Requires = 1,
        /// Calls must not be inside a transaction.
        Forbids = 2,
        /// Calls may be inside or outside a transaction.
        Adapts = 3,
    }
}

numbered_enum! {
    /// How an object may be called within transactions (`CosTransactions::InvocationPolicyValue`).
    InvocationPolicy: u16 {
        /// Directly or over routers.
        Either = 0,
        /// Directly: caller and object share the transaction.
        Shared = 1,
        /// Over routers: caller and object do not share the transaction.
        Unshared = 2,
    }
}

/// The minimum and the maximum of the accepted values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RangeOf<T> {
    /// The minimum.
    pub min: T,
    /// The maximum.
    pub max: T,
}

impl<T: Ord + Copy> RangeOf<T> {
    /// Returns the intersection of both ranges; `None` if it is empty.
    #[must_use]
    pub fn intersection(self, other: Self) -> Option<Self> {
        let both = Self { min: self.min.max(other.min), max: self.max.min(other.max) };
        (both.min <= both.max).then_some(both)
    }
}

/// A point in time in the form of the time service (`TimeBase::UtcT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UtcTime {
    /// The time since 15 October 1582, 00:00 UTC, in units of 100 ns.
    pub time: u64,
    /// The maximum deviation in both directions, in units of 100 ns. At most 2⁴⁸ − 1 is transmitted.
    pub inaccuracy: u64,
    /// The time zone of the sender, in minutes east of Greenwich.
    pub displacement: i16,
}

/// The time from 15 October 1582 to 1 January 1970, in units of 100 ns.
const UNIX_EPOCH_TICKS: u64 = 0x01b2_1dd2_1381_4000;

impl UtcTime {
    /// Converts a time to UTC, with inaccuracy 0. A time that cannot be represented becomes the nearest one.
    pub fn from_system_time(moment: SystemTime) -> Self {
        let time = match moment.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => UNIX_EPOCH_TICKS.saturating_add(ticks(since)),
            Err(before) => UNIX_EPOCH_TICKS.saturating_sub(ticks(before.duration())),
        };
        Self { time, inaccuracy: 0, displacement: 0 }
    }

    /// Returns the system time; `None` if it cannot be represented.
    pub fn to_system_time(self) -> Option<SystemTime> {
        if self.time >= UNIX_EPOCH_TICKS {
            SystemTime::UNIX_EPOCH.checked_add(duration_of(self.time - UNIX_EPOCH_TICKS))
        } else {
            SystemTime::UNIX_EPOCH.checked_sub(duration_of(UNIX_EPOCH_TICKS - self.time))
        }
    }
}

/// Returns a duration in units of 100 ns, the unit of `TimeBase::TimeT`; at most `u64::MAX`.
fn ticks(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos() / 100).unwrap_or(u64::MAX)
}

fn duration_of(ticks: u64) -> Duration {
    Duration::new(ticks / 10_000_000, (ticks % 10_000_000) as u32 * 100)
}

/// A policy with its value, as it is in references and service contexts.
///
/// On the wire, a policy is its type and an encapsulation of its value. A policy of an unknown type or with
/// an invalid value is decoded as [`Other`](Self::Other), so that it does not invalidate the other policies.
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
    /// `RequestStartTimePolicy`: the request must not be processed before this time.
    RequestStartTime(UtcTime),
    /// `RequestEndTimePolicy`: the request must not be processed after this time.
    RequestEndTime(UtcTime),
    /// `ReplyStartTimePolicy`: the reply must not be delivered to the caller before this time.
    ReplyStartTime(UtcTime),
    /// `ReplyEndTimePolicy`: the reply must not be delivered to the caller after this time.
    ReplyEndTime(UtcTime),
    /// `RelativeRequestTimeoutPolicy`: the timeout for delivering the request, in steps of 100 ns.
    RelativeRequestTimeout(Duration),
    /// `RelativeRoundtripTimeoutPolicy`: the timeout for request and reply together, in steps of 100 ns.
    RelativeRoundtripTimeout(Duration),
    /// `RoutingPolicy`.
    Routing(RangeOf<RoutingType>),
    /// `MaxHopsPolicy`: the maximum number of routers that a request may pass.
    MaxHops(u16),
    /// `QueueOrderPolicy`, a bit mask: 1 allows any order, 2 an order by time, 4 by priority, 8 by deadline.
    QueueOrder(u16),
    /// `BidirectionalPolicy`: whether a connection may be used in both directions (`BOTH`).
    Bidirectional(bool),
    /// Any other policy.
    Other {
        /// The type of the policy.
        kind: PolicyType,
        /// The encapsulation of the value.
        value: Bytes,
    },
}

impl Policy {
    /// Returns the type of the policy.
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

    /// Creates a policy from its type and its encapsulated value.
    pub fn from_value(kind: PolicyType, value: Bytes) -> Self {
        Self::read(kind, &value).ok().flatten().unwrap_or(Self::Other { kind, value })
    }

    /// Decodes a policy; `None` if its type or its value is unknown.
    fn read(kind: PolicyType, value: &Bytes) -> Result<Option<Self>, DecodeError> {
        let d = &mut open_encapsulation(value)?;
        Ok(Some(match kind {
            PolicyType::REBIND => match RebindMode::from_number(d.read_i16()?) {
                Some(mode) => Self::Rebind(mode),
                None => return Ok(None),
            },
            PolicyType::SYNC_SCOPE => match SyncScope::from_number(d.read_i16()?) {
                Some(scope) => Self::SyncScope(scope),
                None => return Ok(None),
            },
            PolicyType::REQUEST_PRIORITY => {
                Self::RequestPriority(RangeOf { min: d.read_i16()?, max: d.read_i16()? })
            }
            PolicyType::REPLY_PRIORITY => {
                Self::ReplyPriority(RangeOf { min: d.read_i16()?, max: d.read_i16()? })
            }
            PolicyType::REQUEST_START_TIME => Self::RequestStartTime(UtcTime::decode(d)?),
            PolicyType::REQUEST_END_TIME => Self::RequestEndTime(UtcTime::decode(d)?),
            PolicyType::REPLY_START_TIME => Self::ReplyStartTime(UtcTime::decode(d)?),
            PolicyType::REPLY_END_TIME => Self::ReplyEndTime(UtcTime::decode(d)?),
            PolicyType::RELATIVE_REQUEST_TIMEOUT => Self::RelativeRequestTimeout(duration_of(d.read_u64()?)),
            PolicyType::RELATIVE_ROUNDTRIP_TIMEOUT => {
                Self::RelativeRoundtripTimeout(duration_of(d.read_u64()?))
            }
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
    const MIN_SIZE: usize = 8;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let kind = PolicyType(d.read_u32()?);
        Ok(Self::from_value(kind, read_octets_owned(d)?))
    }
}

/// The data of a component `TAG_POLICIES` or a service context `INVOCATION_POLICIES`.
///
/// Source clause: "Messaging QoS / Propagation of QoS" (`Messaging::PolicyValueSeq`).
#[doc(alias = "PolicyValueSeq")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policies(pub Vec<Policy>);

impl Policies {
    /// Returns the first policy of this type.
    pub fn find(&self, kind: PolicyType) -> Option<&Policy> {
        self.0.iter().find(|policy| policy.kind() == kind)
    }
}

impl CdrEncode for Policies {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_len(self.0.len())?;
        Policy::encode_slice(&self.0, e)
    }
}

impl CdrDecode for Policies {
    const MIN_SIZE: usize = 4;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        read_list(d, Policy::MIN_SIZE, MAX_POLICIES, Policy::decode).map(Self)
    }
}
