//! JSON of self-describing values, and bytes of such values.
//!
//! What is read can be written, and reads as the same: the second text equals the first. An error names its
//! position.
#![no_main]

mod small_stack;

use std::collections::HashSet;

use bytes::Bytes;
use giop_codec::any::Any;
use giop_codec::cdr::{CdrDecode, Decoder};
use giop_codec::dynamic::Dynamic;
use giop_codec::typecode::{TcKind, TypeCode};
use giop_codec::{ByteOrder, Version};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| small_stack::run(512, || fuzz(data)));

fn fuzz(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(any) = Any::from_json(text)
    {
        written(&any).expect("what was read can be written");
    }
    let octets = Bytes::copy_from_slice(data);
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    if let Ok(any) = Any::decode(&mut d) {
        // Some types have no JSON representation.
        let _ = written(&any);
        // The rest as text of the type.
        if let Some(Ok(text)) = octets.get(d.position()..).map(std::str::from_utf8)
            && let Ok(value) = Dynamic::from_json(any.type_code(), text)
        {
            value.check().expect("a value of its type");
            let text = value.to_json().expect("what was read can be written");
            let again = Dynamic::from_json(any.type_code(), &text).expect("what was written can be read");
            assert_eq!(again.to_json().expect("it was written before"), text);
        }
    }
}

/// Maximum number of types that are checked in a type code.
const TYPES: usize = 4096;

/// Returns whether names and labels distinguish members, as in IDL, and whether the value contains only types
/// with a JSON representation.
fn is_proper(code: &TypeCode) -> bool {
    let mut waiting = vec![code.clone()];
    for _ in 0..TYPES {
        let Some(code) = waiting.pop() else { return true };
        if matches!(code.kind(), TcKind::Any | TcKind::TypeCode) {
            return false;
        }
        let (mut names, mut labels, mut some) = (HashSet::new(), HashSet::new(), 0);
        for index in 0..code.member_count().unwrap_or(0) {
            let name = code.member_name(index).unwrap_or_default().to_owned();
            if name.starts_with('$') || !names.insert(name) {
                return false;
            }
            some += 1;
            if let Ok(Some(label)) = code.member_discriminator(index)
                && !labels.insert(label)
            {
                return false;
            }
            waiting.extend(code.member_type(index));
        }
        if some > 1 && names.contains("") {
            return false;
        }
        waiting.extend(code.content_type());
        waiting.extend(code.discriminator_type());
        waiting.extend(code.concrete_base_type().ok().flatten());
    }
    false
}

/// Returns its text, if it has one, after checking that the text survives reading and writing.
fn written(any: &Any) -> Option<String> {
    let text = any.to_json().ok()?;
    let again = match Any::from_json(&text) {
        Ok(again) => again,
        Err(error) => {
            assert!(!is_proper(any.type_code()), "{error}: {text}");
            return None;
        }
    };
    assert!(again.type_code().equal(any.type_code()), "{} {}", again.type_code(), any.type_code());
    assert_eq!(again.to_json().expect("it was written before"), text);
    Some(text)
}
