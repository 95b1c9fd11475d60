//! Minor codes: vendor ids, the OMG's codes with their names, and descriptions of codes of zorb and omniORB.

use std::fmt;

use super::SystemExceptionKind;

/// The minor code of a system exception: twenty bits of vendor id (VMCID) and twelve bits of code.
///
/// Source clause: "Standard Exceptions / Standard Exception Definitions" (vendor minor codeset id).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct MinorCode(pub u32);

impl MinorCode {
    /// No minor code, and therefore no further details.
    pub const NONE: Self = Self(0);
    /// The VMCID of the codes that the OMG assigns.
    pub const OMG: u32 = 0x4f4d_0000;
    /// The VMCID of omniORB.
    pub const OMNIORB: u32 = 0x4154_0000;
    /// The VMCID of TAO.
    pub const TAO: u32 = 0x5441_0000;
    /// The VMCID of JacORB.
    pub const JACORB: u32 = 0x4a43_0000;
    /// The VMCID of zorb, which is not registered with the OMG.
    pub const ZORB: u32 = 0x5a4f_0000;
    /// The VMCID of the Sun and GlassFish ORBs.
    pub const SUN: u32 = 0x5355_0000;

    const CODE_MASK: u32 = 0x0000_0fff;

    /// Returns the OMG's code `n`. Only the low twelve bits of `n` are used.
    pub const fn omg(n: u32) -> Self {
        Self(Self::OMG | (n & Self::CODE_MASK))
    }

    /// Returns the vendor id in the upper twenty bits. The lower twelve bits are zero.
    pub const fn vmcid(self) -> u32 {
        self.0 & !Self::CODE_MASK
    }

    /// Returns the vendor's code, from 0 to 4095.
    pub const fn code(self) -> u32 {
        self.0 & Self::CODE_MASK
    }

    /// Returns the name of the vendor, if it is known.
    pub const fn vendor(self) -> Option<&'static str> {
        match self.vmcid() {
            Self::OMG => Some("OMG"),
            Self::OMNIORB => Some("omniORB"),
            Self::TAO => Some("TAO"),
            Self::JACORB => Some("JacORB"),
            Self::ZORB => Some("zorb"),
            Self::SUN => Some("Sun"),
            _ => None,
        }
    }

    /// Returns a short description of a code of the OMG, zorb or omniORB for this kind of exception.
    #[cold]
    pub fn describe(self, kind: SystemExceptionKind) -> Option<&'static str> {
        let code = self.code();
        match self.vmcid() {
            Self::OMG => OMG_TABLE.iter().find(|row| (row.0, row.1) == (kind, code)).map(|row| row.2),
            Self::ZORB => ZORB_TABLE.iter().find(|row| (row.0, row.1) == (kind, code)).map(|row| row.2),
            Self::OMNIORB => OMNIORB_TABLE.iter().find(|(number, _)| *number == code).map(|(_, text)| *text),
            _ => None,
        }
    }
}

/// Formats as `OMG minor 2`, `minor 7` (no vendor) or `minor 0x12345001` (unknown vendor). For a code of TAO,
/// the text also contains the two parts of the code.
impl fmt::Display for MinorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.vendor(), self.vmcid()) {
            // In TAO's codes, bits 7 to 11 are the location in the ORB, and bits 0 to 6 the class of `errno`.
            (Some("TAO"), _) => {
                let code = self.code();
                write!(f, "TAO minor {code} (location {}, errno class {})", code >> 7, code & 0x7f)
            }
            (Some(vendor), _) => write!(f, "{vendor} minor {}", self.code()),
            (None, 0) => write!(f, "minor {}", self.0),
            (None, _) => write!(f, "minor {:#010x}", self.0),
        }
    }
}

