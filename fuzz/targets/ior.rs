//! Object references from strangers: as text and as bytes.
//!
//! A valid reference prints as text that parses to the same reference. An error names its position in the
//! text.
#![no_main]

mod small_stack;

use bytes::Bytes;
use giop_codec::cdr::CdrEncode;
use giop_codec::cdr::{CdrDecode, Decoder, Encoder};
use giop_codec::ior::{IiopProfile, Ior, TaggedComponent, UiopProfile, open_encapsulation};
use giop_codec::url::{Corbaloc, Corbaname, ObjectUrl};
use giop_codec::{ByteOrder, Version};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| small_stack::run(256, || fuzz(data)));

fn fuzz(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        url(text);
        if let Err(error) = text.parse::<Ior>() {
            assert!(error.position() <= text.chars().count() + 1, "{error} in {text:?}");
        }
        let _ = (text.parse::<Corbaloc>(), text.parse::<Corbaname>());
    }
    let octets = Bytes::copy_from_slice(data);
    for order in [ByteOrder::Big, ByteOrder::Little] {
        if let Ok(ior) = Ior::decode(&mut Decoder::from_bytes(&octets, order, Version::V1_2)) {
            reference(&ior);
        }
    }
    if let Ok(mut d) = open_encapsulation(&octets)
        && let Ok(ior) = Ior::decode(&mut d)
    {
        reference(&ior);
    }
}

fn url(text: &str) {
    let url = match text.parse::<ObjectUrl>() {
        Ok(url) => url,
        Err(error) => {
            let line = error.to_string();
            assert!(!line.contains('\n'), "an error is one line: {line:?}");
            return;
        }
    };
    let printed = url.to_string();
    let again = printed.parse::<ObjectUrl>();
    assert_eq!(again.as_ref(), Ok(&url), "{text:?} prints as {printed:?}");
    match &url {
        ObjectUrl::Ior(ior) => reference(ior),
        ObjectUrl::Corbaloc(corbaloc) => {
            if let Ok(ior) = corbaloc.to_ior() {
                assert!(!ior.is_nil());
                reference(&ior);
            }
        }
        ObjectUrl::Corbaname(_) | ObjectUrl::File(_) => {}
    }
}

fn reference(ior: &Ior) {
    let printed = ior.to_string();
    let again = printed.parse::<Ior>().expect("a printed reference parses");
    assert_eq!(again.profiles, ior.profiles, "profiles are kept octet for octet");
    for profile in ior.iiop_profiles() {
        profile_parts(&profile);
    }
    for profile in ior.uiop_profiles() {
        let tagged = profile.to_tagged().expect("what was decoded has an encoding");
        assert_eq!(UiopProfile::from_tagged(&tagged).as_ref(), Ok(&profile));
    }
}

fn profile_parts(profile: &IiopProfile) {
    let _ = (profile.addresses(), profile.code_sets(), profile.orb_type(), profile.ssl());
    let _ = profile.omni_unix_addresses().count();
    if let Some(policies) = profile.policies() {
        let again = TaggedComponent::policies(&policies).expect("what was decoded has an encoding");
        assert_eq!(again.as_policies(), Some(policies));
    }
    for component in &profile.components {
        let _ = (component.as_ots_policy(), component.as_invocation_policy());
        if let Some(numbers) = component.as_zorb_operations() {
            let again = TaggedComponent::zorb_operations(&numbers).expect("no longer than the input");
            assert_eq!(again.as_zorb_operations(), Some(numbers));
        }
    }
    let tagged = profile.to_tagged().expect("what was decoded has an encoding");
    assert_eq!(IiopProfile::from_tagged(&tagged).as_ref(), Ok(profile));
    let mut e = Encoder::new(ByteOrder::Little, Version::V1_2);
    tagged.encode(&mut e).expect("no longer than the input");
}
