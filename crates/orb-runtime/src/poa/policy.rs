//! The policy types of POAs and their values, which are chosen when a POA is created.

use std::fmt;

/// The ids of the policies that apply to a POA (`CORBA::PolicyType`).
///
/// Source clause: "The Object Adapter / PortableServer / Policies"; for `BIDIRECTIONAL`, "Bi-Directional
/// GIOP".
pub mod policy_id {
    /// [`ThreadModel`](super::ThreadModel).
    pub const THREAD: u32 = 16;
    /// [`LifespanPolicy`](super::LifespanPolicy).
    pub const LIFESPAN: u32 = 17;
    /// [`IdUniquenessPolicy`](super::IdUniquenessPolicy).
    pub const ID_UNIQUENESS: u32 = 18;
    /// [`IdAssignmentPolicy`](super::IdAssignmentPolicy).
    pub const ID_ASSIGNMENT: u32 = 19;
    /// [`ImplicitActivationPolicy`](super::ImplicitActivationPolicy).
    pub const IMPLICIT_ACTIVATION: u32 = 20;
    /// [`ServantRetentionPolicy`](super::ServantRetentionPolicy).
    pub const SERVANT_RETENTION: u32 = 21;
    /// [`RequestProcessingPolicy`](super::RequestProcessingPolicy).
    pub const REQUEST_PROCESSING: u32 = 22;
    /// [`BidirectionalPolicy`](super::BidirectionalPolicy).
    pub const BIDIRECTIONAL: u32 = 37;
}

