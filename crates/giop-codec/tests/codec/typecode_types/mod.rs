//! IDL types with descriptions in the form of generated code.
#![allow(dead_code, reason = "each test uses some")]

use giop_codec::typecode::{Definition, Shape, TcKind, TypeDesc, Typed, ValueModifier, Visibility};

macro_rules! types {
    ($($name:ident $id:literal $short:literal = $shape:expr;)*) => {$(
        pub const $name: &TypeDesc = &TypeDesc::Defined(|| {
            static DEFINITION: Definition = Definition::new($id, $short, $shape);
            &DEFINITION
        });
    )*};
}

const LONG: &TypeDesc = <i32 as Typed>::DESC;
const STRING: &TypeDesc = <String as Typed>::DESC;
const DOUBLE: &TypeDesc = <f64 as Typed>::DESC;
const BIN: Shape = Shape::Struct(&[
    ("s", <i16 as Typed>::DESC),
    ("c", <giop_codec::cdr::Char as Typed>::DESC),
    ("l", LONG),
    ("o", <u8 as Typed>::DESC),
    ("d", DOUBLE),
]);

types! {
    I "IDL:T/I:1.0" "I" = Shape::Opaque(TcKind::ObjRef);
    ABS "IDL:T/Abs:1.0" "Abs" = Shape::Opaque(TcKind::AbstractInterface);
    LOCAL "IDL:T/L:1.0" "L" = Shape::Opaque(TcKind::LocalInterface);
    NATIVE "IDL:T/N:1.0" "N" = Shape::Opaque(TcKind::Native);
    COMPONENT "IDL:T/C:1.0" "C" = Shape::Opaque(TcKind::Component);
    HOME "IDL:T/H:1.0" "H" = Shape::Opaque(TcKind::Home);
    COLOR "IDL:T/Color:1.0" "Color" = Shape::Enum(&["red", "green", "blue"]);
    F52 "IDL:T/F52:1.0" "F52" = Shape::Alias(&TypeDesc::Fixed { digits: 5, scale: 2 });
    ARR "IDL:T/Arr:1.0" "Arr" = Shape::Alias(<[[i32; 3]; 2] as Typed>::DESC);
    UC "IDL:T/UC:1.0" "UC" = Shape::Union {
        discriminator: <giop_codec::cdr::Char as Typed>::DESC,
        default: Some(1),
        members: &[(b'a' as i64, "x", LONG), (0, "y", <u8 as Typed>::DESC)],
    };
    UB "IDL:T/UB:1.0" "UB" = Shape::Union {
        discriminator: <bool as Typed>::DESC,
        default: None,
        members: &[(1, "x", LONG)],
    };
    U "IDL:T/U:1.0" "U" = Shape::Union {
        discriminator: LONG,
        default: Some(3),
        members: &[(1, "a", <i16 as Typed>::DESC), (2, "b", STRING), (3, "b", STRING), (0, "c", DOUBLE)],
    };
    COLOURED "IDL:T/Coloured:1.0" "Coloured" = Shape::Union {
        discriminator: COLOR,
        default: None,
        members: &[(1, "x", &TypeDesc::Basic(TcKind::Any))],
    };
    BITS "IDL:T/Bits:1.0" "Bits" = Shape::Union {
        discriminator: <u64 as Typed>::DESC,
        default: Some(2),
        members: &[(-1, "x", LONG), (1 << 40, "y", LONG), (0, "z", LONG)],
    };
    WIDE "IDL:T/Wide:1.0" "Wide" = Shape::Union {
        discriminator: <giop_codec::cdr::WChar as Typed>::DESC,
        default: None,
        members: &[(0x20AC, "euro", LONG), (0xFFFF, "none", LONG)],
    };
    BOX_STR "IDL:T/BoxStr:1.0" "BoxStr" = Shape::ValueBox(STRING);
    BIN_STRUCT "IDL:T/BinStruct:1.0" "BinStruct" = BIN;
    BIN_OTHER "IDL:T/Other:1.0" "BinStruct" = BIN;
    BIN_WITHOUT "" "" = BIN;
    BAD "IDL:T/Bad:1.0" "Bad" = Shape::Except(&[("why", STRING), ("code", LONG)]);
    BASE "IDL:T/Base:1.0" "Base" = Shape::Value {
        kind: TcKind::Value,
        modifier: ValueModifier::None,
        base: None,
        members: &[("b", <i16 as Typed>::DESC, Visibility::Public)],
    };
    DERIVED "IDL:T/Derived:1.0" "Derived" = Shape::Value {
        kind: TcKind::Value,
        modifier: ValueModifier::Truncatable,
        base: Some(BASE),
        members: &[("d", LONG, Visibility::Private)],
    };
    EVENT "IDL:T/Ev:1.0" "Ev" = Shape::Value {
        kind: TcKind::Event,
        modifier: ValueModifier::Custom,
        base: None,
        members: &[],
    };
    LNODE "IDL:T/LNode:1.0" "LNode" = Shape::Value {
        kind: TcKind::Value,
        modifier: ValueModifier::None,
        base: None,
        members: &[("v", LONG, Visibility::Public), ("next", LNODE, Visibility::Public)],
    };
    NODE "IDL:T/Node:1.0" "Node" = Shape::Struct(&[("v", LONG), ("kids", NODE_SEQ)]);
    NODE_SEQ "IDL:T/NodeSeq:1.0" "NodeSeq" = Shape::Alias(<Vec<Node> as Typed>::DESC);
    EVEN "IDL:T/Even:1.0" "Even" = Shape::Struct(&[("odds", &TypeDesc::Sequence { element: ODD, bound: 0 })]);
    ODD "IDL:T/Odd:1.0" "Odd" = Shape::Struct(&[("evens", <Vec<Even> as Typed>::DESC), ("more", <[Even; 2] as Typed>::DESC)]);
    TWICE "IDL:T/Twice:1.0" "Twice" = Shape::Struct(&[("a", BIN_STRUCT), ("b", BIN_STRUCT), ("cs", <Vec<Node> as Typed>::DESC)]);
}

pub struct Node;

impl Typed for Node {
    const DESC: &'static TypeDesc = NODE;
}

pub struct Even;

impl Typed for Even {
    const DESC: &'static TypeDesc = EVEN;
}
