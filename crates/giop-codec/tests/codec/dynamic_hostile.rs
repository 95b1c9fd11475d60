//! Hostile types and values that try to use much memory or time: resource use is proportional to the data.

use allocation_counter::measure;
use bytes::Bytes;
use giop_codec::any::Any;
use giop_codec::cdr::{CdrDecode, CdrEncode, DecodeLimits, Decoder, Encoder};
use giop_codec::dynamic::program::Program;
use giop_codec::dynamic::{DynAny, DynErrorKind, Dynamic, Items, Value, ValueGraph, ValueNode};
use giop_codec::typecode::{TcKind, TypeCode, TypeSet, UnionLabel, ValueModifier, Visibility};
use giop_codec::{ByteOrder, DecodeErrorKind, Version};

fn octets(f: impl FnOnce(&mut Encoder)) -> Bytes {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    f(&mut e);
    e.into_bytes()
}

fn decoder(octets: &Bytes) -> Decoder<'_> {
    Decoder::from_bytes(octets, ByteOrder::NATIVE, Version::V1_2)
}

/// Returns the maximum memory in use, in bytes.
fn taken(f: impl FnOnce()) -> usize {
    measure(f).bytes_max as usize
}

/// Returns the memory that a decoder without limits was charged for, and the memory that it used.
fn charged<T>(octets: &Bytes, f: impl FnOnce(&mut Decoder<'_>) -> T) -> (usize, usize) {
    const ALL: usize = 1 << 40;
    let mut d = decoder(octets);
    d.set_limits(DecodeLimits { alloc: ALL, ..d.limits() });
    let mut kept = None;
    let took = taken(|| kept = Some(f(&mut d)));
    (ALL - d.limits().alloc, took)
}

/// Arrays of structs in structs. If their programs were unrolled, every element of every array would be a
/// field.
fn unrolled(name: usize) -> TypeCode {
    let mut set = TypeSet::new();
    let (octet, short) = (set.add(&TypeCode::OCTET), set.add(&TypeCode::SHORT));
    let pair = set.declare();
    set.define_struct(pair, "", &format!("N{name}"), &[("", octet), ("", short)]).unwrap();
    let array = set.array(pair, 31).unwrap();
    let mut inner = array;
    for _ in 0..24 {
        let next = set.declare();
        set.define_struct(
            next,
            "",
            "",
            &[("", inner), ("", array), ("", array)][..1 + 2 * usize::from(inner == array)],
        )
        .unwrap();
        inner = next;
    }
    let all = set.sequence(inner, 0).unwrap();
    set.type_code(all).unwrap()
}

#[test]
fn programs_are_as_large_as_their_types() {
    let message = octets(|e| {
        e.put_u32(200);
        for name in 0..200 {
            unrolled(name).encode(e).unwrap();
            e.put_u32(0);
        }
    });
    let (said, took) = charged(&message, |d| Vec::<Any>::decode(d).unwrap());
    assert!(took < 2 * said, "{took} of {said}");
    assert!(took < 64 * message.len(), "{took} for {}", message.len());
    // A lower limit is enforced.
    let mut d = decoder(&message);
    d.set_limits(DecodeLimits { alloc: said / 2, ..d.limits() });
    assert_eq!(Vec::<Any>::decode(&mut d).unwrap_err().kind, DecodeErrorKind::AllocLimit);
}

#[test]
fn small_anys_are_paid_for() {
    let message = octets(|e| vec![Any::new(7_u8).unwrap(); 10_000].encode(e).unwrap());
    let (said, took) = charged(&message, |d| Vec::<Any>::decode(d).unwrap());
    assert!(took < said + said / 2, "{took} of {said}");
}

/// Trees are larger than their encoding, and the decoder is charged for that.
#[test]
fn trees_are_paid_for() {
    let fixed = TypeCode::create_fixed(1, 0).unwrap();
    let empty = TypeCode::sequence(&TypeCode::OCTET, 0);
    let element = |code: &TypeCode| TypeCode::sequence(code, 0);
    for (code, one) in
        [(element(&fixed), &[0x1C][..]), (element(&empty), &[0; 4]), (element(&TypeCode::ANY), &[0; 4])]
    {
        let message = octets(|e| {
            e.put_u32(10_000);
            (0..10_000).for_each(|_| e.put_raw(one));
        });
        let (said, took) = charged(&message, |d| Program::of(&code).decode(d).unwrap());
        assert!(took < said + said / 2, "{code}: {took} of {said}");
    }
}

const LONG: usize = 1 << 20;

/// `struct S { octet <a very long name>; }`, and an enum with a very long enumerator.
fn long_names() -> [TypeCode; 2] {
    let name = "n".repeat(LONG);
    [
        TypeCode::create_struct("IDL:S:1.0", "S", &[(&name, &TypeCode::OCTET)]).unwrap(),
        TypeCode::create_enum("IDL:E:1.0", "E", &[&name]).unwrap(),
    ]
}

/// An any with `count` zero elements.
fn zeros(code: &TypeCode, count: usize) -> Any {
    let list = TypeCode::sequence(code, 0);
    let message = octets(|e| {
        list.encode(e).unwrap();
        e.put_len(count).unwrap();
        e.put_raw(&vec![0; 4 * count]);
    });
    Any::decode(&mut decoder(&message)).unwrap()
}

#[test]
fn a_text_for_people_ends() {
    for code in long_names() {
        let any = zeros(&code, 100);
        let text = any.to_string();
        // Each name is shown with 256 bytes and the number of the remaining ones.
        assert!(text.len() < 40_000 && text.contains("… and "), "{}", text.len());
    }
}

/// A chain of types whose member is of the previous type; nested to the depth of its length.
fn chain(length: usize, id: &str) -> TypeCode {
    let mut set = TypeSet::new();
    let mut all = vec![set.add(&TypeCode::OCTET)];
    for n in 0..length {
        let next = set.declare();
        let id = if id.is_empty() { String::new() } else { format!("IDL:{id}{n}:1.0") };
        set.define_struct(next, &id, "", &[("m", all[n])]).unwrap();
        all.push(next);
    }
    set.type_code(all[length]).unwrap()
}

/// A list of nodes, each of which refers to the previous one.
fn list(length: usize) -> Dynamic {
    let mut set = TypeSet::new();
    let node = set.declare();
    let long = set.add(&TypeCode::LONG);
    let members = [("v", long, Visibility::Public), ("next", node, Visibility::Public)];
    set.define_value(node, TcKind::Value, "IDL:N:1.0", "N", ValueModifier::None, None, &members).unwrap();
    let code = set.type_code(node).unwrap();
    let one = |at: u32| ValueNode {
        code: code.clone(),
        members: vec![Value::Long(at as i32), Value::Node(at.checked_sub(1))],
    };
    let nodes = (0..length as u32).map(one).collect();
    Dynamic { value: Value::Node(Some(length as u32 - 1)), graph: ValueGraph { nodes }, code: code.clone() }
}

/// A sequence of all nodes, in order.
fn all_nodes(list: Dynamic) -> Dynamic {
    let nodes = (0..list.graph.nodes.len() as u32).map(|node| Value::Node(Some(node)));
    let value = Value::Items(Box::new(Items::Values(nodes.collect())));
    Dynamic { code: TypeCode::sequence(&list.code, 0), value, ..list }
}

#[test]
fn a_long_list_takes_no_stack_and_no_square_of_memory() {
    const LENGTH: usize = 5000;
    let path = |of: &str| format!("{of}{}.v", ".next".repeat(LENGTH - 1));
    let mut all = all_nodes(list(LENGTH));
    assert_eq!(all.at(&path("[4999]")).unwrap().1, Value::Long(0));
    all.set(&path("[4999]"), Value::Long(7)).unwrap();
    assert_eq!(all.at("[0].v").unwrap().1, Value::Long(7));
    let error = all.set(&path("[4998]"), Value::Long(7)).unwrap_err();
    assert_eq!(error.path().steps().len(), LENGTH);

    let walked = DynAny::from(list(LENGTH));
    let mut at = walked.clone();
    for _ in 1..1000 {
        assert!(at.next().unwrap());
        at = at.current_component().unwrap().unwrap();
    }
    at.insert_long(-1).unwrap();
    assert_eq!(at.get_long(), Ok(-1));
    // All previous elements are reachable from each element.
    let error = DynAny::from(all).as_sequence().unwrap().elements().unwrap_err();
    assert!(matches!(error.kind(), DynErrorKind::Limit(_)), "{error}");
}

#[test]
fn what_nothing_leads_to_is_dropped() {
    let whole = DynAny::from(list(100));
    for _ in 0..100 {
        let members = whole.as_value().unwrap().members().unwrap();
        whole.as_value().unwrap().set_members(members).unwrap();
        let value = whole.as_value().unwrap();
        value.set_to_null().unwrap();
        value.set_to_value().unwrap();
        whole.assign(&DynAny::from(list(100))).unwrap();
    }
    let now = whole.dynamic().unwrap();
    assert_eq!(now, list(100));
    now.check().unwrap();
    // A value that is its own member gets a copy at each place where it is inserted.
    let ring = {
        let mut ring = list(2);
        ring.graph.nodes[0].members[1] = Value::Node(Some(1));
        DynAny::from(ring)
    };
    let grown = (0..40).try_for_each(|_| {
        let members = ring.as_value()?.members()?;
        ring.as_value()?.set_members(members)
    });
    assert!(ring.dynamic().unwrap().graph.nodes.len() < 1000, "{grown:?}");
}

#[test]
fn a_sequence_that_grows_stays_within_memory() {
    let large = TypeCode::array(&TypeCode::OCTET, 60 << 20);
    let list = DynAny::of_type(&TypeCode::sequence(&large, 0)).unwrap();
    let error = list.as_sequence().unwrap().set_length(1000).unwrap_err();
    assert!(matches!(error.kind(), DynErrorKind::Limit(_)), "{error}");
    list.as_sequence().unwrap().set_length(1).unwrap();
}

#[test]
fn types_are_compared_without_a_square_of_memory() {
    // Every type has members of every type, in an order of its own.
    let web = |turn: usize| {
        const TYPES: usize = 120;
        let mut set = TypeSet::new();
        let all: Vec<_> = (0..TYPES).map(|_| set.declare()).collect();
        let lists: Vec<_> = all.iter().map(|one| set.sequence(*one, 0).unwrap()).collect();
        for (n, one) in all.iter().enumerate() {
            let members: Vec<_> = (0..TYPES).map(|m| ("", lists[(m * (n + turn) + n) % TYPES])).collect();
            set.define_struct(*one, "", "", &members).unwrap();
        }
        set.type_code(all[0]).unwrap()
    };
    let (one, other) = (web(1), web(7));
    let took = taken(|| assert!(one.equivalent(&other)));
    assert!(took < 4 << 20, "{took}");
}

#[cfg(feature = "serde")]
mod json {
    use super::*;

    #[test]
    fn names_are_not_written_for_ever() {
        for code in long_names() {
            let any = zeros(&code, 10);
            assert!(any.to_json().unwrap().len() > 10 * LONG);
            let any = zeros(&code, 1000);
            let took = taken(|| {
                let error = any.to_json().unwrap_err();
                assert!(matches!(error.kind(), DynErrorKind::Limit(_)), "{error}");
            });
            assert!(took < 64 * LONG, "{took}");
        }
        // A type without an id is written at each use.
        let nameless = TypeCode::create_enum("", "", &["n".repeat(LONG).as_str()]).unwrap();
        let mut set = TypeSet::new();
        let one = set.add(&nameless);
        let all = set.declare();
        set.define_struct(all, "", "", &vec![("", one); 1000]).unwrap();
        let any = Any::new(set.type_code(all).unwrap()).unwrap();
        let took = taken(|| drop(any.to_json().unwrap_err()));
        assert!(took < 64 * LONG, "{took}");
    }

    #[test]
    fn types_that_are_nested_too_deep_have_no_text() {
        for id in ["", "T"] {
            let any = Any::new(chain(30, id)).unwrap();
            assert_eq!(Any::from_json(&any.to_json().unwrap()), Ok(any));
            let any = Dynamic {
                code: TypeCode::TYPE_CODE,
                value: Value::TypeCode(Box::new(chain(3000, id))),
                graph: ValueGraph::default(),
            };
            assert!(any.to_json().unwrap_err().to_string().contains("more than 32 levels"));
        }
    }

    /// A linear search for each name would take minutes.
    #[test]
    fn many_names_are_found_soon() {
        const MANY: usize = 20_000;
        let names: Vec<String> = (0..MANY).map(|n| format!("name_{n:06}")).collect();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let read = |code: &TypeCode, element: &str| {
            let text = format!("[{}]", vec![element; MANY].join(","));
            let value = Dynamic::from_json(&TypeCode::sequence(code, 0), &text).unwrap();
            assert_eq!(value.to_json().unwrap(), text);
        };
        let last = names[MANY - 1];
        let code = TypeCode::create_enum("IDL:E:1.0", "E", &names).unwrap();
        read(&code, &format!("{last:?}"));
        let mut cases = Vec::new();
        for (n, name) in names.iter().enumerate() {
            cases.push((UnionLabel::Case(n as i64), *name, &TypeCode::OCTET));
        }
        let code = TypeCode::create_union("IDL:U:1.0", "U", &TypeCode::LONG, &cases).unwrap();
        read(&code, &format!("{{\"$case\":{},{last:?}:1}}", MANY - 1));
        let text = format!("[{}]", vec![format!("{{{last:?}:1}}"); MANY].join(","));
        Dynamic::from_json(&TypeCode::sequence(&code, 0), &text).unwrap();
        // In reverse order.
        let members: Vec<(&str, &TypeCode)> = names.iter().map(|name| (*name, &TypeCode::OCTET)).collect();
        let code = TypeCode::create_struct("IDL:S:1.0", "S", &members).unwrap();
        let members: Vec<String> = names.iter().rev().map(|name| format!("{name:?}:1")).collect();
        Dynamic::from_json(&code, &format!("{{{}}}", members.join(","))).unwrap();
    }

    #[test]
    fn a_graph_is_written_node_by_node() {
        let text = all_nodes(list(50_000)).to_json().unwrap();
        assert_eq!(text.matches("$ref").count(), 49_999);
        let error = list(1000).to_json().unwrap_err();
        assert!(matches!(error.kind(), DynErrorKind::Limit(_)));
        assert!(error.to_string().starts_with("next.next."), "{error}");
    }
}