/// Defines the enum of a policy type, whose values have the numbers of the IDL.
macro_rules! policy {
    ($(#[$meta:meta])* $name:ident = $id:ident / $variant:ident {
        $($(#[$value_meta:meta])* $value:ident = $number:literal $omg:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        #[repr(u32)]
        pub enum $name {
            $($(#[$value_meta])* $value = $number,)+
        }

        impl $name {
            /// All values, ordered by number.
            pub const ALL: &[Self] = &[$(Self::$value),+];

            /// Returns the number in IDL.
            #[must_use]
            pub const fn value(self) -> u32 {
                self as u32
            }

            /// Returns the value with this number.
            #[must_use]
            pub const fn from_value(value: u32) -> Option<Self> {
                match value {
                    $($number => Some(Self::$value),)+
                    _ => None,
                }
            }

            /// Returns the name in IDL.
            #[must_use]
            pub const fn omg_name(self) -> &'static str {
                match self {
                    $(Self::$value => $omg,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.omg_name())
            }
        }

        impl From<$name> for Policy {
            fn from(value: $name) -> Self {
                Self::$variant(value)
            }
        }
    };
}

policy! {
    /// The threads that run the requests of a POA's objects.
    #[doc(alias = "ThreadPolicyValue")]
    ThreadModel = THREAD / Thread {
        /// Requests run concurrently, on the threads of the tokio runtime.
        #[default]
        OrbControl = 0 "ORB_CTRL_MODEL",
        /// Requests for all objects of the POA, and calls of its servant manager, run one at a time.
        #[doc(alias = "SINGLE_THREAD_MODEL")]
        Single = 1 "SINGLE_THREAD_MODEL",
        /// Requests run one at a time, in the task that runs [`Orb::run_until`](crate::Orb::run_until).
        #[doc(alias = "MAIN_THREAD_MODEL")]
        Main = 2 "MAIN_THREAD_MODEL",
    }
}

policy! {
    /// The lifetime of references to a POA's objects.
    #[doc(alias = "LifespanPolicyValue")]
    LifespanPolicy = LIFESPAN / Lifespan {
        /// References are valid until the POA is destroyed or the process ends.
        #[default]
        Transient = 0 "TRANSIENT",
        /// References are valid as long as a POA with the same name and ancestors exists, even in later runs.
        Persistent = 1 "PERSISTENT",
    }
}

policy! {
    /// Whether a servant may have several ids.
    #[doc(alias = "IdUniquenessPolicyValue")]
    IdUniquenessPolicy = ID_UNIQUENESS / IdUniqueness {
        /// A servant can have one id at a time.
        #[default]
        Unique = 0 "UNIQUE_ID",
        /// A servant can have any number of ids.
        Multiple = 1 "MULTIPLE_ID",
    }
}

policy! {
    /// The assignment of ids: by the program or by the POA.
    #[doc(alias = "IdAssignmentPolicyValue")]
    IdAssignmentPolicy = ID_ASSIGNMENT / IdAssignment {
        /// The program chooses ids.
        User = 0 "USER_ID",
        /// The POA chooses ids.
        #[default]
        System = 1 "SYSTEM_ID",
    }
}

policy! {
    /// Whether a servant is activated when the program asks for its reference.
    #[doc(alias = "ImplicitActivationPolicyValue")]
    ImplicitActivationPolicy = IMPLICIT_ACTIVATION / ImplicitActivation {
        /// The servant is activated. The RootPOA has this value.
        Implicit = 0 "IMPLICIT_ACTIVATION",
        /// The servant is not activated.
        #[default]
        NoImplicit = 1 "NO_IMPLICIT_ACTIVATION",
    }
}

policy! {
    /// Whether the POA has an active object map.
    #[doc(alias = "ServantRetentionPolicyValue")]
    ServantRetentionPolicy = SERVANT_RETENTION / ServantRetention {
        /// The POA has a map.
        #[default]
        Retain = 0 "RETAIN",
        /// The POA has no map: the servant is found anew for each request.
        NonRetain = 1 "NON_RETAIN",
    }
}

policy! {
    /// The handling of a request whose object is not in the active object map.
    #[doc(alias = "RequestProcessingPolicyValue")]
    RequestProcessingPolicy = REQUEST_PROCESSING / RequestProcessing {
        /// The request gets `OBJECT_NOT_EXIST`.
        #[default]
        ActiveObjectMapOnly = 0 "USE_ACTIVE_OBJECT_MAP_ONLY",
        /// The default servant serves the request.
        DefaultServant = 1 "USE_DEFAULT_SERVANT",
        /// The servant manager finds or creates a servant.
        ServantManager = 2 "USE_SERVANT_MANAGER",
    }
}

policy! {
    /// Whether a POA lets peers call over connections that this ORB opened.
    #[doc(alias = "BidirectionalPolicyValue")]
    BidirectionalPolicy = BIDIRECTIONAL / Bidirectional {
        /// Peers may call over such connections only if another POA or the ORB allows it.
        #[default]
        Normal = 0 "NORMAL",
        /// Peers may call any object of the ORB over connections that it opens after the POA is created.
        Both = 1 "BOTH",
    }
}

/// A policy of a POA: its type and its value.
#[doc(alias = "CORBA::Policy")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// The threads that run requests.
    Thread(ThreadModel),
    /// The lifetime of references.
    Lifespan(LifespanPolicy),
    /// Whether a servant may have several ids.
    IdUniqueness(IdUniquenessPolicy),
    /// The assignment of ids: by the program or by the POA.
    IdAssignment(IdAssignmentPolicy),
    /// Whether a servant is activated when the program asks for its reference.
    ImplicitActivation(ImplicitActivationPolicy),
    /// Whether the POA has an active object map.
    ServantRetention(ServantRetentionPolicy),
    /// The handling of a request whose object is not in the map.
    RequestProcessing(RequestProcessingPolicy),
    /// Whether the POA lets peers call over connections that this ORB opened.
    Bidirectional(BidirectionalPolicy),
    /// A policy that does not apply to a POA. It is ignored.
    Other {
        /// The number of the policy type.
        id: u32,
        /// The number of the value.
        value: u32,
    },
}

/// A policy type has no value with this number (`CORBA::PolicyError` with `BAD_POLICY_VALUE`).
#[doc(alias = "CORBA::PolicyError")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the policy type {id} has no value {value}")]
pub struct InvalidPolicyValue {
    /// The policy type.
    pub id: u32,
    /// The invalid number.
    pub value: u32,
}

impl Policy {
    /// Returns the policy whose type and value have these numbers in IDL. For a type that does not apply to a
    /// POA, returns [`Policy::Other`].
    ///
    /// # Errors
    /// The type is known, but no value of it has this number.
    #[doc(alias = "create_policy")]
    pub fn from_value(id: u32, value: u32) -> Result<Self, InvalidPolicyValue> {
        let known = match id {
            policy_id::THREAD => ThreadModel::from_value(value).map(Self::Thread),
            policy_id::LIFESPAN => LifespanPolicy::from_value(value).map(Self::Lifespan),
            policy_id::ID_UNIQUENESS => IdUniquenessPolicy::from_value(value).map(Self::IdUniqueness),
            policy_id::ID_ASSIGNMENT => IdAssignmentPolicy::from_value(value).map(Self::IdAssignment),
            policy_id::IMPLICIT_ACTIVATION => {
                ImplicitActivationPolicy::from_value(value).map(Self::ImplicitActivation)
            }
            policy_id::SERVANT_RETENTION => {
                ServantRetentionPolicy::from_value(value).map(Self::ServantRetention)
            }
            policy_id::REQUEST_PROCESSING => {
                RequestProcessingPolicy::from_value(value).map(Self::RequestProcessing)
            }
            policy_id::BIDIRECTIONAL => BidirectionalPolicy::from_value(value).map(Self::Bidirectional),
            _ => Some(Self::Other { id, value }),
        };
        known.ok_or(InvalidPolicyValue { id, value })
    }

    /// Returns the number of the type.
    #[must_use]
    pub const fn id(self) -> u32 {
        self.parts().0
    }

    /// Returns the number of the value.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.parts().1
    }

    /// Returns the numbers of type and value, and the value's name in IDL.
    const fn parts(self) -> (u32, u32, &'static str) {
        match self {
            Self::Thread(value) => (policy_id::THREAD, value.value(), value.omg_name()),
            Self::Lifespan(value) => (policy_id::LIFESPAN, value.value(), value.omg_name()),
            Self::IdUniqueness(value) => (policy_id::ID_UNIQUENESS, value.value(), value.omg_name()),
            Self::IdAssignment(value) => (policy_id::ID_ASSIGNMENT, value.value(), value.omg_name()),
            Self::ImplicitActivation(value) => {
                (policy_id::IMPLICIT_ACTIVATION, value.value(), value.omg_name())
            }
            Self::ServantRetention(value) => (policy_id::SERVANT_RETENTION, value.value(), value.omg_name()),
            Self::RequestProcessing(value) => {
                (policy_id::REQUEST_PROCESSING, value.value(), value.omg_name())
            }
            Self::Bidirectional(value) => (policy_id::BIDIRECTIONAL, value.value(), value.omg_name()),
            Self::Other { id, value } => (id, value, ""),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other { id, value } => write!(f, "policy {id} = {value}"),
            known => f.write_str(known.parts().2),
        }
    }
}
