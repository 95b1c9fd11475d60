//! Type codes that a program creates: equal to those of the IDL, and rejected if no IDL could define them.

use crate::typecode_types::*;
use UnionLabel::{Case, Default};
use giop_codec::any::{Any, AnyError};
use giop_codec::cdr::{CdrEncode, Encoder};
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::typecode::{
    CreateError, TcKind, TypeCode, TypeDesc, TypeRef, TypeSet, Typed, UnionLabel, ValueModifier, Visibility,
};
use giop_codec::{ByteOrder, EncodeErrorKind, Version};

const ALL: &[&TypeDesc] = &[
    I,
    ABS,
    LOCAL,
    NATIVE,
    COMPONENT,
    HOME,
    COLOR,
    F52,
    ARR,
    UC,
    UB,
    U,
    COLOURED,
    BITS,
    WIDE,
    BOX_STR,
    BIN_STRUCT,
    BIN_WITHOUT,
    BAD,
    BASE,
    DERIVED,
    EVENT,
    LNODE,
    NODE,
    NODE_SEQ,
    EVEN,
    ODD,
    TWICE,
];

fn octets(code: &TypeCode) -> Vec<u8> {
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    code.encode(&mut e).unwrap();
    e.into_bytes().to_vec()
}

/// Creates the same type from its properties by the operations of the ORB interface.
fn made_again(code: &TypeCode, open: &mut Vec<String>) -> TypeCode {
    let kind = code.kind();
    if kind.is_basic() {
        return TypeCode::basic(kind).unwrap();
    }
    match kind {
        TcKind::String => return TypeCode::string(code.length().unwrap()),
        TcKind::WString => return TypeCode::wstring(code.length().unwrap()),
        TcKind::Fixed => {
            return TypeCode::create_fixed(code.fixed_digits().unwrap(), code.fixed_scale().unwrap())
                .unwrap();
        }
        TcKind::Sequence => {
            let element = made_again(&code.content_type().unwrap(), open);
            return TypeCode::create_sequence(&element, code.length().unwrap()).unwrap();
        }
        TcKind::Array => {
            let element = made_again(&code.content_type().unwrap(), open);
            return TypeCode::create_array(&element, code.length().unwrap()).unwrap();
        }
        _ => {}
    }
    let (id, name) = (code.id().unwrap(), code.name().unwrap());
    if !id.is_empty() && open.iter().any(|open| open == id) {
        return TypeCode::create_recursive(id).unwrap();
    }
    // An alias can be part of itself only through a type that has a name.
    if kind != TcKind::Alias {
        open.push(id.to_owned());
    }
    let count = code.member_count().unwrap_or(0);
    let names: Vec<String> = (0..count).map(|at| code.member_name(at).unwrap().to_owned()).collect();
    let types: Vec<TypeCode> =
        (0..count).filter_map(|at| Some(made_again(&code.member_type(at).ok()?, open))).collect();
    let members: Vec<(&str, &TypeCode)> = names.iter().map(|name| &**name).zip(&types).collect();
    let made = match kind {
        TcKind::ObjRef => TypeCode::create_interface(id, name),
        TcKind::AbstractInterface => TypeCode::create_abstract_interface(id, name),
        TcKind::LocalInterface => TypeCode::create_local_interface(id, name),
        TcKind::Component => TypeCode::create_component(id, name),
        TcKind::Home => TypeCode::create_home(id, name),
        TcKind::Native => TypeCode::create_native(id, name),
        TcKind::Struct => TypeCode::create_struct(id, name, &members),
        TcKind::Except => TypeCode::create_exception(id, name, &members),
        TcKind::Enum => {
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            TypeCode::create_enum(id, name, &names)
        }
        TcKind::Alias => TypeCode::create_alias(id, name, &made_again(&code.content_type().unwrap(), open)),
        TcKind::ValueBox => {
            TypeCode::create_value_box(id, name, &made_again(&code.content_type().unwrap(), open))
        }
        TcKind::Union => {
            let label = |at| code.member_discriminator(at).unwrap().map_or(Default, Case);
            let members: Vec<_> =
                members.iter().enumerate().map(|(at, (name, code))| (label(at), *name, *code)).collect();
            let discriminator = made_again(&code.discriminator_type().unwrap(), open);
            TypeCode::create_union(id, name, &discriminator, &members)
        }
        TcKind::Value | TcKind::Event => {
            let base = code.concrete_base_type().unwrap().map(|base| made_again(&base, open));
            let seen = |at| code.member_visibility(at).unwrap();
            let members: Vec<_> =
                members.iter().enumerate().map(|(at, (name, code))| (*name, *code, seen(at))).collect();
            let create = if kind == TcKind::Event { TypeCode::create_event } else { TypeCode::create_value };
            create(id, name, code.type_modifier().unwrap(), base.as_ref(), &members)
        }
        kind => unreachable!("{kind}"),
    };
    if kind != TcKind::Alias {
        open.pop();
    }
    made.unwrap()
}

