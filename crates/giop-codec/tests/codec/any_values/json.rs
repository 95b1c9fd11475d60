//! Graphs of values as JSON.

use giop_codec::dynamic::{DynErrorKind, Dynamic};

use super::*;

fn error(code: &TypeCode, json: &str) -> String {
    Dynamic::from_json(code, json).unwrap_err().to_string()
}

#[test]
fn graphs_are_json_and_come_back() {
    let anys = [
        Any::new(Some(ring())).unwrap(),
        Any::new(Some(tree())).unwrap(),
        Any::new(vec![Pair { left: Some(tree()), o: 7, right: None }, Pair::default()]).unwrap(),
        Any::new(some(BoxStr("x".into()))).unwrap(),
        Any::new(Some(Value::new(Derived { base: Base { b: 1 }, d: 2 }).upcast::<Base>())).unwrap(),
        Any::new(vec![Abs::Value(some(Base { b: 3 }).map(|value| value.upcast())), Abs::Value(None)])
            .unwrap(),
        Any::new(vec![Any::new(Some(ring())).unwrap(), Any::new(list(2)).unwrap()]).unwrap(),
    ];
    for any in anys {
        let tree = any.to_dynamic().unwrap();
        let json = tree.to_json().unwrap();
        assert_eq!(Dynamic::from_json(&tree.code, &json).unwrap(), tree, "{json}");
        assert_eq!(Any::from_json(&any.to_json().unwrap()).unwrap(), any);
    }
    let ring = Any::new(Some(ring())).unwrap().to_dynamic().unwrap();
    let id = r#""$type":"IDL:T/LNode:1.0""#;
    let json = format!(r#"{{"$id":0,{id},"v":1,"next":{{"$id":1,{id},"v":2,"next":{{"$ref":0}}}}}}"#);
    assert_eq!(ring.to_json().unwrap(), json);
    let value = Any::from_dynamic(&ring).unwrap().get::<Of<LNode>>().unwrap().unwrap();
    assert!(value.get().next.as_ref().unwrap().get().next.as_ref().unwrap().is_same(&value));
}

#[test]
fn long_lists_are_refused_both_ways() {
    let limit = |error: giop_codec::dynamic::DynError| {
        assert!(matches!(error.kind(), DynErrorKind::Limit(_)), "{error}")
    };
    let code = LNode::type_code();
    let fits = Any::new(list(64)).unwrap().to_dynamic().unwrap();
    assert_eq!(Dynamic::from_json(&code, &fits.to_json().unwrap()).unwrap(), fits);
    let long = Any::new(list(20_000)).unwrap();
    limit(long.to_dynamic().unwrap().to_json().unwrap_err());
    limit(long.to_json().unwrap_err());
    // Levels are counted through anys.
    let mut any = Any::new(list(40)).unwrap();
    for _ in 0..30 {
        any = Any::new(any).unwrap();
    }
    limit(any.to_json().unwrap_err());
    let text = format!("{}null{}", r#"{"v":1,"next":"#.repeat(65), "}".repeat(65));
    assert!(error(&code, &text).ends_with("limit exceeded: values are nested more than 64 levels deep"));
}

#[test]
fn what_refers_to_a_value_of_another_type_is_refused() {
    let code = Tree::type_code();
    let whole = |right: &str| {
        format!(
            r#"{{"$id":7,"name":"x","kids":[],"pairs":[{{"left":{{"$ref":7}},"o":1,"right":{right}}}],"any":{{"$ref":7}}}}"#
        )
    };
    let tree = Dynamic::from_json(&code, &whole("null")).unwrap();
    assert_eq!(tree.at("pairs[0].left.name").unwrap().1, "x".into());
    // While the value is incomplete, and after it is complete.
    assert!(
        error(&code, &whole(r#"{"$ref":7}"#))
            .starts_with("->0.pairs[0].right: a value of a value type does not match type")
    );
    let pairs = Vec::<Pair>::type_code();
    let after = format!(r#"[{{"left":{},"o":1,"right":{{"$ref":7}}}}]"#, whole("null"));
    assert!(error(&pairs, &after).starts_with("[0].right: the value that `$ref` names does not match type"));
    let json = r#"{"v":1,"next":{"$ref":3}}"#;
    assert_eq!(error(&LNode::type_code(), json), "next: `$ref` must name an `$id` that occurs before it");
    // Arguments of calls are read independently.
    let members = [("a", &code), ("n", &TypeCode::LONG), ("b", &code)];
    let both = format!(r#"{{"a":{0},"b":{0},"n":3}}"#, whole("null"));
    let read = Dynamic::members_from_json(&members, &Default::default(), &both).unwrap();
    assert!(read[0] == tree && read[1].value == 3.into() && read[2] == tree);
    let failed =
        |json: &str| Dynamic::members_from_json(&members, &Default::default(), json).unwrap_err().to_string();
    let early = format!(r#"{{"b":{}}}"#, whole(r#"{"$ref":7}"#));
    assert!(failed(&early).starts_with("b->0.pairs[0].right: a value of a value type does not match type"));
    assert_eq!(failed(r#"{"n":1}"#), "the member `a` is missing");
    assert_eq!(failed(r#"{"n":1,"n":2}"#), "the member `n` occurs twice");
    assert_eq!(failed(r#"{"m":1}"#), "there is no member `m`");
    let of_any_type = error(&ValueBase::type_code(), "{}");
    assert_eq!(of_any_type, "an abstract value type has no values");
}
