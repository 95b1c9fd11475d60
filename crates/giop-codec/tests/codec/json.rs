//! JSON of values of types that are known at run time: the rows of docs/JSON.md.
#![cfg(feature = "serde")]

use giop_codec::any::Any;
use giop_codec::cdr::LongDouble;
use giop_codec::dynamic::{DynAny, DynErrorKind, Dynamic, Items, Value};
use giop_codec::typecode::TypeCode;
use proptest::prelude::*;

/// The type with that JSON.
fn code(json: &str) -> TypeCode {
    match Dynamic::from_json(&TypeCode::TYPE_CODE, json) {
        Ok(Dynamic { value: Value::TypeCode(code), .. }) => *code,
        other => panic!("{json}: {other:?}"),
    }
}

fn read(code: &TypeCode, json: &str) -> Dynamic {
    Dynamic::from_json(code, json).unwrap_or_else(|error| panic!("{code}: {json}: {error}"))
}

fn error(code: &TypeCode, json: &str) -> String {
    match Dynamic::from_json(code, json) {
        Err(error) => error.to_string(),
        Ok(value) => panic!("{code}: {json}: {value:?}"),
    }
}

const POINT: &str = r#"{"kind":"struct","id":"IDL:P:1.0","name":"P","members":[{"name":"x","type":"short"},{"name":"y","type":"double"}]}"#;
const COLOR: &str = r#"{"kind":"enum","id":"IDL:C:1.0","name":"C","members":["red","green"]}"#;
const CHOICE: &str = r#"{"kind":"union","id":"IDL:U:1.0","name":"U","discriminator":{"kind":"enum","id":"IDL:C:1.0","name":"C","members":["red","green","blue","black"]},"members":[
    {"label":"red","name":"r","type":"long"},{"label":"green","name":"r","type":"long"},{"label":"blue","name":"b","type":"string"}]}"#;
const NODE: &str = r#"{"kind":"value","id":"IDL:N:1.0","name":"N","members":[{"name":"v","type":"long"},{"name":"next","type":{"$ref":"IDL:N:1.0"}}]}"#;