#[test]
fn every_type_of_the_idl_can_be_made() {
    for desc in ALL {
        let code = TypeCode::of_desc(desc);
        let again = made_again(&code, &mut Vec::new());
        // Placeholders for types that enclose the type code must all be replaced.
        assert!(again.is_complete(), "{again}");
        assert_eq!(code, again);
        assert!(again.equivalent(&code));
    }
}

#[test]
fn what_is_one_type_in_a_type_code_stays_one_in_those_around_it() {
    let bin = TypeCode::of_desc(BIN_STRUCT);
    let node = TypeCode::of_desc(NODE);
    let nodes = TypeCode::sequence(&node, 0);
    let twice =
        TypeCode::create_struct("IDL:T/Twice:1.0", "Twice", &[("a", &bin), ("b", &bin), ("cs", &nodes)])
            .unwrap();
    assert_eq!(octets(&twice), octets(&TypeCode::of_desc(TWICE)));
    let again = made_again(&node, &mut Vec::new());
    assert_eq!(octets(&again), octets(&node));
}

#[test]
fn types_of_a_set_name_each_other_before_they_are_defined() {
    let mut set = TypeSet::new();
    let (even, odd) = (set.declare(), set.declare());
    let (odds, evens) = (set.sequence(odd, 0).unwrap(), set.sequence(even, 0).unwrap());
    let more = set.array(even, 2).unwrap();
    set.define_struct(even, "IDL:T/Even:1.0", "Even", &[("odds", odds)]).unwrap();
    assert_eq!(set.type_code(even), Err(CreateError::Incomplete));
    set.define_struct(odd, "IDL:T/Odd:1.0", "Odd", &[("evens", evens), ("more", more)]).unwrap();
    for (of, desc) in [(even, EVEN), (odd, ODD)] {
        let code = set.type_code(of).unwrap();
        assert_eq!(octets(&code), octets(&TypeCode::of_desc(desc)));
    }
    let again = set.define_enum(odd, "IDL:T/Odd:1.0", "Odd", &["one"]);
    assert_eq!(again, Err(CreateError::Redefined));
}

fn refused(made: Result<TypeCode, CreateError>, error: CreateError) {
    assert_eq!(made, Err(error));
}

/// A struct with one member of this name.
fn named(id: &str, name: &str, member: &str) -> Result<TypeCode, CreateError> {
    TypeCode::create_struct(id, name, &[(member, &TypeCode::LONG)])
}

fn exception(error: CreateError) -> (SystemExceptionKind, u32) {
    let exception = SystemException::from(error);
    assert_eq!(exception.completed, CompletionStatus::No);
    (exception.kind, exception.minor.0)
}

