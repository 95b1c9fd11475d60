//! Identity assertions of strangers, and security requirements in references.
//!
//! The first byte selects the type as which the others are decoded. What decodes has an encoding, which
//! decodes to the same value.
#![no_main]

use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::csi::gssup::{Login, LoginError};
use giop_codec::csi::{ExportedName, IdentityToken, Oid, SasContext};
use giop_codec::giop::{ContextId, ServiceContext, ServiceContextRef};
use giop_codec::ior::{ComponentTag, TaggedComponent};
use giop_codec::{ByteOrder, Version};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((kind, data)) = data.split_first() else { return };
    match kind % 6 {
        0 => context(data),
        1 => mechanisms(data),
        2 => login(data),
        3 => name(data),
        4 => identity(data, if kind & 0x80 == 0 { ByteOrder::Little } else { ByteOrder::Big }),
        _ => {
            if let Ok(error) = LoginError::from_token(data) {
                let token = error.to_token().expect("a number");
                assert_eq!(LoginError::from_token(&token), Ok(error));
            }
        }
    }
});

fn context(data: &[u8]) {
    let read = |data| {
        SasContext::from_service_context(&ServiceContextRef {
            id: ContextId::SECURITY_ATTRIBUTE_SERVICE,
            data,
        })
    };
    let Ok(context) = read(data) else { return };
    let context = context.expect("it is one by its id");
    let _ = format!("{context:?}");
    let ServiceContext { id, data: again } =
        context.to_service_context().expect("what was decoded has an encoding");
    assert_eq!(id, ContextId::SECURITY_ATTRIBUTE_SERVICE);
    assert_eq!(read(&again).as_ref(), Ok(&Some(context.clone())));
    match &context {
        SasContext::Establish(establish) => {
            login(&establish.authentication);
            if let IdentityToken::PrincipalName(name) = &establish.identity {
                let _ = name.as_gssup();
            }
        }
        SasContext::Error { error_token, .. } => drop(LoginError::from_token(error_token)),
        _ => {}
    }
}

fn mechanisms(data: &[u8]) {
    let component =
        TaggedComponent { tag: ComponentTag::CSI_SEC_MECH_LIST, data: Bytes::copy_from_slice(data) };
    let Some(list) = component.as_csi_mechanisms() else { return };
    for mechanism in &list.mechanisms {
        name(&mechanism.authentication.target_name);
        let _ = format!("{mechanism:?}");
    }
    let again = TaggedComponent::csi_mechanisms(&list).expect("what was decoded has an encoding");
    assert_eq!(again.as_csi_mechanisms(), Some(list));
}

fn login(data: &[u8]) {
    let Ok(login) = Login::from_token(data) else { return };
    let token = login.to_token().expect("no field is longer than it may be");
    assert_eq!(Login::from_token(&token).as_ref(), Ok(&login));
    name(&login.target);
}

fn name(data: &[u8]) {
    let Some(name) = ExportedName::from_octets(data) else { return };
    assert_eq!(name.to_octets().as_deref(), Some(data), "there is one form of it");
    let shown = format!("{:?}", name.mechanism);
    assert!(shown.chars().all(|c| c.is_ascii_hexdigit() || c == '.'), "{shown}");
    assert_eq!(
        name.as_gssup().is_some(),
        name.mechanism == Oid::GSSUP && std::str::from_utf8(&name.name).is_ok()
    );
}

fn identity(data: &[u8], order: ByteOrder) {
    let Ok(token) = IdentityToken::decode(&mut Decoder::new(data, order, Version::V1_2)) else { return };
    let mut e = Encoder::new(order, Version::V1_2);
    token.encode(&mut e).expect("what was decoded has an encoding");
    let octets = e.into_bytes();
    let again = IdentityToken::decode(&mut Decoder::new(&octets, order, Version::V1_2));
    assert_eq!(again.as_ref(), Ok(&token));
}
