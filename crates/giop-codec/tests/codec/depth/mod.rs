//! A stack of 256 KiB is enough for all processing of bytes and texts of a peer, however deeply they are
//! nested.

mod inputs;
#[cfg(feature = "serde")]
mod json;

use crate::values;

use bytes::Bytes;
use giop_codec::any::Any;
use giop_codec::cdr::{CdrDecode, CdrEncode, DecodeLimits, Decoder, Encoder};
use giop_codec::dynamic::program::Program;
use giop_codec::dynamic::{DynAny, DynError, Dynamic};
use giop_codec::typecode::{TypeCode, TypeSet};
use giop_codec::value::Value;
use giop_codec::{ByteOrder, DecodeError, DecodeErrorKind, Version};

/// Levels: few, the maximum, too many, and as many as in a message of several megabytes.
pub(crate) const LEVELS: [usize; 5] = [10, 30, 60, 1_000, 1_000_000];

/// An eighth of the stack of tokio's threads.
const STACK: usize = 256 << 10;

/// JSON uses `serde`, whose generic functions have a frame each. In unoptimized tests these frames are
/// several times as large as in a program.
#[cfg(feature = "serde")]
pub(crate) const JSON_STACK: usize = 512 << 10;

/// Runs `f` in a thread with a small stack. A stack overflow ends the process and reports the name of the
/// thread.
pub(crate) fn on_a_stack<T: Send>(stack: usize, name: &str, f: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(name.into()).stack_size(stack);
        thread.spawn_scoped(scope, f).unwrap().join().unwrap()
    })
}

/// Returns a decoder with a small memory limit, which ends deeply nested values that need no stack.
fn decoder(octets: &Bytes) -> Decoder<'_> {
    let mut d = Decoder::from_bytes(octets, ByteOrder::NATIVE, Version::V1_2);
    d.set_limits(DecodeLimits { alloc: 2 << 20, ..d.limits() });
    d
}

fn is_limit(error: &DecodeError) -> bool {
    matches!(error.kind, DecodeErrorKind::DepthLimit | DecodeErrorKind::AllocLimit)
}

/// Checks that a deep value was rejected because of a limit, and that the error's path is not longer than the
/// maximum nesting.
#[track_caller]
fn is_refused(what: &str, error: &DynError) {
    let giop_codec::dynamic::DynErrorKind::Decode(kind) = error.kind() else { panic!("{what}: {error}") };
    assert!(is_limit(kind), "{what}: {error}");
    assert!(error.path().steps().len() <= 3 * 64, "{what}: {}", error.path().steps().len());
    assert!(error.to_string().len() < 4096);
}

/// Uses all functions for a value of a type that is known at run time.
fn use_all(name: &str, any: &Any) {
    let _ = any.validate();
    let _ = (any.to_string().len(), format!("{any:?}").len(), any.clone() == *any);
    any.encode(&mut Encoder::new(ByteOrder::Big, Version::V1_2)).unwrap();
    let _ = any.encode_value_with_path(&mut Encoder::new(ByteOrder::Big, Version::V1_0));
    let _ = any.get::<Vec<Any>>();
    let _ = any.get::<Any>();
    let Ok(dynamic) = any.to_dynamic() else { return };
    let _ = dynamic.check();
    assert!(!dynamic.to_string().is_empty() && !format!("{dynamic:?}").is_empty(), "{name}");
    assert!(dynamic.clone() == dynamic);
    let _ = Any::from_dynamic(&dynamic);
    #[cfg(feature = "serde")]
    on_a_stack(JSON_STACK, &format!("JSON of {name}"), || json::written(&dynamic));
    let mut at = DynAny::from(dynamic);
    for _ in 0..70 {
        let Ok(Some(next)) = at.current_component() else { break };
        at = next;
    }
    let _ = (at.dynamic().map(drop), at.to_any().map(drop), format!("{at:?}").len());
    while let Ok(inner) = at.get_dyn_any() {
        at = inner;
    }
}

