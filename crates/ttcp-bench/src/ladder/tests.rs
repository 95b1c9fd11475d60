//! Tests of all steps. Each must have the results of compiled code, and no input may cause a panic. Steps 0
//! to 2 must make the published numbers of calls.

use zorb::__private::v1::{CdrEncode, Encoder};
use zorb::wire::{ByteOrder, Version};
use zorb::{Bounded, Bytes, Char, Seq, Typed};

use super::base::NoCounting;
use super::case::{Case, ElementType, Order};
use super::measurement::{Side, check, count_calls};
use super::size::Functions;
use super::{Engine, Step, steps_for_timing};

#[allow(dead_code, reason = "generated code")]
mod idl {
    zorb::idl! {
        enum Colour { red, green };
        struct Inner { boolean b; unsigned long long x; };
        struct Other { char c; float f; };
        struct Outer { octet o; Inner pair[2]; sequence<Other> rest; Colour colour; sequence<sequence<short>> rows; };
    }
}

use idl::{Colour, Inner, Other, Outer};

const ELEMENTS: usize = 100;

/// The steps that interpret type codes.
const INTERPRETERS: [Step; 6] =
    [Step::Original, Step::Inlined, Step::Merged, Step::ReceiverSplit, Step::SenderSplit, Step::Typed];

fn cases() -> impl Iterator<Item = Case> {
    let cases = |kind: ElementType| Order::ALL.map(|order| Case::new(kind, order, ELEMENTS * kind.bytes()));
    ElementType::ALL.into_iter().flat_map(cases)
}

fn encoded<T: CdrEncode>(value: &T, order: ByteOrder) -> Bytes {
    let mut encoder = Encoder::new(order, Version::V1_2);
    value.encode(&mut encoder).unwrap();
    encoder.into_bytes()
}

fn code_of<T: Typed>() -> Bytes {
    encoded(&T::type_code(), ByteOrder::NATIVE)
}

fn interpreter(step: Step, code: &[u8], order: ByteOrder) -> anyhow::Result<Box<dyn Engine>> {
    steps_for_timing::engine::<NoCounting>(step, code, order != ByteOrder::NATIVE)
}

fn outer() -> Outer {
    let inner = |x| Inner { b: x % 2 == 0, x };
    let other = |i: u8| Other { c: Char(i), f: f32::from(i) / 2.0 };
    let rows = (0..5).map(|row| (0..row).collect::<Seq<i16>>()).collect();
    Outer { o: 7, pair: [inner(1), inner(2)], rest: (3..9).map(other).collect(), colour: Colour::Green, rows }
}

#[test]
fn results_of_every_step_equal_those_of_compiled_code() {
    for case in cases() {
        assert_eq!(case.count, ELEMENTS);
        for step in Step::ALL.into_iter().chain([Step::Raw]) {
            let mut engine = step.engine(&case).unwrap();
            for _ in 0..2 {
                let checked = check(engine.as_mut(), &case)
                    .unwrap_or_else(|e| panic!("{} {:?} {:?}: {e:#}", step.title(), case.kind, case.order));
                assert!(checked >= 2 * case.bytes());
            }
            assert_eq!(engine.used_buffers(), 0, "{}", step.title());
        }
    }
}

#[test]
fn the_check_detects_wrong_elements_and_wrong_bytes() {
    for kind in ElementType::ALL {
        let case = Case::new(kind, Order::Foreign, ELEMENTS * kind.bytes());
        for index in 0..case.memory.len() {
            let mut memory = case.memory.clone();
            assert!(case.matches_memory(&memory));
            memory[index] ^= 1;
            let padding = kind == ElementType::BinStruct && matches!(index % 32, 3 | 9..16);
            assert_eq!(case.matches_memory(&memory), padding, "{kind:?} {index}");
        }
        assert!(!case.matches_memory(&case.memory[1..]));
        let mut wire = case.wire.to_vec();
        *wire.last_mut().unwrap() ^= 1;
        let other = Case { wire: wire.into(), ..case };
        for step in Step::ALL {
            let checked = check(step.engine(&other).unwrap().as_mut(), &other);
            assert!(checked.is_err(), "{} {kind:?}", step.title());
        }
    }
}