// clause: exc.minor.bad_param.15, exc.minor.bad_param.16, exc.minor.bad_param.17
#[test]
fn ids_and_names_are_those_of_idl() {
    for id in ["", "IDL:S:1.0", "RMI:java.lang.String:1", "x:y"] {
        assert!(named(id, "S", "a").is_ok(), "{id}");
    }
    let long = format!("IDL:{}:1.0", "a".repeat(1024));
    for id in ["S", ":S", "IDL:", "IDL:a b:1.0", "IDL:\u{e9}:1.0", &long] {
        refused(named(id, "S", "a"), CreateError::InvalidId);
    }
    for name in ["1", "_S", "a-b", "\u{e9}", "a\0"] {
        refused(named("IDL:S:1.0", name, "a"), CreateError::InvalidName);
        refused(named("IDL:S:1.0", "S", name), CreateError::InvalidMember(0));
    }
    assert!(named("IDL:S:1.0", "", "").is_ok());
    let long = &TypeCode::LONG;
    let twice = TypeCode::create_struct("", "", &[("a", long), ("", long), ("", long), ("A", long)]);
    refused(twice, CreateError::InvalidMember(3));
    refused(TypeCode::create_enum("", "", &["a", "b", "b"]), CreateError::InvalidMember(2));
    for made in [
        TypeCode::create_interface("", "I"),
        TypeCode::create_exception("", "X", &[]),
        TypeCode::create_value_box("", "B", long),
        TypeCode::create_native("", "N"),
        TypeCode::create_value("", "V", ValueModifier::None, None, &[]),
        TypeCode::create_recursive(""),
    ] {
        refused(made, CreateError::InvalidId);
    }
    use SystemExceptionKind::BadParam;
    assert_eq!(exception(CreateError::InvalidId), (BadParam, minor::BAD_PARAM_TYPECODE_ID.0));
    assert_eq!(exception(CreateError::InvalidName), (BadParam, minor::BAD_PARAM_TYPECODE_NAME.0));
    assert_eq!(exception(CreateError::InvalidMember(0)), (BadParam, minor::BAD_PARAM_MEMBER_NAME.0));
}

// clause: exc.minor.bad_param.18, exc.minor.bad_param.19, exc.minor.bad_param.20
#[test]
fn labels_are_values_of_a_discriminator_and_come_once() {
    let long = &TypeCode::LONG;
    let union = |discriminator: &TypeCode, labels: &[UnionLabel]| {
        let members: Vec<_> = labels.iter().map(|label| (*label, "", long)).collect();
        TypeCode::create_union("IDL:U:1.0", "U", discriminator, &members)
    };
    let colors = TypeCode::of_desc(COLOR);
    let alias = TypeCode::create_alias("IDL:Colors:1.0", "Colors", &colors).unwrap();
    for (discriminator, least, most) in [
        (TypeCode::BOOLEAN, 0, 1),
        (TypeCode::OCTET, 0, 255),
        (TypeCode::CHAR, 0, 255),
        (TypeCode::WCHAR, 0, 0xFFFF),
        (TypeCode::SHORT, -0x8000, 0x7FFF),
        (TypeCode::USHORT, 0, 0xFFFF),
        (TypeCode::LONG, i64::from(i32::MIN), i64::from(i32::MAX)),
        (TypeCode::ULONG, 0, i64::from(u32::MAX)),
        (colors, 0, 2),
        (alias, 0, 2),
    ] {
        assert!(union(&discriminator, &[Case(least), Default, Case(most)]).is_ok(), "{discriminator}");
        refused(union(&discriminator, &[Case(least), Case(most + 1)]), CreateError::LabelType(1));
        refused(union(&discriminator, &[Case(least - 1)]), CreateError::LabelType(0));
        refused(union(&discriminator, &[Case(least), Default, Case(least)]), CreateError::DuplicateLabel(2));
        refused(union(&discriminator, &[Default, Default]), CreateError::DuplicateLabel(1));
    }
    for discriminator in [TypeCode::LONGLONG, TypeCode::ULONGLONG] {
        assert!(union(&discriminator, &[Case(i64::MIN), Case(i64::MAX)]).is_ok());
    }
    for discriminator in [TypeCode::DOUBLE, TypeCode::STRING, TypeCode::ANY, TypeCode::of_desc(BIN_STRUCT)] {
        refused(union(&discriminator, &[]), CreateError::Discriminator);
    }
    refused(union(&TypeCode::create_recursive("IDL:U:1.0").unwrap(), &[]), CreateError::Incomplete);
    // Two labels of one member, and two members whose names differ only in case.
    let (case, other) = (TypeCode::SHORT, TypeCode::sequence(&TypeCode::SHORT, 0));
    let members = [(Case(1), "a", &other), (Case(2), "b", &case), (Case(3), "a", &other)];
    assert!(TypeCode::create_union("IDL:U:1.0", "U", long, &members).is_ok());
    let members = [(Case(1), "a", &other), (Case(2), "A", &case)];
    refused(TypeCode::create_union("IDL:U:1.0", "U", long, &members), CreateError::InvalidMember(1));
    use SystemExceptionKind::BadParam;
    assert_eq!(exception(CreateError::DuplicateLabel(0)), (BadParam, minor::BAD_PARAM_DUPLICATE_LABEL.0));
    assert_eq!(exception(CreateError::LabelType(0)), (BadParam, minor::BAD_PARAM_LABEL_TYPE.0));
    assert_eq!(exception(CreateError::Discriminator), (BadParam, minor::BAD_PARAM_DISCRIMINATOR.0));
}

