//! Traversals and changes of values, controlled by the input.
//!
//! The input is an any and a sequence of operations, a byte each. After each of them, the value must still
//! match its type, convert to an any, and be equal to the value of the any.
#![no_main]

mod small_stack;

use bytes::Bytes;
use giop_codec::any::Any;
use giop_codec::cdr::{CdrDecode, Char, Decoder, WChar};
use giop_codec::dynamic::{DynAny, DynError, DynErrorKind, Items, Value};
use giop_codec::typecode::{TcKind, TypeCode};
use giop_codec::{ByteOrder, DecodeError, DecodeErrorKind, Version};
use libfuzzer_sys::fuzz_target;

/// Number of operations: each may make a sequence longer.
const STEPS: usize = 64;

fuzz_target!(|data: &[u8]| small_stack::run(256, || fuzz(data)));

fn fuzz(data: &[u8]) {
    let octets = Bytes::copy_from_slice(data);
    let any = Any::decode(&mut Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2));
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    match any {
        Ok(any) => {
            let Ok(_) = Any::decode(&mut d) else { return };
            // Received anys are validated when they are extracted.
            if any.validate().is_err() {
                let _ = DynAny::from_any(&any);
                return;
            }
            let whole = match DynAny::from_any(&any) {
                Ok(whole) => whole,
                Err(error) if excused(&error) => return,
                Err(error) => panic!("{any:?}: {error}"),
            };
            if is_large(&whole) {
                return;
            }
            assert_eq!(whole.to_any().as_ref(), Ok(&any), "nothing was changed");
            walk(&whole, data.get(d.position()..).unwrap_or_default());
        }
        Err(_) => {
            let Ok(code) = TypeCode::decode(&mut d) else { return };
            if parts(&code, 4) > 1 << 16 {
                return;
            }
            let Ok(whole) = DynAny::of_type(&code) else { return };
            if is_large(&whole) {
                return;
            }
            walk(&whole, data.get(d.position()..).unwrap_or_default());
        }
    }
}

/// Returns the approximate number of parts of a type's initial value.
fn parts(code: &TypeCode, depth: usize) -> usize {
    let Some(depth) = depth.checked_sub(1) else { return 1 };
    let code = code.unaliased();
    match code.kind() {
        TcKind::Array => {
            let element = code.content_type().map_or(1, |element| parts(&element, depth));
            element.saturating_mul(code.length().unwrap_or(0) as usize)
        }
        TcKind::Struct => {
            let members = (0..code.member_count().unwrap_or(0)).filter_map(|at| code.member_type(at).ok());
            members.fold(1, |all, member| all.saturating_add(parts(&member, depth)))
        }
        _ => 1,
    }
}

/// Returns whether a value is so large that many steps take too long, because each copies the whole.
fn is_large(whole: &DynAny) -> bool {
    const MOST: usize = 4096;
    let whole = whole.dynamic().expect("the whole is there");
    let (mut waiting, mut met) = (vec![&whole.value], 0);
    while let Some(value) = waiting.pop() {
        met += 1;
        match value {
            Value::Struct(members) => waiting.extend(members),
            Value::Union(union) => waiting.extend(&union.value),
            Value::Items(items) => match &**items {
                Items::Values(values) => waiting.extend(values),
                items => met += items.len() / 64,
            },
            _ => {}
        }
        if met + waiting.len() > MOST {
            return true;
        }
    }
    whole.graph.nodes.len() > MOST
}

/// Accepted failures: a tree takes more memory than its encoding, and some graphs cannot be represented.
fn excused(error: &DynError) -> bool {
    let limited = |error: &DecodeError| {
        matches!(
            error.kind,
            DecodeErrorKind::AllocLimit | DecodeErrorKind::DepthLimit | DecodeErrorKind::NotInAny
        )
    };
    matches!(error.kind(), DynErrorKind::Decode(error) if limited(error))
}