#[test]
fn nested_structs_sequences_and_arrays_are_supported() {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let wire = encoded(&outer(), order);
        for step in INTERPRETERS {
            let mut engine = interpreter(step, &code_of::<Outer>(), order).unwrap();
            engine.receive(&wire).unwrap();
            assert_eq!(engine.used_buffers(), 1 + 1 + 5, "{}", step.title());
            engine.copy().unwrap();
            engine.send().unwrap();
            assert_eq!(engine.sent_bytes(), wire, "{}", step.title());
            engine.release().unwrap();
            assert_eq!(engine.used_buffers(), 0, "{}", step.title());
        }
    }
}

/// Returns the calls for one element, without the calls for the sequence itself.
fn calls_per_element(step: Step, side: Side, kind: ElementType, order: Order) -> Vec<(&'static str, u64)> {
    let case = Case::new(kind, order, ELEMENTS * kind.bytes());
    let calls = count_calls(step, side, &case).unwrap().unwrap();
    calls.into_iter().map(|(name, calls)| (name, calls / ELEMENTS as u64)).filter(|(_, n)| *n > 0).collect()
}

#[test]
fn numbers_of_calls_equal_the_published_ones() {
    let (receiver, double, structs) = (Side::Receiver, ElementType::Double, ElementType::BinStruct);
    for order in Order::ALL {
        // `CDR::decoder` is called for the struct, its five numbers, the array, its eight bytes, and the type
        // of these bytes. `deep_free` is called for the struct and its six members. Each of the two
        // traversals of the members (decoding and freeing) computes seven sizes.
        for step in [Step::Original, Step::Inlined] {
            let published_calls = |kind| {
                let unpublished = ["CDR::get_*", "CDR::skip_string", "CDR::get_typecode", "swap"];
                let mut calls = calls_per_element(step, receiver, kind, order);
                calls.retain(|(name, _)| !unpublished.contains(name));
                calls
            };
            assert_eq!(
                published_calls(double),
                [("CDR::decoder", 1), ("TypeCode::kind", 1), ("deep_free", 1)],
                "{}",
                step.title()
            );
            assert_eq!(
                published_calls(structs),
                [
                    ("CDR::decoder", 16),
                    ("TypeCode::kind", 7),
                    ("TypeCode::param_count", 2),
                    ("TypeCode::traverse", 3),
                    ("TypeCode::typecode_param", 1),
                    ("calc_nested_size_and_alignment", 14),
                    ("deep_free", 7),
                    ("struct_traverse", 2)
                ],
                "{}",
                step.title()
            );
        }
        let calls_get = |step| {
            calls_per_element(step, receiver, double, order).iter().any(|(name, _)| *name == "CDR::get_*")
        };
        assert!(calls_get(Step::Original) && !calls_get(Step::Inlined), "inlined");

        let merged = calls_per_element(Step::Merged, receiver, structs, order);
        let calls = |name: &str| merged.iter().find(|(routine, _)| *routine == name).map(|(_, calls)| *calls);
        assert_eq!(calls("TypeCode::traverse"), Some(2));
        assert_eq!(calls("TypeCode::typecode_param"), Some(2));
        assert_eq!(calls("calc_nested_size_and_alignment"), None);
        let swap: &[(&str, u64)] = if order == Order::Foreign { &[("swap", 1)] } else { &[] };
        for step in [Step::Merged, Step::ReceiverSplit, Step::SenderSplit] {
            for side in Side::ALL {
                assert_eq!(
                    calls_per_element(step, side, double, order),
                    swap,
                    "{}: numbers need no calls except `swap`",
                    step.title()
                );
            }
        }
        for side in Side::ALL {
            assert_eq!(
                calls_per_element(Step::Typed, side, double, order),
                [],
                "numbers are swapped in the loop"
            );
        }
    }
}

