//! The forty standard system exceptions and the completion status.

use std::fmt;

use super::{MinorCode, SystemException};

/// Defines the enum, its tables and the constructors of [`SystemException`] from one list.
macro_rules! kinds {
    ($($variant:ident $constructor:ident $name:literal $doc:literal;)+) => {
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

            /// Returns the kind with this IDL name, which may have the prefix `CORBA::` or `CORBA_`.
            pub fn from_name(name: &str) -> Option<Self> {
                let name = name.strip_prefix("CORBA::").or_else(|| name.strip_prefix("CORBA_")).unwrap_or(name);
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }

        /// A constructor for each kind, with `COMPLETED_NO` and without minor code or cause.
        ///
        /// ```
        /// use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, minor};
        ///
        /// let refused = SystemException::bad_param()
        ///     .with_minor(minor::BAD_PARAM_OBJECT_ID)
        ///     .with_reason("accounts are numbered from 1");
        /// assert_eq!(
        ///     refused.to_string(),
        ///     "BAD_PARAM (OMG minor 14: invalid object id), COMPLETED_NO: accounts are numbered from 1"
        /// );
        /// let full = SystemException::no_memory().completed(CompletionStatus::Maybe);
        /// assert_eq!((full.minor, full.completed), (MinorCode::NONE, CompletionStatus::Maybe));
        /// ```
        impl SystemException {
            $(
                #[doc = concat!("Creates `", $name, "`: ", $doc, ".")]
                pub const fn $constructor() -> Self {
                    Self::new(SystemExceptionKind::$variant, MinorCode::NONE, CompletionStatus::No)
                }
            )+
        }

        #[cfg(test)]
        const CONSTRUCTORS: &[(&str, SystemException)] =
            &[$((stringify!($constructor), SystemException::$constructor()),)+];
    };
}

kinds! {
    Unknown unknown "UNKNOWN" "the server raised an exception that the client does not know";
    BadParam bad_param "BAD_PARAM" "an argument is invalid";
    NoMemory no_memory "NO_MEMORY" "memory ran out";
    ImpLimit imp_limit "IMP_LIMIT" "a limit of the implementation was exceeded";
    CommFailure comm_failure "COMM_FAILURE" "the connection was lost while a request was in flight";
    InvObjref inv_objref "INV_OBJREF" "an object reference is nil, malformed, or of another interface";
    NoPermission no_permission "NO_PERMISSION" "the caller is not permitted to do this";
    Internal internal "INTERNAL" "an internal error occurred in the ORB or the server";
    Marshal marshal "MARSHAL" "bytes cannot be decoded, or a value cannot be encoded";
    Initialize initialize "INITIALIZE" "the ORB or a component could not start";
    NoImplement no_implement "NO_IMPLEMENT" "the operation exists, but is not implemented";
    BadTypecode bad_typecode "BAD_TYPECODE" "a type code is invalid";
    BadOperation bad_operation "BAD_OPERATION" "the object has no such operation";
    NoResources no_resources "NO_RESOURCES" "a resource other than memory ran out";
    NoResponse no_response "NO_RESPONSE" "the reply of a deferred request has not arrived yet";
    PersistStore persist_store "PERSIST_STORE" "a persistent store failed";
    BadInvOrder bad_inv_order "BAD_INV_ORDER" "operations were called in the wrong order";
    Transient transient "TRANSIENT" "the request cannot be delivered or served now; a retry may succeed";
    FreeMem free_mem "FREE_MEM" "memory could not be freed";
    InvIdent inv_ident "INV_IDENT" "an identifier has invalid syntax";
    InvFlag inv_flag "INV_FLAG" "a flag is invalid";
    IntfRepos intf_repos "INTF_REPOS" "the interface repository failed";
    BadContext bad_context "BAD_CONTEXT" "a context object could not be processed";
    ObjAdapter obj_adapter "OBJ_ADAPTER" "the object adapter failed, or is not configured for the operation";
    DataConversion data_conversion "DATA_CONVERSION" "a character or number has no representation";
    ObjectNotExist object_not_exist "OBJECT_NOT_EXIST" "the object does not exist and never will, so clients may discard its reference";
    TransactionRequired transaction_required "TRANSACTION_REQUIRED" "the operation needs a transaction";
    TransactionRolledback transaction_rolledback "TRANSACTION_ROLLEDBACK" "the transaction was rolled back";
    InvalidTransaction invalid_transaction "INVALID_TRANSACTION" "the transaction context is invalid";
    InvPolicy inv_policy "INV_POLICY" "policies contradict each other";
    CodesetIncompatible codeset_incompatible "CODESET_INCOMPATIBLE" "client and server share no code set";
    Rebind rebind "REBIND" "a new binding is needed, but a policy forbids it";
    Timeout timeout "TIMEOUT" "a deadline passed";
    TransactionUnavailable transaction_unavailable "TRANSACTION_UNAVAILABLE" "the transaction service cannot be reached";
    TransactionMode transaction_mode "TRANSACTION_MODE" "the transaction policy and the request's mode disagree";
    BadQos bad_qos "BAD_QOS" "the requested quality of service is not available";
    InvalidActivity invalid_activity "INVALID_ACTIVITY" "the activity context is invalid for this request";
    ActivityCompleted activity_completed "ACTIVITY_COMPLETED" "the activity has ended already";
    ActivityRequired activity_required "ACTIVITY_REQUIRED" "the operation needs an activity";
    ThreadCancelled thread_cancelled "THREAD_CANCELLED" "the thread of the request was cancelled";
}

impl SystemExceptionKind {
    /// Returns the kind with this repository id, or `None`.
    ///
    /// Accepts every version, and every scope that ends in `CORBA`: old ORBs send `IDL:CORBA/TRANSIENT:1.0`.
    pub fn from_repository_id(id: &str) -> Option<Self> {
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
    /// The operation was never started, so it is safe to retry.
    No = 1,
    /// It is unknown whether the operation was carried out.
    Maybe = 2,
}

impl CompletionStatus {
    /// Returns the status with this number on the wire (0, 1 or 2).
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_constructors_make_the_kind_that_they_name() {
        assert_eq!(CONSTRUCTORS.len(), SystemExceptionKind::ALL.len());
        for (name, made) in CONSTRUCTORS {
            assert_eq!(made.kind.name().to_lowercase(), *name);
            assert_eq!((made.minor, made.completed), (MinorCode::NONE, CompletionStatus::No));
        }
    }
}
