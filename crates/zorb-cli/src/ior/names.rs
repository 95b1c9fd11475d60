//! The names of the tags of profiles and components.

pub(super) fn profile_name(tag: u32) -> Option<&'static str> {
    Some(match tag {
        0 => "TAG_INTERNET_IOP",
        1 => "TAG_MULTIPLE_COMPONENTS",
        2 => "TAG_SCCP_IOP",
        3 => "TAG_UIPMC",
        0x5441_4f00 => "TAO UIOP (Unix socket)",
        0x5441_4f02 => "TAO SHMIOP (shared memory)",
        0x5441_4f04 => "TAO DIOP (UDP)",
        0x5441_4f0e => "TAO SCIOP (SCTP)",
        0x4a41_4300..=0x4a41_43ff => "JacORB's own",
        _ => return None,
    })
}

pub(super) fn component_name(tag: u32) -> Option<&'static str> {
    Some(match tag {
        0 => "TAG_ORB_TYPE",
        1 => "TAG_CODE_SETS",
        2 => "TAG_POLICIES",
        3 => "TAG_ALTERNATE_IIOP_ADDRESS",
        5 => "TAG_COMPLETE_OBJECT_KEY",
        6 => "TAG_ENDPOINT_ID_POSITION",
        12 => "TAG_LOCATION_POLICY",
        13 => "TAG_ASSOCIATION_OPTIONS",
        14 => "TAG_SEC_NAME",
        15 => "TAG_SPKM_1_SEC_MECH",
        16 => "TAG_SPKM_2_SEC_MECH",
        17 => "TAG_KerberosV5_SEC_MECH",
        18 => "TAG_CSI_ECMA_Secret_SEC_MECH",
        19 => "TAG_CSI_ECMA_Hybrid_SEC_MECH",
        20 => "TAG_SSL_SEC_TRANS",
        21 => "TAG_CSI_ECMA_Public_SEC_MECH",
        22 => "TAG_GENERIC_SEC_MECH",
        23 => "TAG_FIREWALL_TRANS",
        24 => "TAG_SCCP_CONTACT_INFO",
        25 => "TAG_JAVA_CODEBASE",
        26 => "TAG_TRANSACTION_POLICY",
        27 => "TAG_FT_GROUP",
        28 => "TAG_FT_PRIMARY",
        29 => "TAG_FT_HEARTBEAT_ENABLED",
        30 => "TAG_MESSAGE_ROUTERS",
        31 => "TAG_OTS_POLICY",
        32 => "TAG_INV_POLICY",
        33 => "TAG_CSI_SEC_MECH_LIST",
        34 => "TAG_NULL_TAG",
        35 => "TAG_SECIOP_SEC_TRANS",
        36 => "TAG_TLS_SEC_TRANS",
        37 => "TAG_ACTIVITY_POLICY",
        38 => "TAG_RMI_CUSTOM_MAX_STREAM_FORMAT",
        39 => "TAG_GROUP",
        40 => "TAG_GROUP_IIOP",
        100 => "TAG_DCE_STRING_BINDING",
        101 => "TAG_DCE_BINDING_NAME",
        102 => "TAG_DCE_NO_PIPES",
        103 => "TAG_DCE_SEC_MECH",
        123 => "TAG_INET_SEC_TRANS",
        0x4154_5401 => "omniORB bidirectional",
        0x4154_5402 => "omniORB Unix socket",
        0x4154_5403 => "omniORB persistent id",
        0x4154_5404 => "omniORB restricted connection",
        0x5441_4f02 => "TAO_TAG_ENDPOINTS",
        0x5a4f_5201 => "zorb blocks",
        0x5a4f_5202 => "zorb operation numbers",
        _ => return None,
    })
}

/// Returns the vendor to which the OMG assigned a tag. The tag starts with letters in ASCII.
fn vendor(tag: u32) -> Option<&'static str> {
    Some(match tag >> 8 {
        0x41_5454 => "omniORB",
        0x4a_4143 => "JacORB",
        0x54_414f => "TAO",
        0x4e_454f | 0x53_554e => "GlassFish",
        0x49_424d => "IBM",
        0x56_4953 => "VisiBroker",
        0x42_4541 => "WebLogic",
        0x49_4f4e => "Orbix",
        0x5a_4f52 => "zorb",
        _ => return None,
    })
}

/// Returns the text for a tag: its name, or its number and vendor.
pub(super) fn tag_text(tag: u32, name: Option<&'static str>) -> String {
    match (name, vendor(tag)) {
        (Some(name), _) => name.to_owned(),
        (None, Some(vendor)) => format!("{tag:#010x} (unknown, {vendor})"),
        (None, None) => format!("{tag:#x} (unknown)"),
    }
}