/// Defines a constant for each row, and the table that [`MinorCode::describe`] searches.
macro_rules! omg_minors {
    ($($kind:ident { $($n:literal $name:ident $text:literal;)+ })+) => {
        /// The minor codes of the OMG and zorb, named after the exception and the meaning of the code.
        ///
        /// Source clause: "Standard Exceptions / Standard Minor Exception Codes".
        pub mod minor {
            use super::MinorCode;
            $($(
                #[doc = concat!("OMG minor ", stringify!($n), " of `", stringify!($kind), "`: ", $text, ".")]
                pub const $name: MinorCode = MinorCode::omg($n);
            )+)+

            /// zorb minor 1 of `TRANSIENT`: the server has too many requests in flight and has not processed
            /// this one. Another server, or the same one later, may accept it.
            pub const TRANSIENT_OVERLOADED: MinorCode = MinorCode(MinorCode::ZORB | 1);
            /// zorb minor 1 of `NO_PERMISSION`: the server requires authentication, and the request has no
            /// credentials.
            pub const NO_PERMISSION_AUTHENTICATION_REQUIRED: MinorCode = MinorCode(MinorCode::ZORB | 1);
            /// zorb minor 2 of `NO_PERMISSION`: the credentials of the request are invalid.
            pub const NO_PERMISSION_INVALID_CREDENTIALS: MinorCode = MinorCode(MinorCode::ZORB | 2);
            /// zorb minor 3 of `NO_PERMISSION`: the caller is not authorized for this call.
            pub const NO_PERMISSION_DENIED: MinorCode = MinorCode(MinorCode::ZORB | 3);
        }

        /// The kind, code and description of each minor code.
        const OMG_TABLE: &[(SystemExceptionKind, u32, &str)] =
            &[$($((SystemExceptionKind::$kind, $n, $text),)+)+];
    };
}