// clause: exc.minor.bad_typecode.2
#[test]
fn members_are_of_types_that_have_values() {
    let bad = TypeCode::of_desc(BAD);
    let long = &TypeCode::LONG;
    for code in [&TypeCode::NULL, &TypeCode::VOID, &bad] {
        let made = TypeCode::create_struct("IDL:S:1.0", "S", &[("a", long), ("b", code)]);
        refused(made, CreateError::MemberType(1));
        let made = TypeCode::create_union("IDL:U:1.0", "U", long, &[(Case(1), "a", code)]);
        refused(made, CreateError::MemberType(0));
        let members = [("a", code, Visibility::Public)];
        let made = TypeCode::create_value("IDL:V:1.0", "V", ValueModifier::None, None, &members);
        refused(made, CreateError::MemberType(0));
        refused(TypeCode::create_alias("IDL:A:1.0", "A", code), CreateError::ContentType);
        refused(TypeCode::create_value_box("IDL:A:1.0", "A", code), CreateError::ContentType);
        refused(TypeCode::create_sequence(code, 0), CreateError::ContentType);
        refused(TypeCode::create_array(code, 3), CreateError::ContentType);
    }
    let none = ValueModifier::None;
    refused(TypeCode::create_value("IDL:V:1.0", "V", none, Some(long), &[]), CreateError::BaseType);
    for (digits, scale) in [(0, 0), (32, 0), (5, 6)] {
        refused(TypeCode::create_fixed(digits, scale), CreateError::Digits);
    }
    for error in [
        CreateError::MemberType(0),
        CreateError::ContentType,
        CreateError::BaseType,
        CreateError::InfiniteType,
    ] {
        let expected = (SystemExceptionKind::BadTypecode, minor::BAD_TYPECODE_MEMBER.0);
        assert_eq!(exception(error), expected);
    }
}

#[test]
fn types_contain_themselves_where_their_values_end() {
    let placeholder = TypeCode::create_recursive("IDL:S:1.0").unwrap();
    let of = |member: &TypeCode| TypeCode::create_struct("IDL:S:1.0", "S", &[("a", member)]);
    refused(of(&placeholder), CreateError::InfiniteType);
    refused(of(&TypeCode::array(&placeholder, 2)), CreateError::InfiniteType);
    let alias = TypeCode::create_alias("IDL:A:1.0", "A", &placeholder).unwrap();
    let inner = TypeCode::create_struct("IDL:Inner:1.0", "Inner", &[("b", &alias)]).unwrap();
    refused(of(&inner), CreateError::InfiniteType);
    let sequence = TypeCode::create_sequence(&alias, 3).unwrap();
    assert_eq!(of(&sequence).unwrap().to_string(), "struct S { sequence<A, 3> a; }");
    // A value is stored separately from its members.
    let members = [("next", &placeholder, Visibility::Public)];
    let value = TypeCode::create_value("IDL:S:1.0", "S", ValueModifier::None, None, &members).unwrap();
    assert_eq!(value.member_type(0), Ok(value.clone()));
    // The cycle contains no type with a name.
    let mut set = TypeSet::new();
    let alias = set.declare();
    let sequence = set.sequence(alias, 0).unwrap();
    set.define_alias(alias, "IDL:A:1.0", "A", sequence).unwrap();
    refused(set.type_code(alias), CreateError::InfiniteType);
    let itself = set.declare();
    set.define_alias(itself, "IDL:A:1.0", "A", itself).unwrap();
    refused(set.type_code(itself), CreateError::InfiniteType);
    let long = set.add(&TypeCode::LONG);
    let user = set.declare();
    assert_eq!(set.define_union(user, "", "", itself, &[(Default, "", long)]), Err(CreateError::Incomplete));
    set.define_struct(user, "IDL:B:1.0", "B", &[("a", itself)]).unwrap();
    refused(set.type_code(user), CreateError::InfiniteType);
}

