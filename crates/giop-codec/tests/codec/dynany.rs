//! Values of types that are known at run time: their parts, and the standard's traversal of them.

use giop_codec::any::Any;
use giop_codec::cdr::Char;
use giop_codec::dynamic::{DynAny, DynErrorKind, Dynamic, Items, Value};
use giop_codec::ior::Ior;
use giop_codec::typecode::{Definition, Shape, TcKind, TypeCode, TypeDesc, ValueModifier, Visibility};

macro_rules! defined {
    ($name:ident, $id:literal, $shape:expr) => {
        const $name: &TypeDesc = &TypeDesc::Defined(|| {
            static DEFINITION: Definition = Definition::new(concat!("IDL:", $id, ":1.0"), $id, $shape);
            &DEFINITION
        });
    };
}

const LONGS: &TypeDesc = &TypeDesc::Sequence { element: TypeDesc::LONG, bound: 3 };
const TEXT: &TypeDesc = &TypeDesc::String { bound: 0 };
defined!(COLOR, "Color", Shape::Enum(&["red", "green", "blue"]));
defined!(POINT, "Point", Shape::Struct(&[("x", TypeDesc::SHORT), ("y", TypeDesc::DOUBLE)]));
const POINTS: &TypeDesc = &TypeDesc::Sequence { element: POINT, bound: 0 };
defined!(
    CHOICE,
    "Choice",
    Shape::Union {
        discriminator: TypeDesc::SHORT,
        default: Some(3),
        members: &[(1, "n", TypeDesc::LONG), (2, "n", TypeDesc::LONG), (3, "p", POINT), (0, "other", TEXT)]
    }
);
defined!(
    MAYBE,
    "Maybe",
    Shape::Union { discriminator: COLOR, default: None, members: &[(0, "n", TypeDesc::LONG)] }
);
defined!(
    ALL,
    "All",
    Shape::Struct(&[
        ("flag", TypeDesc::BOOLEAN),
        ("color", COLOR),
        ("points", POINTS),
        ("choice", CHOICE),
        ("money", &TypeDesc::Fixed { digits: 5, scale: 2 }),
        ("grid", &TypeDesc::Array { element: TypeDesc::SHORT, length: 2 }),
        ("longs", LONGS),
        ("any", TypeDesc::ANY),
    ])
);
defined!(OOPS, "Oops", Shape::Except(&[]));
defined!(
    NODE,
    "Node",
    Shape::Value {
        kind: TcKind::Value,
        modifier: ValueModifier::None,
        base: None,
        members: &[("v", TypeDesc::LONG, Visibility::Public), ("next", NODE, Visibility::Private)]
    }
);
defined!(BOX, "Boxed", Shape::ValueBox(TEXT));
defined!(LOCAL, "Local", Shape::Opaque(TcKind::LocalInterface));

fn code(desc: &'static TypeDesc) -> TypeCode {
    TypeCode::of_desc(desc)
}

fn of(desc: &'static TypeDesc) -> DynAny {
    DynAny::of_type(&code(desc)).unwrap()
}

#[test]
fn a_value_begins_as_the_standard_has_it() {
    let all = Dynamic::default_of(&code(ALL)).unwrap();
    all.check().unwrap();
    let at = |path| all.at(path).unwrap().1;
    assert_eq!(at("flag"), false.into());
    assert_eq!(at("color"), Value::Enum(0));
    assert_eq!(at("points"), Value::Items(Box::new(Items::Values(Vec::new()))));
    assert_eq!(at("choice.n"), 0_i32.into());
    assert_eq!(at("grid[1]"), 0_i16.into());
    assert_eq!(at("any"), Any::default().into());
    let inconsistent = |desc| match Dynamic::default_of(&code(desc)).unwrap_err().kind() {
        DynErrorKind::Inconsistent(_) => {}
        other => panic!("{other:?}"),
    };
    inconsistent(LOCAL);
    inconsistent(&TypeDesc::Basic(TcKind::Principal));
    inconsistent(&TypeDesc::Array { element: LOCAL, length: 3 });
    assert_eq!(Dynamic::default_of(&TypeCode::OBJECT).unwrap().value, Value::Object(Box::new(Ior::nil())));
}

#[test]
fn arrays_of_arrays_do_not_take_all_memory() {
    let mut code = TypeCode::LONG;
    for _ in 0..6 {
        code = TypeCode::array(&code, 1000);
    }
    assert!(matches!(Dynamic::default_of(&code).unwrap_err().kind(), DynErrorKind::Limit(_)));
    let octets = TypeCode::array(&TypeCode::OCTET, 1 << 20);
    assert!(Dynamic::default_of(&octets).is_ok());
}