/// The type, the JSON written, and other JSON that is read as the same value.
fn rows() -> Vec<(TypeCode, &'static str, Vec<&'static str>)> {
    let seq = |of: &TypeCode| TypeCode::sequence(of, 0);
    vec![
        (TypeCode::BOOLEAN, "true", vec![]),
        (TypeCode::OCTET, "255", vec!["\"255\""]),
        (TypeCode::SHORT, "-32768", vec!["\"-32768\""]),
        (TypeCode::ULONGLONG, "18446744073709551615", vec!["\"18446744073709551615\""]),
        (TypeCode::LONGLONG, "-9223372036854775808", vec![]),
        (TypeCode::FLOAT, "0.1", vec![]),
        (TypeCode::DOUBLE, "0.1", vec!["1e-1"]),
        (TypeCode::DOUBLE, "\"-Infinity\"", vec![]),
        (TypeCode::FLOAT, "\"Infinity\"", vec![]),
        (TypeCode::LONGDOUBLE, "\"0x3fff8000000000000000000000000000\"", vec!["1.5"]),
        (TypeCode::CHAR, "\"é\"", vec![]),
        (TypeCode::WCHAR, "\"€\"", vec!["8364"]),
        (TypeCode::WCHAR, "55296", vec![]),
        (TypeCode::string(0), "\"a\\n€\"", vec![]),
        (TypeCode::wstring(2), "\"😀\"", vec![]),
        (code("\"fixed<5,-31>\""), "\"-120000000000000000000000000000000\"", vec![]),
        (code("\"fixed<5,2>\""), "\"12.50\"", vec!["12.5", "\"12.500\"", "\"+12.5\""]),
        (code(COLOR), "\"green\"", vec!["1"]),
        (code(POINT), r#"{"x":1,"y":2.5}"#, vec![r#"{"y":2.5,"x":1}"#, "[1,2.5]"]),
        (
            code(&POINT.replace("struct", "except")),
            r#"{"$exception":"IDL:P:1.0","x":1,"y":2.0}"#,
            vec![r#"{"x":1,"y":2}"#],
        ),
        (code(CHOICE), r#"{"$case":"green","r":5}"#, vec![r#"{"r":5,"$case":1}"#]),
        (code(CHOICE), r#"{"$case":"blue","b":"x"}"#, vec![r#"{"b":"x"}"#]),
        (code(CHOICE), r#"{"$case":"black"}"#, vec![]),
        (seq(&TypeCode::OCTET), "\"AQID\"", vec!["[1,2,3]"]),
        (TypeCode::array(&TypeCode::OCTET, 2), "\"AQI=\"", vec!["[1,2]"]),
        (seq(&TypeCode::LONG), "[1,-2,3]", vec!["[\"1\",-2,3]"]),
        (seq(&seq(&TypeCode::DOUBLE)), "[[],[1.0,\"NaN\"]]", vec![]),
        (
            seq(&code(
                r#"{"kind":"struct","members":[{"name":"key","type":"string"},{"name":"value","type":"long"}]}"#,
            )),
            r#"[{"key":"a","value":1},{"key":"b","value":2}]"#,
            vec![r#"{"a":1,"b":2}"#],
        ),
        (TypeCode::OBJECT, "null", vec![]),
        (code(NODE), "null", vec![]),
        (
            code(NODE),
            r#"{"$id":0,"$type":"IDL:N:1.0","v":1,"next":{"$id":1,"$type":"IDL:N:1.0","v":2,"next":{"$ref":0}}}"#,
            vec![r#"{"$id":7,"next":{"v":2,"next":{"$ref":7}},"v":1}"#],
        ),
        (TypeCode::ANY, r#"{"$type":"null","value":null}"#, vec![r#"{"$type":"null"}"#]),
        (
            TypeCode::ANY,
            r#"{"$type":{"kind":"sequence","element":"long"},"value":[1,2]}"#,
            vec![r#"{"value":[1,2],"$type":{"element":"long","kind":"sequence","bound":0}}"#],
        ),
    ]
}

#[test]
fn each_type_is_written_and_read_by_its_row() {
    for (code, text, others) in rows() {
        let value = read(&code, text);
        assert_eq!(value.to_json().unwrap(), text, "{code}");
        for other in others {
            let same = read(&code, other);
            assert_eq!(same.to_json().unwrap(), text, "{code}: {other}");
        }
    }
}

#[test]
fn a_long_double_keeps_its_bits() {
    let value = read(&TypeCode::LONGDOUBLE, "\"0x3fff8000000000000000000000000001\"");
    assert_eq!(
        value.value,
        Value::LongDouble(LongDouble::from_bits(0x3fff_8000_0000_0000_0000_0000_0000_0001))
    );
}

#[test]
fn numbers_of_sequences_lie_side_by_side() {
    let value = read(&TypeCode::sequence(&TypeCode::SHORT, 0), "[1,2]");
    assert!(
        matches!(&value.value, Value::Items(items) if matches!(&**items, Items::Shorts(all) if all[..] == [1, 2]))
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let frames = code(
        r#"{"kind":"struct","id":"IDL:F:1.0","name":"F","members":[{"name":"payload","type":{"kind":"struct","id":"IDL:G:1.0","name":"G","members":[
            {"name":"frames","type":{"kind":"sequence","bound":4,"element":{"kind":"struct","id":"IDL:W:1.0","name":"W","members":[{"name":"width","type":"octet"}]}}}]}}]}"#,
    );
    let of = |inner: &str| format!(r#"{{"payload":{{"frames":[{inner}]}}}}"#);
    let good = r#"{"width":1}"#;
    for (json, text) in [
        (
            of(&format!(r#"{good},{good},{good},{{"width":256}}"#)),
            "payload.frames[3].width: the number is out of the range of its type",
        ),
        (of(r#"{"width":"x"}"#), "payload.frames[0].width: a string does not match type `octet`"),
        (of(r#"{"height":1}"#), "payload.frames[0]: there is no member `height`"),
        (of("{}"), "payload.frames[0]: the member `width` is missing"),
        (of(r#"{"width":1,"width":2}"#), "payload.frames[0]: the member `width` occurs twice"),
        (
            of(&[good; 5].join(",")),
            "payload.frames: index or length 5 is out of bounds: the actual or maximum length is 4",
        ),
        (of("7"), "payload.frames[0]: a number does not match type `struct W { octet width; }`"),
        (of(r#"{"width":1"#), "payload.frames[0]: expected `,` or `}` at line 1 column 33"),
        ("{}".to_owned(), "the member `payload` is missing"),
    ] {
        assert_eq!(error(&frames, &json), text, "{json}");
    }
    for (code, json, text) in [
        (code(CHOICE), r#"{"$case":"red","b":"x"}"#, "`$case` selects another member of the union"),
        (code(CHOICE), r#"{"$case":"red"}"#, "the member that `$case` selects is missing"),
        (code(CHOICE), r#"{"r":1}"#, "the member `$case` is missing"),
        (code(CHOICE), "{}", "the member `$case` is missing"),
        (code(COLOR), "\"pink\"", "there is no member `pink`"),
        (code(COLOR), "2", "the number is out of the range of its type"),
        (
            code("\"fixed<5,2>\""),
            "\"0.125\"",
            "the text is not a decimal number, or its type cannot hold all digits",
        ),
        (
            TypeCode::string(2),
            "\"abc\"",
            "index or length 3 is out of bounds: the actual or maximum length is 2",
        ),
        (TypeCode::string(0), r#""a\u0000""#, "a string contains a NUL character"),
        (TypeCode::array(&TypeCode::LONG, 2), "[1]", "the number of array elements is 1 instead of 2"),
        (
            TypeCode::array(&TypeCode::LONG, 2),
            "[1, 2, 3, 4]",
            "the number of array elements is 4 instead of 2",
        ),
        (TypeCode::array(&TypeCode::OCTET, 2), "\"AAAA\"", "the number of array elements is 3 instead of 2"),
        (TypeCode::sequence(&TypeCode::OCTET, 0), "\"AQI\"", "the text is not valid base64"),
        (TypeCode::FLOAT, "1e300", "the number is out of the range of its type"),
        (
            TypeCode::CHAR,
            "\"ab\"",
            "a string that is not one character up to U+00FF does not match type `char`",
        ),
        (
            TypeCode::OBJECT,
            "\"corbaloc::h/x\"",
            "the text is not an object reference that begins with `IOR:`: object reference, character 1: \"IOR:\" expected",
        ),
        (code(NODE), r#"{"$ref":3}"#, "`$ref` must name an `$id` that occurs before it"),
        (code(NODE), r#"{"v":1}"#, "the member `next` is missing"),
        (TypeCode::ANY, r#"{"value":1}"#, "the member `$type` is missing"),
        (
            TypeCode::ANY,
            r#"{"$type":"lng","value":1}"#,
            "`lng` is not a type: a named type must be an object with a `kind`",
        ),
        (
            TypeCode::ANY,
            r#"{"$type":"short","value":70000}"#,
            "value: the number is out of the range of its type",
        ),
        (TypeCode::LONG, "1 2", "trailing characters at line 1 column 3"),
    ] {
        assert_eq!(error(&code, json), text, "{code}: {json}");
    }
}

#[test]
fn deep_and_endless_types_and_values_are_refused() {
    let mut list = TypeCode::LONG;
    for _ in 0..30 {
        list = TypeCode::sequence(&list, 0);
    }
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Dynamic::from_json(&list, &nested(30)).is_ok());
    // A type that contains itself allows values of any depth.
    let tree = code(
        r#"{"kind":"struct","id":"IDL:T:1.0","name":"T","members":[{"name":"kids","type":{"kind":"sequence","element":{"$ref":"IDL:T:1.0"}}}]}"#,
    );
    let deep = |depth: usize| format!("{}{{\"kids\":[]}}{}", "{\"kids\":[".repeat(depth), "]}".repeat(depth));
    assert!(Dynamic::from_json(&tree, &deep(31)).is_ok());
    assert!(matches!(Dynamic::from_json(&tree, &deep(40)).unwrap_err().kind(), DynErrorKind::Limit(_)));
    let endless = [
        r#"{"kind":"alias","id":"IDL:A:1.0","name":"A","type":{"$ref":"IDL:A:1.0"}}"#,
        r#"{"kind":"alias","id":"IDL:A:1.0","name":"A","type":{"kind":"sequence","element":{"$ref":"IDL:A:1.0"}}}"#,
    ];
    for json in endless {
        assert_eq!(
            error(&TypeCode::TYPE_CODE, json),
            "the type `IDL:A:1.0` contains itself only through aliases, sequences or arrays"
        );
    }
    let wide = format!(
        r#"{{"kind":"struct","members":[{}]}}"#,
        vec![r#"{"name":"m","type":"string<1>"}"#; 5000].join(",")
    );
    assert_eq!(error(&TypeCode::TYPE_CODE, &wide), "m: a type must not contain more than 4096 types");
}

/// In a type code, a type without a name is repeated for each label of a member.
#[test]
fn a_member_with_several_labels_is_one_member() {
    let code = code(
        r#"{"kind":"union","id":"IDL:U:1.0","name":"U","discriminator":"long","members":[
        {"label":2,"name":"b","type":"string"},{"label":3,"name":"b","type":"string"},{"default":true,"name":"c","type":"double"}]}"#,
    );
    for case in [2, 3] {
        let text = format!(r#"{{"$case":{case},"b":"x"}}"#);
        assert_eq!(read(&code, &text).to_json().unwrap(), text);
        assert_eq!(read(&code, &format!(r#"{{"b":"x","$case":{case}}}"#)).to_json().unwrap(), text);
    }
    assert_eq!(error(&code, r#"{"b":"x"}"#), "the member `$case` is missing");
    let union = DynAny::from(read(&code, r#"{"$case":2,"b":"x"}"#)).as_union().unwrap();
    union.discriminator().insert_long(3).unwrap();
    assert_eq!(union.dynamic().unwrap().to_json().unwrap(), r#"{"$case":3,"b":"x"}"#);
}

#[test]
fn an_any_has_json_of_its_own() {
    let any = Any::new(vec!["a".to_owned()]).unwrap();
    let json = any.to_json().unwrap();
    assert_eq!(json, r#"{"$type":{"kind":"sequence","element":"string"},"value":["a"]}"#);
    assert_eq!(Any::from_json(&json).unwrap(), any);
}

fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("{\"$case\":\"red\",\"r\":1}".to_owned()),
        "[0-9-][0-9e.]{0,6}",
        "\"[A-Za-z0-9+/=:$]{0,9}\"",
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let name = prop_oneof![
            "[a-z]{1,2}",
            Just("$id".into()),
            Just("$ref".into()),
            Just("$type".into()),
            Just("value".into())
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(|all| format!("[{}]", all.join(","))),
            proptest::collection::vec((name, inner), 0..5).prop_map(|all| {
                let all: Vec<_> = all.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                format!("{{{}}}", all.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_text_does_harm(text in prop_oneof![any_json(), ".{0,40}"], at in 0_usize..35) {
        let all = rows();
        let code = &all[at % all.len()].0;
        if let Ok(value) = Dynamic::from_json(code, &text) {
            let written = value.to_json().unwrap();
            prop_assert_eq!(read(code, &written).to_json().unwrap(), written);
        }
        if let Ok(value) = Dynamic::from_json(&TypeCode::TYPE_CODE, &text) {
            let written = value.to_json().unwrap();
            prop_assert_eq!(read(&TypeCode::TYPE_CODE, &written).to_json().unwrap(), written);
        }
    }

    #[test]
    fn a_type_that_was_cut_or_changed_does_no_harm(at in 0_usize..4, cut in 0_usize..200, with in "[\"{}:,a-z0-9$]{0,3}") {
        let text = [POINT, COLOR, CHOICE, NODE][at];
        let cut = cut.min(text.len());
        let changed = format!("{}{with}{}", &text[..cut], &text[(cut + with.len()).min(text.len())..]);
        let _ = Dynamic::from_json(&TypeCode::TYPE_CODE, &changed);
    }
}

/// A writer that accepts a limited number of bytes.
struct Few(usize);

impl std::io::Write for Few {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::WriteZero)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_text_ends_where_its_writer_takes_no_more() {
    let any = Any::new(vec![70_000; 1000]).unwrap();
    let value = any.to_dynamic().unwrap();
    let text = value.to_json().unwrap();
    assert_eq!(any.byte_len(), 4004);
    value.write_json(&mut Few(text.len())).unwrap();
    let error = value.write_json(&mut Few(text.len() - 1)).unwrap_err();
    assert!(matches!(error.kind(), DynErrorKind::Limit(_)), "{error}");
}