fn walk(whole: &DynAny, steps: &[u8]) {
    let code = whole.type_code().expect("the whole is there");
    let mut parts = vec![whole.clone()];
    let mut steps = steps.iter().copied();
    for _ in 0..STEPS {
        let (Some(step), Some(part)) = (steps.next(), parts.last().cloned()) else { break };
        let mut argument = || steps.next().unwrap_or_default();
        match step % 16 {
            0 => drop(part.seek(i32::from(argument() as i8))),
            1 => drop(part.next()),
            2 => drop(part.rewind()),
            3 | 4 => parts.extend(part.current_component().ok().flatten()),
            5 if parts.len() > 1 => drop(parts.pop()),
            6 => numbers(&part, argument()),
            7 => texts(&part, argument()),
            8 => drop(part.as_sequence().and_then(|list| list.set_length(usize::from(argument() % 8)))),
            9 => union(&part, argument()),
            10 => drop(part.as_enum().and_then(|value| value.set_ordinal(u32::from(argument() % 4)))),
            11 => value(&part, argument()),
            12 => drop(part.assign(whole)),
            13 => drop(part.insert_dyn_any(whole)),
            14 => drop(part.as_fixed().and_then(|number| number.set_value("-1.5"))),
            _ => members(&part),
        }
        if let (Some(part), Ok(count)) = (parts.last(), parts.last().map_or(Ok(0), DynAny::component_count)) {
            let current = part.current_component();
            assert!(count != 0 || !matches!(current, Ok(Some(_))), "a component of nothing");
        }
    }
    assert_eq!(whole.type_code(), Ok(code));
    whole.dynamic().expect("the whole is there").check().expect("a value of its type");
    if let Ok(any) = whole.to_any() {
        match DynAny::from_any(&any) {
            Ok(again) => assert_eq!(again.to_any().as_ref(), Ok(&any)),
            Err(error) => assert!(excused(&error), "{any:?}: {error}"),
        }
    }
}

fn numbers(part: &DynAny, n: u8) {
    let _ = part.insert_boolean(n.is_multiple_of(2));
    let _ = part.insert_octet(n);
    let _ = part.insert_char(Char(n));
    let _ = part.insert_short(n.into());
    let _ = part.insert_ulong(n.into());
    let _ = part.insert_longlong(n.into());
    let _ = part.insert_double(n.into());
    let _ = part.insert_octet_seq(vec![n; usize::from(n % 5)]);
    let _ = part.insert_long_seq(vec![i32::from(n); usize::from(n % 5)]);
    if let Ok(number) = part.get_short() {
        assert_eq!(number, i16::from(n));
    }
}

fn texts(part: &DynAny, n: u8) {
    let text = "abcd\u{e9}fgh".chars().take(usize::from(n % 9)).collect::<String>();
    let _ = part.insert_wchar(WChar(n.into()));
    if part.insert_string(text.clone()).is_ok() {
        assert_eq!(part.get_string().as_ref(), Ok(&text));
    }
    let _ = part.insert_wstring(text.into());
    let _ = part.insert_typecode(TypeCode::LONG);
}

fn union(part: &DynAny, n: u8) {
    let Ok(union) = part.as_union() else { return };
    let _ = match n % 3 {
        0 => union.set_to_default_member(),
        1 => union.set_to_no_active_member(),
        _ => {
            numbers(&union.discriminator(), n / 3);
            Ok(())
        }
    };
    match union.has_no_active_member() {
        Ok(true) => assert!(union.member().is_err()),
        Ok(false) => assert!(union.member().is_ok()),
        Err(_) => {}
    }
}

fn value(part: &DynAny, n: u8) {
    let Ok(value) = part.as_value() else { return };
    let _ = if n.is_multiple_of(2) { value.set_to_null() } else { value.set_to_value() };
}

/// Checks that a struct accepts its own members.
fn members(part: &DynAny) {
    let Ok(view) = part.as_struct() else { return };
    let Ok(all) = view.members() else { return };
    view.set_members(all).expect("its own members");
}