// clause: exc.minor.bad_param.13, exc.minor.bad_typecode.1, exc.kind.bad_typecode
#[test]
fn what_is_not_made_yet_is_neither_sent_nor_needed_whole() {
    let placeholder = TypeCode::create_recursive("IDL:S:1.0").unwrap();
    assert_eq!((placeholder.kind(), placeholder.to_string()), (TcKind::Null, "IDL:S:1.0".to_owned()));
    assert_eq!(placeholder, TypeCode::create_recursive("IDL:S:1.0").unwrap());
    assert_ne!(placeholder, TypeCode::create_recursive("IDL:T:1.0").unwrap());
    let sequence = TypeCode::sequence(&placeholder, 0);
    let other = TypeCode::create_struct("IDL:T:1.0", "T", &[("s", &sequence)]).unwrap();
    for code in [&placeholder, &sequence, &other] {
        assert!(!code.is_complete());
        let error = code.encode(&mut Encoder::new(ByteOrder::Big, Version::V1_2)).unwrap_err();
        assert_eq!(error.kind, EncodeErrorKind::IncompleteTypeCode);
        let exception = SystemException::from(error);
        assert_eq!(exception.kind, SystemExceptionKind::BadTypecode);
        assert_eq!(exception.minor, minor::BAD_TYPECODE_INCOMPLETE);
    }
    let mut set = TypeSet::new();
    let (added, base): (TypeRef, TypeRef) = (set.add(&placeholder), set.declare());
    let value = set.declare();
    for base in [added, base] {
        let made =
            set.define_value(value, TcKind::Value, "IDL:V:1.0", "V", ValueModifier::None, Some(base), &[]);
        assert_eq!(made, Err(CreateError::Incomplete));
    }
    let raised = TypeCode::create_exception("IDL:X:1.0", "X", &[("s", &sequence)]);
    refused(raised, CreateError::Incomplete);
    let expected = (SystemExceptionKind::BadParam, minor::BAD_PARAM_INCOMPLETE_TYPECODE.0);
    assert_eq!(exception(CreateError::Incomplete), expected);
    // The type with this id replaces its placeholders at any depth.
    let whole = TypeCode::create_struct("IDL:S:1.0", "S", &[("ts", &TypeCode::sequence(&other, 0))]).unwrap();
    assert!(whole.is_complete());
    // A part without placeholders is complete, even if its type code has placeholders elsewhere.
    let parts = TypeCode::create_struct(
        "IDL:P:1.0",
        "P",
        &[("s", &sequence), ("b", &TypeCode::of_desc(BAD).member_type(0).unwrap())],
    );
    let parts = parts.unwrap();
    assert!(!parts.is_complete() && parts.member_type(1).unwrap().is_complete());
    // No value matches an incomplete type.
    let long =
        TypeCode::create_alias("IDL:L:1.0", "L", &TypeCode::create_recursive("IDL:M:1.0").unwrap()).unwrap();
    assert!(matches!(Any::with_type(&long, 5i32), Err(AnyError::TypeMismatch { .. })));
}

#[test]
fn a_set_takes_no_kind_that_is_not_what_it_says() {
    let mut set = TypeSet::new();
    let at = set.declare();
    assert_eq!(set.define_opaque(at, TcKind::Struct, "IDL:S:1.0", "S"), Err(CreateError::InvalidId));
    let made = set.define_value(at, TcKind::Struct, "IDL:S:1.0", "S", ValueModifier::None, None, &[]);
    assert_eq!(made, Err(CreateError::BaseType));
    set.define_opaque(at, TcKind::ObjRef, "IDL:I:1.0", "I").unwrap();
    let array = set.add(&<[u8; 4]>::type_code());
    assert_eq!(set.type_code(array), Ok(<[u8; 4]>::type_code()));
    assert_eq!(set.type_code(at), TypeCode::create_interface("IDL:I:1.0", "I"));
}
