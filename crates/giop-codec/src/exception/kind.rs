//! The forty standard system exceptions and the completion status.

use std::fmt;

/// Text before the exception's name in a standard repository id.
const ID_PREFIX: &str = "IDL:omg.org/CORBA/";

/// Defines the enum and its tables from one list, so that name, repository id and variant cannot drift apart.
macro_rules! kinds {
    ($($variant:ident $name:literal $doc:literal;)+) => {
        /// The kind of a standard system exception: one of the forty of the CORBA core specification.
        ///
        /// Source clause: "Standard Exceptions / Standard Exception Definitions".
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum SystemExceptionKind {
            $(#[doc = concat!("`", $name, "`: ", $doc, ".")] $variant,)+
        }

        impl SystemExceptionKind {
            /// All kinds, in the order of the specification's list.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the IDL name, for example `"COMM_FAILURE"`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Returns the repository id, for example `"IDL:omg.org/CORBA/COMM_FAILURE:1.0"`.
            #[doc(alias = "_rep_id")]
            pub const fn repository_id(self) -> &'static str {
                match self { $(Self::$variant => concat!("IDL:omg.org/CORBA/", $name, ":1.0"),)+ }
            }

            /// Returns the kind with that IDL name, which may have the prefix `CORBA::` or `CORBA_`.
            pub fn from_name(name: &str) -> Option<Self> {
                let name = name.strip_prefix("CORBA::").or_else(|| name.strip_prefix("CORBA_")).unwrap_or(name);
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

kinds! {
    Unknown "UNKNOWN" "the server raised something the client cannot know";
    BadParam "BAD_PARAM" "an illegal parameter value";
    NoMemory "NO_MEMORY" "memory ran out";
    ImpLimit "IMP_LIMIT" "a limit of the implementation was exceeded";
    CommFailure "COMM_FAILURE" "the connection was lost while a request was under way";
    InvObjref "INV_OBJREF" "a nil or malformed object reference";
    NoPermission "NO_PERMISSION" "the caller may not do this";
    Internal "INTERNAL" "an error of the ORB itself";
    Marshal "MARSHAL" "octets that do not decode";
    Initialize "INITIALIZE" "the ORB or a component could not start";
    NoImplement "NO_IMPLEMENT" "the operation exists, its implementation does not";
    BadTypecode "BAD_TYPECODE" "an illegal TypeCode";
    BadOperation "BAD_OPERATION" "the object has no such operation";
    NoResources "NO_RESOURCES" "a resource other than memory ran out";
    NoResponse "NO_RESPONSE" "the reply of a deferred request is not there yet";
    PersistStore "PERSIST_STORE" "a persistent store failed";
    BadInvOrder "BAD_INV_ORDER" "operations were called in the wrong order";
    Transient "TRANSIENT" "the request could not be delivered now; a retry may work";
    FreeMem "FREE_MEM" "memory could not be freed";
    InvIdent "INV_IDENT" "an identifier with illegal syntax";
    InvFlag "INV_FLAG" "an illegal flag";
    IntfRepos "INTF_REPOS" "the interface repository failed";
    BadContext "BAD_CONTEXT" "a context object could not be processed";
    ObjAdapter "OBJ_ADAPTER" "the object adapter failed";
    DataConversion "DATA_CONVERSION" "a character or number has no representation";
    ObjectNotExist "OBJECT_NOT_EXIST" "the object is gone for good";
    TransactionRequired "TRANSACTION_REQUIRED" "the operation needs a transaction";
    TransactionRolledback "TRANSACTION_ROLLEDBACK" "the transaction was rolled back";
    InvalidTransaction "INVALID_TRANSACTION" "the transaction context is not valid";
    InvPolicy "INV_POLICY" "policies contradict each other";
    CodesetIncompatible "CODESET_INCOMPATIBLE" "client and server share no code set";
    Rebind "REBIND" "a new binding is needed and the policy forbids it";
    Timeout "TIMEOUT" "a deadline passed";
    TransactionUnavailable "TRANSACTION_UNAVAILABLE" "the transaction service cannot be reached";
    TransactionMode "TRANSACTION_MODE" "the transaction policy and the request's mode disagree";
    BadQos "BAD_QOS" "a quality of service that cannot be had";
    InvalidActivity "INVALID_ACTIVITY" "the activity context is not valid here";
    ActivityCompleted "ACTIVITY_COMPLETED" "the activity has ended already";
    ActivityRequired "ACTIVITY_REQUIRED" "the operation needs an activity";
    ThreadCancelled "THREAD_CANCELLED" "the thread of the request was cancelled";
}

impl SystemExceptionKind {
    /// Returns the kind with that repository id, or `None`.
    ///
    /// Ids of old ORBs (`IDL:CORBA/TRANSIENT:1.0`) and any version are accepted: the last path component
    /// determines the kind, provided that the path before it ends in `CORBA`.
    pub fn from_repository_id(id: &str) -> Option<Self> {
        if let Some(name) = id.strip_prefix(ID_PREFIX).and_then(|rest| rest.strip_suffix(":1.0")) {
            return Self::from_name(name);
        }
        let path = id.strip_prefix("IDL:")?.rsplit_once(':')?.0;
        let (scope, name) = path.rsplit_once('/')?;
        if scope == "CORBA" || scope.ends_with("/CORBA") { Self::from_name(name) } else { None }
    }
}

impl fmt::Display for SystemExceptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The state of the operation at the server when the exception was raised.
///
/// Source clause: "Standard Exceptions / Completion status".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CompletionStatus {
    /// The operation was carried out before the exception was raised.
    Yes = 0,
    /// The operation was never started: it is safe to retry.
    No = 1,
    /// It is unknown whether the operation was carried out.
    Maybe = 2,
}

impl CompletionStatus {
    /// Returns the status of its number on the wire (0, 1 or 2), or `None`.
    pub const fn from_wire(value: u32) -> Option<Self> {
        match value {
            0 => Some(Self::Yes),
            1 => Some(Self::No),
            2 => Some(Self::Maybe),
            _ => None,
        }
    }

    /// Returns the number on the wire.
    pub const fn to_wire(self) -> u32 {
        self as u32
    }

    /// Returns the IDL name, for example `"COMPLETED_NO"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yes => "COMPLETED_YES",
            Self::No => "COMPLETED_NO",
            Self::Maybe => "COMPLETED_MAYBE",
        }
    }
}

impl fmt::Display for CompletionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