#[test]
fn parts_are_found_and_set_by_their_paths() {
    let mut all = Dynamic::default_of(&code(ALL)).unwrap();
    let points = Items::Values(vec![Value::Struct([1_i16.into(), 0.5.into()].into())]);
    all.set("points", Value::Items(Box::new(points))).unwrap();
    all.set("points[0].y", 2.5).unwrap();
    all.set("choice.p.x", 9_i16).unwrap();
    all.set("grid[1]", 4_i16).unwrap();
    assert_eq!(all.at("points[0].y").unwrap(), (TypeCode::DOUBLE, 2.5.into()));
    assert_eq!(all.at("choice.p.x").unwrap().1, 9_i16.into());
    all.set("choice.other", "text").unwrap();
    assert_eq!(all.at("choice.other").unwrap().1, "text".into());
    all.check().unwrap();

    let before = all.clone();
    let error = |path: &str, value: Value| {
        let mut changed = all.clone();
        let error = changed.set(path, value).unwrap_err().to_string();
        assert_eq!(changed, before, "{path}");
        error
    };
    assert_eq!(error("points[0].z", 1.into()), "points[0]: there is no member `z`");
    assert_eq!(
        error("points[1].y", 1.into()),
        "points: index or length 1 is out of bounds: the actual or maximum length is 1"
    );
    assert_eq!(error("points[0].y", "x".into()), "points[0].y: a string does not match type `double`");
    assert_eq!(error("choice.p.x", "x".into()), "choice.p.x: a string does not match type `short`");
    assert_eq!(
        error("color", Value::Enum(3)),
        "color: index or length 3 is out of bounds: the actual or maximum length is 3"
    );
    assert!(error("points[", 1.into()).ends_with("is not a path: a `]` is missing"));
    assert!(error("points[x]", 1.into()).ends_with("an index is not a number"));
    assert!(error("points..x", 1.into()).ends_with("a name is missing"));
    assert_eq!(
        all.at("choice.n").unwrap_err().to_string(),
        "choice: another member of the union is selected"
    );
    assert_eq!(all.at("points[0].x.y").unwrap_err().to_string(), "points[0].x: there is no member `y`");
}

#[test]
fn a_tree_that_is_no_value_of_its_type_is_told_from_one_that_is() {
    let wrong = |desc: &'static TypeDesc, value: Value, text: &str| {
        let dynamic = Dynamic { code: code(desc), value, graph: Default::default() };
        assert_eq!(dynamic.check().unwrap_err().to_string(), text);
    };
    let items = |items| Value::Items(Box::new(items));
    wrong(
        LONGS,
        items(Items::Longs(vec![1; 4].into())),
        "index or length 4 is out of bounds: the actual or maximum length is 3",
    );
    wrong(
        LONGS,
        items(Items::Shorts(vec![1].into())),
        "a sequence or array does not match type `sequence<long, 3>`",
    );
    wrong(LONGS, items(Items::Values(vec![1_i16.into()])), "[0]: a short does not match type `long`");
    wrong(TEXT, "a\0".into(), "a string contains a NUL character");
    wrong(
        POINT,
        Value::Struct([1_i16.into()].into()),
        "a struct does not match type `struct Point { short x; double y; }`",
    );
    wrong(
        NODE,
        Value::Node(Some(0)),
        "index or length 0 is out of bounds: the actual or maximum length is 0",
    );
    let good =
        Dynamic { code: code(LONGS), value: items(Items::Values(vec![1.into()])), graph: Default::default() };
    good.check().unwrap();
}

#[test]
fn a_struct_is_walked_through() {
    let all = of(ALL);
    assert_eq!(all.component_count().unwrap(), 8);
    let view = all.as_struct().unwrap();
    assert_eq!(&*view.current_member_name().unwrap(), "flag");
    assert_eq!(view.current_member_kind().unwrap(), TcKind::Boolean);
    all.insert_boolean(true).unwrap();
    assert!(all.get_boolean().unwrap());
    assert!(matches!(all.get_long().unwrap_err().kind(), DynErrorKind::TypeMismatch { .. }));
    assert!(all.next().unwrap());
    let color = all.current_component().unwrap().unwrap().as_enum().unwrap();
    color.set_name("blue").unwrap();
    assert_eq!((color.ordinal().unwrap(), &*color.name().unwrap()), (2, "blue"));
    assert!(color.set_name("pink").is_err() && color.set_ordinal(3).is_err());
    assert!(color.current_component().is_err());
    assert!(all.seek(7).unwrap());
    assert!(!all.next().unwrap(), "behind the last");
    assert!(all.current_component().unwrap().is_none());
    assert!(matches!(all.get_boolean().unwrap_err().kind(), DynErrorKind::InvalidValue(_)));
    assert!(all.next().unwrap(), "from -1 to the first");
    assert!(!all.seek(8).unwrap());
    assert!(!all.seek(-1).unwrap());
    all.rewind().unwrap();
    assert!(all.get_boolean().unwrap());
    assert_eq!(all.dynamic().unwrap().at("color").unwrap().1, Value::Enum(2));

    // An exception without members has no components, and its position is -1.
    let oops = of(OOPS);
    assert_eq!(oops.component_count().unwrap(), 0);
    assert!(matches!(oops.current_component().unwrap_err().kind(), DynErrorKind::TypeMismatch { .. }));
    // A value without components is its own target.
    let one = DynAny::of_type(&TypeCode::CHAR).unwrap();
    one.insert_char(Char(b'x')).unwrap();
    assert_eq!(one.get_char().unwrap(), Char(b'x'));
    assert!(one.current_component().is_err() && one.as_struct().is_err());
}