#[test]
fn truncated_and_too_long_data_is_rejected() {
    for case in cases() {
        for step in Step::ALL {
            let mut engine = step.engine(&case).unwrap();
            for length in 0..case.wire.len() {
                assert!(
                    engine.receive(&case.wire.slice(..length)).is_err(),
                    "{} cut at {length}",
                    step.title()
                );
            }
            let longer: Bytes = case.wire.iter().copied().chain([0]).collect();
            assert!(engine.receive(&longer).is_err(), "{}", step.title());
            let mut huge_length = case.wire.to_vec();
            huge_length[..4].fill(0xff);
            assert!(engine.receive(&huge_length.into()).is_err(), "{}", step.title());
            assert!(check(engine.as_mut(), &case).is_ok(), "{}: after errors", step.title());
        }
    }
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let wire = encoded(&outer(), order);
        for step in INTERPRETERS {
            let mut engine = interpreter(step, &code_of::<Outer>(), order).unwrap();
            for length in 0..wire.len() {
                let error = engine.receive(&wire.slice(..length)).unwrap_err().to_string();
                assert_eq!(error, "the data ends too early", "{} cut at {length}", step.title());
            }
            for index in 0..wire.len() {
                for value in [1, 0xff] {
                    let mut other = wire.to_vec();
                    other[index] = value;
                    // Some of the changed values are also valid.
                    let _ = engine.receive(&other.into());
                }
            }
        }
    }
}

#[test]
fn invalid_types_and_sequences_longer_than_their_bound_are_rejected() {
    let code = code_of::<Outer>();
    let wire = encoded(&outer(), ByteOrder::NATIVE);
    for step in INTERPRETERS {
        for length in 0..code.len() {
            assert!(
                interpreter(step, &code[..length], ByteOrder::NATIVE).is_err(),
                "{} cut at {length}",
                step.title()
            );
        }
        for index in 0..code.len() {
            for value in [1, 0xff] {
                let mut other = code.to_vec();
                other[index] = value;
                // Changed names are valid, and some changes result in another valid type.
                if let Ok(mut engine) = interpreter(step, &other, ByteOrder::NATIVE) {
                    let _ = engine.receive(&wire);
                }
            }
        }
        let error = interpreter(step, &code_of::<String>(), ByteOrder::NATIVE).err().unwrap().to_string();
        assert_eq!(error, "values of kind 18 are not supported", "{}", step.title());
        let mut bounded = interpreter(step, &code_of::<Bounded<Seq<u8>, 2>>(), ByteOrder::NATIVE).unwrap();
        let error = bounded.receive(&encoded(&Bytes::from_static(b"abc"), ByteOrder::NATIVE)).unwrap_err();
        assert_eq!(error.to_string(), "there are more elements than the type allows", "{}", step.title());
    }
    for step in [Step::Program, Step::Compiled, Step::Raw] {
        assert!(interpreter(step, &code, ByteOrder::NATIVE).is_err());
    }
}

#[test]
fn every_step_has_machine_code() {
    let case = Case::new(ElementType::BinStruct, Order::Foreign, 320);
    let functions = Functions::of_this_program().unwrap();
    for step in Step::ALL {
        // The call ensures that the step is linked into this program.
        assert!(check(step.engine(&case).unwrap().as_mut(), &case).is_ok());
        let size = functions.size_of_step(step).unwrap();
        assert!(size.functions >= 4 && size.bytes > 500, "{}: {size:?}", step.title());
    }
    let [merged, sender] =
        [Step::Merged, Step::SenderSplit].map(|step| functions.size_of_step(step).unwrap().functions);
    assert!(sender > merged, "one routine is split into small ones");
    assert!(functions.size_of_step(Step::Raw).is_err());
}
