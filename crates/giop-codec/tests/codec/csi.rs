//! Security contexts of requests and replies, and security components of references: encodings, round trips,
//! and hostile data.

use bytes::Bytes;
use giop_codec::csi::gssup::{Login, LoginError, MAX_NAME_BYTES};
use giop_codec::csi::{
    AsContextSec, AssociationOptions, AuthorizationElement, CompoundSecMech, CompoundSecMechList,
    ContextFailure, EstablishContext, ExportedName, IdentityToken, IdentityTypes, MAX_MECHANISMS, Oid,
    SasContext, SasContextSec, ServiceConfiguration, TlsSecTrans, TransportAddress, TransportMechanism,
};
use giop_codec::giop::{ContextId, ServiceContext, ServiceContextRef};
use giop_codec::ior::{ComponentTag, TaggedComponent};
use giop_codec::{DecodeErrorKind, EncodeErrorKind};

fn octets(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn login() -> Login {
    Login { user: octets("ann@site"), password: octets("secret"), target: Bytes::new() }
}

fn back(context: &ServiceContext) -> Result<Option<SasContext>, DecodeErrorKind> {
    let view = ServiceContextRef { id: context.id, data: &context.data };
    SasContext::from_service_context(&view).map_err(|error| error.kind)
}

#[test]
fn a_login_is_a_token_of_its_mechanism() {
    let token = login().to_token().unwrap();
    let wanted: &[&[u8]] = &[
        // A token of RFC 2743 with 40 bytes, of the mechanism 2.23.130.1.1.1.
        &[0x60, 0x28, 0x06, 0x06, 0x67, 0x81, 0x02, 0x01, 0x01, 0x01],
        // An encapsulation of three `octet` sequences, aligned from its own start.
        &[1, 0, 0, 0, 8, 0, 0, 0],
        b"ann@site",
        &[6, 0, 0, 0],
        b"secret",
        &[0, 0, 0, 0, 0, 0],
    ];
    assert_eq!(token, wanted.concat());
    assert_eq!(Login::from_token(&token).unwrap(), login());
    assert!(!format!("{:?}", login()).contains("secret"), "passwords stay out of logs");
}

#[test]
fn long_logins_have_long_lengths() {
    for size in [60, 127, 128, 255, 256, MAX_NAME_BYTES] {
        let long = Login { user: Bytes::from(vec![b'u'; size]), ..login() };
        assert_eq!(Login::from_token(&long.to_token().unwrap()).unwrap(), long, "{size}");
    }
    let too_long = Login { password: Bytes::from(vec![b'p'; MAX_NAME_BYTES + 1]), ..login() };
    assert_eq!(too_long.to_token().unwrap_err().kind, EncodeErrorKind::BoundExceeded);
}

#[test]
fn tokens_that_are_cut_or_of_another_form_are_refused() {
    let token = login().to_token().unwrap();
    for length in 0..token.len() {
        assert!(Login::from_token(&token[..length]).is_err(), "{length}");
    }
    for at in 0..10 {
        let mut bad = token.to_vec();
        bad[at] ^= 1;
        assert!(Login::from_token(&bad).is_err(), "{at}");
    }
    let kind = |token: &[u8]| Login::from_token(token).unwrap_err().kind;
    assert_eq!(kind(&[0x60, 0x85, 1, 1, 1, 1, 1]), DecodeErrorKind::Malformed, "a length of five octets");
    assert_eq!(kind(&[0x60, 0x80]), DecodeErrorKind::Malformed, "one without an end");
}

#[test]
fn long_lengths_are_read_as_jacorb_writes_them_too() {
    let long = Login { user: Bytes::from(vec![b'u'; 300]), ..login() };
    let token = long.to_token().unwrap();
    // 60 82 and two bytes of the length in DER.
    let length = usize::from(u16::from_be_bytes([token[2], token[3]]));
    let jacorb = [&[0x60, (length >> 7) as u8 | 0x80, (length & 0x7f) as u8], &token[4..]].concat();
    assert_eq!(Login::from_token(&jacorb).unwrap(), long);
    assert!(Login::from_token(&jacorb[..jacorb.len() - 1]).is_err());
    assert!(Login::from_token(&[0x60, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).is_err(), "one without an end");
}

#[test]
fn errors_of_logins_have_numbers() {
    for (number, error) in [
        (1, LoginError::Unspecified),
        (2, LoginError::NoUser),
        (3, LoginError::BadPassword),
        (4, LoginError::BadTarget),
        (77, LoginError::Other(77)),
    ] {
        let token = error.to_token().unwrap();
        assert_eq!(token[..], [1, 0, 0, 0, number, 0, 0, 0]);
        assert_eq!(LoginError::from_token(&token).unwrap(), error);
    }
    assert!(LoginError::from_token(&[1, 0, 0, 0, 1]).is_err());
}

#[test]
fn names_are_exported_with_their_mechanism() {
    let name = ExportedName::gssup("@site");
    let wire = name.to_octets().unwrap();
    let oid = [0x06, 0x06, 0x67, 0x81, 0x02, 0x01, 0x01, 0x01];
    assert_eq!(wire, [&[4, 1, 0, 8][..], &oid, &[0, 0, 0, 5], b"@site"].concat());
    assert_eq!(ExportedName::from_octets(&wire), Some(name.clone()));
    assert_eq!(name.as_gssup(), Some("@site"));
    assert_eq!(format!("{:?}", name.mechanism), "2.23.130.1.1.1");
    assert_eq!(format!("{:?}", Oid::new(octets("x"))), "78");
    for length in 0..wire.len() {
        assert_eq!(ExportedName::from_octets(&wire[..length]), None, "{length}");
    }
    assert_eq!(ExportedName::from_octets(&[&wire[..], b"x"].concat()), None, "more than it");
    let foreign = ExportedName { mechanism: Oid::new(octets("x")), ..name };
    assert_eq!(foreign.as_gssup(), None);
}

/// One context of each kind.
fn contexts() -> Vec<SasContext> {
    let identities = [
        IdentityToken::Absent,
        IdentityToken::Anonymous,
        IdentityToken::PrincipalName(ExportedName::gssup("bob")),
        IdentityToken::X509CertChain(Bytes::from_static(&[0x30, 0x03, 0x02, 0x01, 0x05])),
        IdentityToken::DistinguishedName(Bytes::from_static(&[0x30, 0x00])),
        IdentityToken::Other(64, octets("whatever")),
    ];
    let establish = |identity| {
        SasContext::Establish(EstablishContext {
            client_context_id: 7,
            authorization: vec![AuthorizationElement { kind: 0x4f4d_0001, contents: octets("abc") }],
            identity,
            authentication: login().to_token().unwrap(),
        })
    };
    let mut all: Vec<SasContext> = identities.into_iter().map(establish).collect();
    all.push(SasContext::Establish(EstablishContext::default()));
    all.push(SasContext::Complete { client_context_id: 7, stateful: true, final_token: Bytes::new() });
    all.push(SasContext::Error {
        client_context_id: 7,
        failure: ContextFailure::INVALID_EVIDENCE,
        error_token: LoginError::BadPassword.to_token().unwrap(),
    });
    all.push(SasContext::InContext { client_context_id: 7, may_discard: true });
    all
}

#[test]
fn contexts_go_there_and_back() {
    for context in contexts() {
        let sent = context.to_service_context().unwrap();
        assert_eq!(sent.id, ContextId::SECURITY_ATTRIBUTE_SERVICE);
        assert_eq!(back(&sent), Ok(Some(context)));
    }
    let other = ServiceContext { id: ContextId::CODE_SETS, data: Bytes::new() };
    assert_eq!(back(&other), Ok(None));
}

#[test]
fn a_context_has_the_octets_of_its_idl() {
    let context = SasContext::Error {
        client_context_id: 2,
        failure: ContextFailure::POLICY_CONFLICT,
        error_token: Bytes::new(),
    };
    let wanted: &[&[u8]] = &[
        // Byte order, a short after it, and the number at a multiple of eight.
        &[1, 0, 4, 0, 0, 0, 0, 0],
        &[2, 0, 0, 0, 0, 0, 0, 0],
        &[3, 0, 0, 0, 1, 0, 0, 0],
        &[0, 0, 0, 0],
    ];
    assert_eq!(context.to_service_context().unwrap().data, wanted.concat());
}

#[test]
fn contexts_that_are_cut_or_of_another_kind_are_refused() {
    for context in contexts() {
        let sent = context.to_service_context().unwrap();
        for length in 0..sent.data.len() {
            let cut = ServiceContext { data: sent.data.slice(..length), ..sent.clone() };
            assert!(back(&cut).is_err(), "{length} of {context:?}");
        }
    }
    let mut data = contexts()[0].to_service_context().unwrap().data.to_vec();
    data[2] = 2;
    let sent = ServiceContext { id: ContextId::SECURITY_ATTRIBUTE_SERVICE, data: data.into() };
    assert_eq!(back(&sent), Err(DecodeErrorKind::Malformed));
}

/// Some ORBs write the identity itself instead of an encapsulation of it.
#[test]
fn identities_may_come_without_their_encapsulation() {
    let name = ExportedName::gssup("bob");
    let plain = name.to_octets().unwrap();
    // Byte order and kind, context number, no authorization, the form.
    let mut data = vec![1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0];
    data.extend(u32::try_from(plain.len()).unwrap().to_le_bytes());
    data.extend(&plain);
    data.resize(data.len().next_multiple_of(4), 0);
    data.extend([0; 4]);
    let sent = ServiceContext { id: ContextId::SECURITY_ATTRIBUTE_SERVICE, data: data.into() };
    let wrapped = SasContext::Establish(EstablishContext {
        identity: IdentityToken::PrincipalName(name),
        ..EstablishContext::default()
    });
    assert_eq!(back(&sent), Ok(Some(wrapped)));
}

fn mechanisms() -> CompoundSecMechList {
    let trust = AssociationOptions::ESTABLISH_TRUST_IN_CLIENT;
    CompoundSecMechList {
        stateful: true,
        mechanisms: vec![
            CompoundSecMech {
                target_requires: trust.union(AssociationOptions::INTEGRITY),
                transport: TransportMechanism::Tls(TlsSecTrans {
                    supports: AssociationOptions::INTEGRITY.union(AssociationOptions::CONFIDENTIALITY),
                    requires: AssociationOptions::INTEGRITY,
                    addresses: vec![TransportAddress { host: "db.example".into(), port: 684 }],
                }),
                authentication: AsContextSec {
                    supports: trust,
                    requires: trust,
                    mechanism: Oid::GSSUP,
                    target_name: ExportedName::gssup("@site").to_octets().unwrap(),
                },
                attributes: SasContextSec {
                    supports: AssociationOptions::IDENTITY_ASSERTION,
                    authorities: vec![ServiceConfiguration { syntax: 1, name: octets("authority") }],
                    naming_mechanisms: vec![Oid::GSSUP],
                    identity_types: IdentityTypes::ANONYMOUS.union(IdentityTypes::PRINCIPAL_NAME),
                    ..SasContextSec::default()
                },
            },
            CompoundSecMech::default(),
            CompoundSecMech {
                transport: TransportMechanism::Other(TaggedComponent {
                    tag: ComponentTag(35),
                    data: octets("seciop"),
                }),
                ..CompoundSecMech::default()
            },
        ],
    }
}

#[test]
fn mechanisms_of_references_go_there_and_back() {
    let component = TaggedComponent::csi_mechanisms(&mechanisms()).unwrap();
    assert_eq!(component.tag, ComponentTag::CSI_SEC_MECH_LIST);
    assert_eq!(component.as_csi_mechanisms(), Some(mechanisms()));
    assert_eq!(TaggedComponent::policies(&Default::default()).unwrap().as_csi_mechanisms(), None);
    let options = mechanisms().mechanisms[0].target_requires;
    assert!(options.has(AssociationOptions::INTEGRITY) && !options.has(AssociationOptions::CONFIDENTIALITY));
    assert!(IdentityToken::Anonymous.form() == IdentityTypes::ANONYMOUS);
}

#[test]
fn mechanisms_that_are_cut_are_none_and_more_than_there_may_be_neither() {
    let component = TaggedComponent::csi_mechanisms(&mechanisms()).unwrap();
    for length in 0..component.data.len() {
        let cut = TaggedComponent { data: component.data.slice(..length), ..component.clone() };
        assert_eq!(cut.as_csi_mechanisms(), None, "{length}");
    }
    let many =
        |count| CompoundSecMechList { stateful: false, mechanisms: vec![CompoundSecMech::default(); count] };
    let read = |count| TaggedComponent::csi_mechanisms(&many(count)).unwrap().as_csi_mechanisms();
    assert!(read(MAX_MECHANISMS) == Some(many(MAX_MECHANISMS)));
    assert!(read(MAX_MECHANISMS + 1).is_none());
}

/// A mechanism with a corrupt TLS part cannot be used; the others can.
#[test]
fn a_broken_transport_spoils_its_mechanism_alone() {
    let broken = TaggedComponent { tag: ComponentTag::TLS_SEC_TRANS, data: octets("\u{1}") };
    let mut list = mechanisms();
    list.mechanisms[0].transport = TransportMechanism::Other(broken.clone());
    let read = TaggedComponent::csi_mechanisms(&list).unwrap().as_csi_mechanisms().unwrap();
    assert_eq!(read.mechanisms[0].transport, TransportMechanism::Other(broken));
    assert_eq!(read.mechanisms[1..], list.mechanisms[1..]);
}