#[test]
fn all_members_are_taken_and_set_together() {
    let point = of(POINT).as_struct().unwrap();
    let mut members = point.members().unwrap();
    members[0].1.value = 7_i16.into();
    members[1].0 = "".into();
    point.set_members(members.clone()).unwrap();
    assert_eq!(point.get_short().unwrap(), 7);
    members[0].1.value = 8_i16.into();
    members[1].1 = Dynamic::default_of(&TypeCode::LONG).unwrap();
    assert!(point.set_members(members.clone()).is_err());
    assert_eq!(point.get_short().unwrap(), 7, "nothing is set");
    members[0].0 = "z".into();
    assert!(matches!(point.set_members(members).unwrap_err().kind(), DynErrorKind::NoSuchMember(_)));
    assert!(matches!(point.set_members(Vec::new()).unwrap_err().kind(), DynErrorKind::Bounds { .. }));
}

#[test]
fn a_union_has_two_components() {
    let union = of(CHOICE).as_union().unwrap();
    assert_eq!(union.component_count().unwrap(), 2);
    assert_eq!(union.discriminator().get_short().unwrap(), 1);
    assert_eq!((&*union.member_name().unwrap(), union.member_kind().unwrap()), ("n", TcKind::Long));
    assert_eq!(union.discriminator_kind().unwrap(), TcKind::Short);
    union.member().unwrap().insert_long(5).unwrap();
    // Another label of the same member keeps the member.
    union.discriminator().insert_short(2).unwrap();
    assert_eq!(union.member().unwrap().get_long().unwrap(), 5);
    union.discriminator().insert_short(3).unwrap();
    assert_eq!(&*union.member_name().unwrap(), "p");
    union.set_to_default_member().unwrap();
    assert_eq!((&*union.member_name().unwrap(), union.discriminator().get_short().unwrap()), ("other", 0));
    union.insert_string("x".into()).unwrap();
    assert!(union.set_to_no_active_member().is_err());

    let maybe = of(MAYBE).as_union().unwrap();
    let member = maybe.member().unwrap();
    member.insert_long(1).unwrap();
    assert!(maybe.set_to_default_member().is_err());
    maybe.set_to_no_active_member().unwrap();
    assert!(maybe.has_no_active_member().unwrap() && maybe.component_count().unwrap() == 1);
    assert!(
        matches!(member.get_long().unwrap_err().kind(), DynErrorKind::InvalidValue(_)),
        "no part any more"
    );
    assert_eq!(maybe.discriminator().as_enum().unwrap().ordinal().unwrap(), 1);
    assert!(maybe.member().is_err());
    let red = of(COLOR);
    maybe.set_discriminator(&red).unwrap();
    assert_eq!(maybe.get_long().unwrap(), 0);
    assert!(maybe.set_discriminator(&DynAny::of_type(&TypeCode::SHORT).unwrap()).is_err());
}

