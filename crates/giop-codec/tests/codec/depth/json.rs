//! Nesting tests for JSON.

use giop_codec::any::Any;
use giop_codec::dynamic::Dynamic;
use giop_codec::typecode::TypeCode;

use super::{JSON_STACK, LEVELS, inputs, on_a_stack};

/// Writes a value, reads the text, and compares the result.
pub(crate) fn written(value: &Dynamic) {
    if let Ok(text) = value.to_json() {
        assert_eq!(Dynamic::from_json(&value.code, &text).unwrap().to_json().unwrap(), text);
    }
}

type Levels = &'static [(&'static str, &'static str)];

/// The texts that open and close each level, in turn, and the innermost text.
const TEXTS: [(&str, Levels, &str); 11] = [
    ("arrays", &[("[", "]")], ""),
    ("objects", &[("{\"a\":", "}")], "null"),
    ("structs", &[("{\"kids\":[", "]}")], ""),
    ("unions", &[("{\"$case\":1,\"kids\":[", "]}")], ""),
    ("values", &[("{\"next\":", "}")], "null"),
    ("anys", &[("{\"$type\":\"any\",\"value\":", "}")], "{\"$type\":\"null\"}"),
    ("anys backwards", &[("{\"value\":", ",\"$type\":\"any\"}")], "{\"$type\":\"null\"}"),
    ("type codes", &[("{\"kind\":\"sequence\",\"element\":", "}")], "\"long\""),
    (
        "types of anys",
        &[
            ("{\"$type\":\"any\",\"value\":", "}"),
            ("{\"$type\":{\"kind\":\"sequence\",\"element\":\"any\"},\"value\":[", "]}"),
        ],
        "{\"$type\":\"null\"}",
    ),
    (
        "types in anys",
        &[("{\"$type\":", ",\"value\":[]}"), ("{\"kind\":\"sequence\",\"element\":", "}")],
        "\"long\"",
    ),
    ("arrays and objects", &[("[", "]"), ("{\"a\":", "}")], "0"),
];

#[test]
fn texts_nest_within_the_stack_of_a_small_thread() {
    for levels in LEVELS {
        for (name, parts, end) in TEXTS {
            on_a_stack(JSON_STACK, &format!("JSON of {name}, {levels}"), || {
                let opens = parts.iter().cycle().take(levels).map(|(open, _)| *open);
                let closes: Vec<&str> = parts.iter().cycle().take(levels).map(|(_, close)| *close).collect();
                let text: String = opens.chain([end]).chain(closes.into_iter().rev()).collect();
                let codes = inputs::all().into_iter().map(|nest| nest.code).chain([TypeCode::TYPE_CODE]);
                for code in codes {
                    match Dynamic::from_json(&code, &text) {
                        Ok(value) => assert!(levels <= 64 && value.to_json().is_ok()),
                        Err(error) => {
                            assert!(error.path().steps().len() <= 3 * 64 && error.to_string().len() < 8192)
                        }
                    }
                }
                let _ = Any::from_json(&text);
                let _ = Dynamic::members_from_json(
                    &[("a", &TypeCode::ANY)],
                    &Default::default(),
                    &format!("{{\"a\":{text}}}"),
                );
            });
        }
    }
}