omg_minors! {
    Unknown {
        1 UNKNOWN_USER_EXCEPTION "user exception not in the operation's raises clause";
        2 UNKNOWN_SYSTEM_EXCEPTION "system exception that is not a standard one";
        3 UNKNOWN_IN_INTERCEPTOR "user exception unknown to an interceptor";
    }
    BadParam {
        1 BAD_PARAM_VALUE_FACTORY "value factory could not be registered or found";
        2 BAD_PARAM_ID_EXISTS "repository id is already in the interface repository";
        3 BAD_PARAM_NAME_EXISTS "name is already used in the interface repository";
        4 BAD_PARAM_NOT_CONTAINER "target is not a valid container";
        5 BAD_PARAM_INHERITED_NAME_CLASH "name clashes with an inherited one";
        6 BAD_PARAM_ABSTRACT_INTERFACE_TYPE "wrong type for an abstract interface";
        7 BAD_PARAM_URL_SCHEME "bad scheme name in an object URL";
        8 BAD_PARAM_URL_ADDRESS "bad address in an object URL";
        9 BAD_PARAM_URL_SCHEME_SPECIFIC "bad scheme-specific part in an object URL";
        10 BAD_PARAM_URL_OTHER "object URL cannot be used";
        11 BAD_PARAM_ABSTRACT_FROM_CONCRETE "abstract interface or value derived from a concrete one";
        12 BAD_PARAM_VALUE_SUPPORTS "value supports more than one concrete interface";
        13 BAD_PARAM_INCOMPLETE_TYPECODE "incomplete TypeCode as parameter";
        14 BAD_PARAM_OBJECT_ID "invalid object id";
        15 BAD_PARAM_TYPECODE_NAME "invalid name given to a TypeCode operation";
        16 BAD_PARAM_TYPECODE_ID "invalid repository id given to a TypeCode operation";
        17 BAD_PARAM_MEMBER_NAME "invalid member name";
        18 BAD_PARAM_DUPLICATE_LABEL "duplicate union label";
        19 BAD_PARAM_LABEL_TYPE "union label does not fit the discriminator's type";
        20 BAD_PARAM_DISCRIMINATOR "illegal union discriminator";
        21 BAD_PARAM_ANY_NO_EXCEPTION "the any holds no exception";
        22 BAD_PARAM_UNLISTED_EXCEPTION "user exception not listed for this ServerRequest";
        23 BAD_PARAM_NO_WCHAR_CODE_SET "wide text, but the connection has no wchar code set";
        24 BAD_PARAM_CONTEXT_ID_RANGE "service context id outside the OMG's range";
        25 BAD_PARAM_ENUM_RANGE "enum value out of range";
        26 BAD_PARAM_CONTEXT_ID "invalid service context id";
        27 BAD_PARAM_NIL_INITIAL_REFERENCE "initial reference registered with a nil object";
        28 BAD_PARAM_COMPONENT_ID "invalid component id";
        29 BAD_PARAM_PROFILE_ID "invalid profile id";
        30 BAD_PARAM_DUPLICATE_POLICY "two policies of one type";
        31 BAD_PARAM_ONEWAY_DEFINITION "oneway with results or exceptions";
        32 BAD_PARAM_IMPLICIT_OPERATION "dynamic request for an implicit operation";
        33 BAD_PARAM_XA_INVALID "invalid arguments to a transaction call (XAER_INVAL)";
        34 BAD_PARAM_UNION_MODIFIER "union branch set with a label of another branch";
        35 BAD_PARAM_PROPERTY_NAME "illegal context property name";
        36 BAD_PARAM_SEARCH_STRING "illegal context search string";
        37 BAD_PARAM_CONTEXT_NAME "illegal context name";
        38 BAD_PARAM_CONTEXT_NOT_EMPTY "context is not empty";
        39 BAD_PARAM_RMI_STREAM_FORMAT "unsupported RMI custom stream format";
        40 BAD_PARAM_NO_VALUE_OUTPUT "value output stream is missing";
        41 BAD_PARAM_NO_VALUE_INPUT "value input stream is missing";
        42 BAD_PARAM_LATIN1_ONLY "reference accepts only ISO 8859-1 characters";
        43 BAD_PARAM_POLLABLE_IN_SET "pollable is already in a set";
        44 BAD_PARAM_COMPRESSION_LEVEL "illegal compression level";
    }
    ImpLimit { 1 IMP_LIMIT_NO_USABLE_PROFILE "no usable profile in the object reference"; }
    Initialize { 1 INITIALIZE_PRIORITY_RANGE "priority range too restricted"; }
    InvObjref {
        1 INV_OBJREF_NO_WCHAR "server offers no wchar code set";
        2 INV_OBJREF_NO_CODE_SETS "reference lacks the code set component";
    }
    Marshal {
        1 MARSHAL_NO_VALUE_FACTORY "no factory for a value type";
        2 MARSHAL_SET_RESULT_EARLY "ServerRequest result set before its context was read";
        3 MARSHAL_NVLIST_INCOMPLETE "argument list does not describe all parameters";
        4 MARSHAL_LOCAL_OBJECT "local object cannot be sent";
        5 MARSHAL_WCHAR_SENT_1_0 "wide text sent by a client over GIOP 1.0";
        6 MARSHAL_WCHAR_RETURNED_1_0 "wide text returned by a server over GIOP 1.0";
        7 MARSHAL_RMI_STREAM_FORMAT "unsupported RMI custom stream format";
        8 MARSHAL_CUSTOM_DATA "custom value data does not fit its reader";
        9 MARSHAL_CODE_SETS_CHANGED "different code set contexts on one connection";
    }
    BadTypecode {
        1 BAD_TYPECODE_INCOMPLETE "incomplete TypeCode";
        2 BAD_TYPECODE_MEMBER "illegal member type";
        3 BAD_TYPECODE_PARAMETER "illegal parameter type";
    }
    NoImplement {
        1 NO_IMPLEMENT_LOCAL_VALUE "no local implementation of a value type";
        2 NO_IMPLEMENT_VALUE_VERSION "incompatible version of a value implementation";
        3 NO_IMPLEMENT_NO_USABLE_PROFILE "no usable profile in the object reference";
        4 NO_IMPLEMENT_DII_LOCAL "dynamic invocation on a local object";
        5 NO_IMPLEMENT_DOMAIN_5 "domain specific feature 5 is missing";
        6 NO_IMPLEMENT_DOMAIN_6 "domain specific feature 6 is missing";
        7 NO_IMPLEMENT_DOMAIN_7 "domain specific feature 7 is missing";
        8 NO_IMPLEMENT_LOCAL_OBJECT "operation not implemented by a local object";
    }
    NoResources {
        1 NO_RESOURCES_INTERCEPTOR "interceptor operation not supported by this binding";
        2 NO_RESOURCES_PRIORITY_CONNECTION "no connection for the request's priority";
    }
    BadInvOrder {
        1 BAD_INV_ORDER_DEPENDENCY "interface repository object is still used by another";
        2 BAD_INV_ORDER_INDESTRUCTIBLE "interface repository object cannot be destroyed";
        3 BAD_INV_ORDER_WOULD_DEADLOCK "the call would deadlock";
        4 BAD_INV_ORDER_SHUTDOWN "the ORB has shut down";
        5 BAD_INV_ORDER_REQUEST_REUSED "dynamic request sent a second time";
        6 BAD_INV_ORDER_MANAGER_SET "servant manager is already set";
        7 BAD_INV_ORDER_ARGUMENTS "ServerRequest arguments read out of order";
        8 BAD_INV_ORDER_CTX "ServerRequest context read out of order";
        9 BAD_INV_ORDER_SET_RESULT "ServerRequest result set out of order";
        10 BAD_INV_ORDER_ALREADY_SENT "dynamic request was sent before";
        11 BAD_INV_ORDER_NOT_SENT "dynamic request is not sent yet";
        12 BAD_INV_ORDER_RESULT_TAKEN "result was taken already";
        13 BAD_INV_ORDER_SYNCHRONOUS "request is synchronous";
        14 BAD_INV_ORDER_INTERCEPTOR "call not allowed at this interception point";
        15 BAD_INV_ORDER_CONTEXT_PRESENT "service context is already present";
        16 BAD_INV_ORDER_POLICY_FACTORY "policy factory is already registered";
        17 BAD_INV_ORDER_POA_DESTROYED "a POA being destroyed cannot create POAs";
        18 BAD_INV_ORDER_PRIORITY "priority cannot be assigned again";
        19 BAD_INV_ORDER_XA_OUTSIDE "work outside the transaction (XAER_OUTSIDE)";
        20 BAD_INV_ORDER_XA_PROTO "transaction calls out of order (XAER_PROTO)";
        21 BAD_INV_ORDER_TRANSACTION_CONTEXT "transaction context differs from the request's";
        22 BAD_INV_ORDER_POLLER "poller has no response yet";
        23 BAD_INV_ORDER_PROFILE_FACTORY "profile factory is already registered";
        24 BAD_INV_ORDER_COMPONENT_FACTORY "component factory is already registered";
        25 BAD_INV_ORDER_NO_MORE_ELEMENTS "iterator has no more elements";
        26 BAD_INV_ORDER_POST_INIT "not allowed in post_init";
    }
    Transient {
        1 TRANSIENT_DISCARDED "request discarded by the adapter or for lack of resources";
        2 TRANSIENT_NO_USABLE_PROFILE "no usable profile";
        3 TRANSIENT_CANCELLED "request cancelled";
        4 TRANSIENT_POA_DESTROYED "object adapter destroyed";
    }
    ObjAdapter {
        1 OBJ_ADAPTER_UNKNOWN_ADAPTER "adapter activator failed or the adapter is inactive";
        2 OBJ_ADAPTER_SERVANT_TYPE "servant manager returned a servant of the wrong type";
        3 OBJ_ADAPTER_NO_DEFAULT_SERVANT "no default servant";
        4 OBJ_ADAPTER_NO_SERVANT_MANAGER "no servant manager";
        5 OBJ_ADAPTER_INCARNATE_POLICY "incarnate violated a policy of the adapter";
        6 OBJ_ADAPTER_COMPONENTS_ESTABLISHED "exception in components_established";
        7 OBJ_ADAPTER_NULL_SERVANT "servant manager returned no servant";
    }
    DataConversion {
        1 DATA_CONVERSION_CHARACTER "character is not in the transmission code set";
        2 DATA_CONVERSION_PRIORITY "priority has no mapping";
    }
    ObjectNotExist {
        1 OBJECT_NOT_EXIST_NO_OBJECT "no such object is active";
        2 OBJECT_NOT_EXIST_NO_ADAPTER "object adapter cannot be found or created";
        3 OBJECT_NOT_EXIST_DOMAIN "domain specific";
        4 OBJECT_NOT_EXIST_ADAPTER_INACTIVE "object adapter is inactive";
        5 OBJECT_NOT_EXIST_POLLER "poller has delivered its reply already";
    }
    InvPolicy {
        1 INV_POLICY_IRRECONCILABLE "policies of reference and client contradict each other";
        2 INV_POLICY_TYPE "bad policy type";
        3 INV_POLICY_NO_FACTORY "no factory for this policy";
    }
    BadOperation {
        1 BAD_OPERATION_SERVANT_TYPE "servant is of the wrong type";
        2 BAD_OPERATION_UNKNOWN "operation unknown to the target";
    }
    BadContext {
        1 BAD_CONTEXT_NONE "no such context";
        2 BAD_CONTEXT_NO_PROPERTY "no property matches";
    }
    CodesetIncompatible {
        1 CODESET_INCOMPATIBLE_NEGOTIATION "client and server share no code set";
        2 CODESET_INCOMPATIBLE_DELIVERED "the code set in use by the client is not supported";
    }
    IntfRepos {
        1 INTF_REPOS_UNAVAILABLE "interface repository not available";
        2 INTF_REPOS_NO_ENTRY "no entry in the interface repository";
    }
    Timeout {
        1 TIMEOUT_POLLER "poller's timeout passed";
        2 TIMEOUT_REQUEST_END "request end time passed before delivery";
        3 TIMEOUT_REPLY_END "reply end time passed";
    }
    Internal {
        1 INTERNAL_XA_1 "transaction manager error, XA code 1";
        2 INTERNAL_XA_2 "transaction manager error, XA code 2";
        3 INTERNAL_XA_3 "transaction manager error, XA code 3";
    }
    TransactionRolledback {
        1 TRANSACTION_ROLLEDBACK_XA_1 "rolled back, XA code 1";
        2 TRANSACTION_ROLLEDBACK_XA_2 "rolled back, XA code 2";
        3 TRANSACTION_ROLLEDBACK_XA_3 "rolled back, XA code 3";
    }
    InvalidActivity { 1 INVALID_ACTIVITY_1 "activity service, code 1"; }
    ActivityCompleted { 1 ACTIVITY_COMPLETED_1 "activity service, code 1"; }
    ActivityRequired { 1 ACTIVITY_REQUIRED_1 "activity service, code 1"; }
}