#[test]
fn a_sequence_grows_and_is_cut() {
    let longs = of(LONGS).as_sequence().unwrap();
    assert_eq!(longs.length().unwrap(), 0);
    assert!(longs.current_component().unwrap().is_none());
    longs.set_length(2).unwrap();
    assert_eq!(longs.get_long().unwrap(), 0, "at the first that is new");
    assert!(longs.next().unwrap());
    longs.insert_long(9).unwrap();
    let second = longs.current_component().unwrap().unwrap();
    longs.set_length(1).unwrap();
    assert!(longs.current_component().unwrap().is_none() && second.get_long().is_err());
    longs.set_length(3).unwrap();
    assert_eq!(second.get_long().unwrap(), 0);
    assert!(matches!(longs.set_length(4).unwrap_err().kind(), DynErrorKind::Bounds { index: 4, len: 3 }));
    longs.insert_long_seq(vec![1, 2]).unwrap();
    assert_eq!(longs.get_long_seq().unwrap(), [1, 2]);
    assert!(longs.insert_short_seq(vec![1]).is_err() && longs.get_octet_seq().is_err());
    let mut elements = longs.elements().unwrap();
    elements.reverse();
    longs.set_elements(elements.clone()).unwrap();
    assert_eq!(longs.get_long_seq().unwrap(), [2, 1]);
    elements.push(Dynamic::default_of(&TypeCode::SHORT).unwrap());
    assert!(longs.set_elements(elements).is_err());
    assert_eq!(longs.get_long_seq().unwrap(), [2, 1], "nothing is set");

    let points = of(POINTS).as_sequence().unwrap();
    points.set_length(2).unwrap();
    let first = points.current_component().unwrap().unwrap();
    first.next().unwrap();
    first.insert_double(1.5).unwrap();
    assert_eq!(points.dynamic().unwrap().at("[0].y").unwrap().1, 1.5.into());
    // Each component has its own position, which is unchanged.
    assert_eq!(points.current_component().unwrap().unwrap().get_double().unwrap(), 1.5);

    let grid = DynAny::of_type(&TypeCode::array(&TypeCode::SHORT, 2)).unwrap().as_sequence().unwrap();
    assert!(grid.set_length(3).is_err() && grid.set_length(2).is_ok());
    assert!(points.set_length(usize::MAX).is_err());
}

#[test]
fn a_fixed_is_a_text() {
    let money = DynAny::of_type(&code(&TypeDesc::Fixed { digits: 5, scale: 2 })).unwrap().as_fixed().unwrap();
    assert_eq!(money.value().unwrap(), "0.00");
    assert!(money.set_value("-12.5d").unwrap());
    assert_eq!(money.value().unwrap(), "-12.50");
    assert!(!money.set_value("1.239").unwrap(), "cut off");
    assert_eq!(money.value().unwrap(), "1.23");
    assert!(matches!(money.set_value("12a").unwrap_err().kind(), DynErrorKind::Syntax(_)));
    assert!(matches!(money.set_value("1000").unwrap_err().kind(), DynErrorKind::InvalidValue(_)));
    assert_eq!(money.value().unwrap(), "1.23");
}

#[test]
fn values_are_null_or_have_a_state() {
    let node = of(NODE).as_value().unwrap();
    assert!(node.is_null().unwrap() && node.component_count().unwrap() == 0);
    assert!(node.members().is_err());
    node.set_to_value().unwrap();
    assert_eq!(&*node.current_member_name().unwrap(), "v");
    node.insert_long(1).unwrap();
    node.next().unwrap();
    assert_eq!(node.current_member_kind().unwrap(), TcKind::Value);
    let next = node.current_component().unwrap().unwrap().as_value().unwrap();
    next.set_to_value().unwrap();
    next.insert_long(2).unwrap();
    assert_eq!(node.dynamic().unwrap().at("next.v").unwrap().1, 2.into());
    node.dynamic().unwrap().check().unwrap();
    // A copy is independent of the original.
    let other = node.copy().unwrap();
    next.insert_long(3).unwrap();
    assert_eq!(other.dynamic().unwrap().at("next.v").unwrap().1, 2.into());
    next.assign(&other).unwrap();
    assert_eq!(node.dynamic().unwrap().at("next.next.v").unwrap().1, 2.into());
    node.set_to_null().unwrap();
    assert!(next.is_null().is_err());

    let boxed = of(BOX).as_value().unwrap();
    boxed
        .set_members(vec![(
            "".into(),
            Dynamic { value: "x".into(), ..Dynamic::default_of(&TypeCode::string(0)).unwrap() },
        )])
        .unwrap();
    assert_eq!(boxed.component_count().unwrap(), 1);
    assert_eq!(boxed.get_string().unwrap(), "x");
}

#[test]
fn values_of_equivalent_types_are_assigned_and_compared() {
    let (one, other) = (of(POINT), of(POINT));
    one.insert_short(3).unwrap();
    assert!(!one.equal(&other).unwrap());
    other.next().unwrap();
    other.assign(&one).unwrap();
    assert_eq!(other.get_short().unwrap(), 3, "at the first component again");
    assert!(one.equal(&other).unwrap());
    assert!(one.assign(&of(LONGS)).is_err() && !one.equal(&of(LONGS)).unwrap());
}

#[test]
fn anys_go_in_and_out() {
    let any = Any::new(vec![1_i32, 2]).unwrap();
    let list = DynAny::from_any(&any).unwrap();
    list.insert_long(5).unwrap();
    assert_eq!(list.to_any().unwrap().get::<Vec<i32>>().unwrap(), [5, 2]);
    list.assign_any(&any).unwrap();
    assert_eq!(list.to_any().unwrap(), any);
    let holder = DynAny::of_type(&TypeCode::ANY).unwrap();
    holder.insert_dyn_any(&list).unwrap();
    assert!(holder.get_dyn_any().unwrap().equal(&list).unwrap());
}
