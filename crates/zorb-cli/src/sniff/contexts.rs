//! The names of service contexts, and the text in `ExceptionDetailMessage`.

use giop_codec::Version;
use giop_codec::cdr::{CdrDecode, CodeSets, WString};
use giop_codec::giop::{ContextId, ServiceContextRef};

/// Decodes a context that contains a wide string in the encoding of GIOP 1.2.
pub(super) fn wide_string(context: &ServiceContextRef<'_>) -> Option<String> {
    let mut d = context.open().ok()?;
    d.set_code_sets(CodeSets::default_for(Version::V1_2));
    WString::decode(&mut d).ok().map(|text| text.to_string())
}

pub(super) fn name(id: ContextId) -> Option<&'static str> {
    Some(match id.0 {
        0 => "TransactionService",
        1 => "CodeSets",
        2 => "ChainBypassCheck",
        3 => "ChainBypassInfo",
        4 => "LogicalThreadId",
        5 => "BI_DIR_IIOP",
        6 => "SendingContextRunTime",
        7 => "INVOCATION_POLICIES",
        8 => "FORWARDED_IDENTITY",
        9 => "UnknownExceptionInfo",
        10 => "RTCorbaPriority",
        11 => "RTCorbaPriorityRange",
        12 => "FT_GROUP_VERSION",
        13 => "FT_REQUEST",
        14 => "ExceptionDetailMessage",
        15 => "SecurityAttributeService",
        16 => "ActivityService",
        17 => "RMICustomMaxStreamFormat",
        18 => "ACCESS_SESSION_ID",
        19 => "SERVICE_SESSION_ID",
        20 => "FIREWALL_PATH",
        21 => "FIREWALL_PATH_RESP",
        0x5a4f_5201 => "zorb blocks",
        0x5a4f_5203 => "zorb padding",
        0x4a41_4301 => "JacORB timing",
        _ => return None,
    })
}