type Read = fn(&Program, &mut Decoder<'_>) -> Result<(), DynError>;

/// All functions that read bytes by a type code.
const READS: [(&str, Read); 6] = [
    ("skip", |program, d| program.skip(d).map(drop)),
    ("validate", |program, d| program.validate(d).map(drop)),
    ("decode", |program, d| program.decode(d).map(drop)),
    ("copy", |program, d| program.copy(d, &mut Encoder::new(ByteOrder::Big, Version::V1_2)).map(drop)),
    ("print", |program, d| program.print(d, &mut String::new())),
    ("any", |program, d| Any::decode_value_with_path(program.type_code(), d).map(drop)),
];

#[test]
fn values_nest_within_the_stack_of_a_small_thread() {
    for levels in LEVELS {
        for nest in inputs::all() {
            let octets = Bytes::from(nest.octets(levels));
            for (act, read) in READS {
                let name = format!("{act}: {}, {levels}", nest.name);
                on_a_stack(STACK, &name, || {
                    if let Err(error) = read(&Program::of(&nest.code), &mut decoder(&octets)) {
                        is_refused(&name, &error);
                    } else {
                        // Values that need no stack have no level limit.
                        assert!(levels < 64 || name.contains("value"), "{name}");
                    }
                });
            }
            let name = format!("{}, {levels}", nest.name);
            on_a_stack(STACK, &name, || {
                if let Ok(any) = Any::decode_value(&nest.code, &mut decoder(&octets)) {
                    use_all(&name, &any);
                }
            });
        }
    }
}

/// A value in an any from a peer, with its type.
#[test]
fn anys_of_values_nest_within_the_stack_of_a_small_thread() {
    for levels in LEVELS {
        for nest in inputs::all() {
            let name = format!("any of {}, {levels}", nest.name);
            on_a_stack(STACK, &name, || {
                let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
                nest.code.encode(&mut e).unwrap();
                e.align(4);
                e.put_raw(&nest.octets(levels));
                let octets = e.into_bytes();
                match Any::decode(&mut decoder(&octets)) {
                    Ok(any) => use_all(&name, &any),
                    Err(error) => assert!(is_limit(&error), "{name}: {error}"),
                }
                if let Err(error) = Any::decode_value_with_path(&TypeCode::ANY, &mut decoder(&octets)) {
                    is_refused(&name, &error);
                }
            });
        }
    }
}

#[test]
fn type_codes_and_encapsulations_nest_within_the_stack_of_a_small_thread() {
    for levels in LEVELS {
        on_a_stack(STACK, &format!("type code, {levels}"), || {
            let octets = Bytes::from(inputs::type_code(levels));
            match TypeCode::decode(&mut decoder(&octets)) {
                Ok(code) => {
                    assert!(levels < 32);
                    let again = TypeCode::decode(&mut decoder(&octets)).unwrap();
                    assert!(code == again && code.equivalent(&again) && !code.to_string().is_empty());
                    let _ =
                        (code.compact(), code.is_complete(), format!("{code:?}"), Dynamic::default_of(&code));
                    use_all("type code", &Any::new(code).unwrap());
                }
                Err(error) => assert!(is_limit(&error), "{levels}: {error}"),
            }
            // As the value of an any, and as its type.
            for kind in [12_u32, 0].map(u32::to_ne_bytes) {
                let of_any = if kind[0] == 0 && kind[3] == 0 { &[][..] } else { &kind };
                let octets = Bytes::from([of_any, &octets].concat());
                let error = Any::decode_value_with_path(&TypeCode::ANY, &mut decoder(&octets)).err();
                assert!(levels < 32 || error.is_some());
            }
        });
        on_a_stack(STACK, &format!("encapsulations, {levels}"), || {
            fn read(mut d: Decoder<'_>) -> Result<usize, DecodeError> {
                match d.remaining() {
                    // The padding of the byte order.
                    0..=3 => Ok(0),
                    _ => Ok(1 + read(d.encapsulation()?)?),
                }
            }
            let octets = Bytes::from(inputs::encapsulations(levels));
            match read(decoder(&octets)) {
                Ok(found) => assert!(found == levels && levels <= 64),
                Err(error) => assert!(is_limit(&error), "{error}"),
            }
        });
    }
}

/// Types of one level that refer to each other by indirections, up to the limit of a type code. Written out,
/// they are nested to that depth.
#[test]
fn chains_of_types_take_no_stack() {
    for length in [10, 1_000, 2_000] {
        on_a_stack(STACK, &format!("chain of types, {length}"), || {
            let mut set = TypeSet::new();
            let mut members = vec![("m", set.add(&TypeCode::OCTET))];
            for at in 1..length {
                let next = set.declare();
                set.define_struct(next, &format!("IDL:T{at}:1.0"), "T", &[("m", members[at - 1].1)]).unwrap();
                members.push(("m", next));
            }
            let names: Vec<String> = (0..length).map(|at| format!("m{at}")).collect();
            for (member, name) in members.iter_mut().zip(&names) {
                member.0 = name;
            }
            let whole = set.declare();
            set.define_struct(whole, "IDL:Whole:1.0", "Whole", &members).unwrap();
            let code = set.type_code(whole).unwrap();
            let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
            code.encode(&mut e).unwrap();
            e.put_raw(&vec![7; length]);
            let octets = e.into_bytes();
            match Any::decode_value_with_path(&TypeCode::ANY, &mut decoder(&octets)) {
                Ok(any) => use_all("chain of types", &any),
                Err(error) => is_refused("chain of types", &error),
            }
            assert!(code.equal(&TypeCode::decode(&mut decoder(&octets)).unwrap()));
            let _ = Dynamic::default_of(&code);
        });
    }
}

/// Values of types that are compiled into the program.
#[test]
fn known_values_nest_within_the_stack_of_a_small_thread() {
    for levels in LEVELS {
        for (name, octets) in inputs::known_values(levels) {
            on_a_stack(STACK, &format!("known values: {name}, {levels}"), || {
                let (octets, factories) = (Bytes::from(octets), values::all());
                let mut d = decoder(&octets).with_context(&factories);
                let read = match name {
                    "list" => Option::<Value<values::LNode>>::decode(&mut d).map(|value| drop(value.clone())),
                    _ => Option::<Value<values::Tree>>::decode(&mut d).map(|value| {
                        let again = Option::<Value<values::Tree>>::decode(&mut decoder(&octets)).unwrap();
                        assert!(value == again && !format!("{value:?}").is_empty());
                        value.encode(&mut Encoder::new(ByteOrder::Big, Version::V1_2)).unwrap();
                    }),
                };
                match read {
                    Ok(()) => assert!(levels < 64 || name == "list"),
                    Err(error) => assert!(is_limit(&error), "{name}, {levels}: {error}"),
                }
            });
        }
    }
}