/// The kind, code and description of each minor code of zorb.
const ZORB_TABLE: &[(SystemExceptionKind, u32, &str)] = &[
    (SystemExceptionKind::Transient, 1, "server is overloaded and has shed the request"),
    (SystemExceptionKind::NoPermission, 1, "server requires authentication"),
    (SystemExceptionKind::NoPermission, 2, "credentials are invalid"),
    (SystemExceptionKind::NoPermission, 3, "caller is not authorized for this call"),
];

/// omniORB's codes that users are likely to see. Their meaning does not depend on the exception.
const OMNIORB_TABLE: &[(u32, &str)] = &[
    (2, "connect failed"),
    (3, "connection lost while sending arguments"),
    (4, "connection lost while receiving arguments"),
    (5, "connection lost while sending results"),
    (6, "connection lost while receiving results"),
    (7, "connection lost while waiting for the reply"),
    (8, "call timed out"),
    (10, "passed the end of the message"),
    (11, "message size limit exceeded while sending"),
    (12, "message size limit exceeded while receiving"),
    (14, "bidirectional connection was lost"),
    (17, "connection closed"),
    (18, "sequence is too long"),
    (19, "string is too long"),
    (20, "wide string is too long"),
    (22, "string is not terminated by NUL"),
    (26, "enum value out of range"),
    (38, "unknown operation"),
    (39, "no interface repository"),
    (42, "bad fixed point value"),
    (47, "bad size of a wide character"),
    (52, "bad object reference text"),
    (62, "object deactivated while its adapter was holding requests"),
    (90, "invalid indirection"),
    (91, "bad TypeCode kind"),
    (111, "bad chunked encoding of a value"),
    (112, "bad value tag"),
    (124, "server's call timeout passed"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_of_a_kind_is_named_twice() {
        for (i, row) in OMG_TABLE.iter().enumerate() {
            let earlier = OMG_TABLE.iter().take(i).find(|other| (other.0, other.1) == (row.0, row.1));
            assert_eq!(earlier, None, "{row:?}");
        }
        for (i, row) in OMNIORB_TABLE.iter().enumerate() {
            assert!(OMNIORB_TABLE.iter().take(i).all(|other| other.0 < row.0), "{row:?}");
        }
    }

    // clause: exc.wire.minor
    #[test]
    fn codes_split_into_vendor_and_number() {
        let minor = MinorCode(0x4f4d_0017);
        assert_eq!((minor.vmcid(), minor.code(), minor.vendor()), (MinorCode::OMG, 23, Some("OMG")));
        assert_eq!(minor, minor::BAD_PARAM_NO_WCHAR_CODE_SET);
        assert_eq!(
            minor.describe(SystemExceptionKind::BadParam),
            Some("wide text, but the connection has no wchar code set")
        );
        assert_eq!(minor.describe(SystemExceptionKind::NoMemory), None);
        assert_eq!(MinorCode(0x4a43_0005).to_string(), "JacORB minor 5");
    }
}
