//! Value types in the form of generated code.
#![allow(dead_code, unreachable_pub)] // each test uses some

use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder, Seq};
use giop_codec::typecode::{
    Definition, Shape, TcKind, TypeDesc, Typed, ValueMemberDesc, ValueModifier, Visibility,
};
use giop_codec::value::{
    Casts, CustomMarshal, Extends, Factories, Flow, Progress, Value, ValueBase, ValueForm, ValuePart,
    ValueType,
};
use giop_codec::{ByteOrder, DecodeError, EncodeError, Version};

/// Implements the descriptions of types.
macro_rules! typed {
    ($($name:ty, $id:literal $short:literal = $shape:expr;)*) => {$(
        impl Typed for $name {
            const DESC: &'static TypeDesc = &TypeDesc::Defined(|| {
                static DEFINITION: Definition = Definition::new($id, $short, $shape);
                &DEFINITION
            });
        }
    )*};
}

const fn class(
    modifier: ValueModifier,
    base: Option<&'static TypeDesc>,
    members: &'static [ValueMemberDesc],
) -> Shape {
    Shape::Value { kind: TcKind::Value, modifier, base, members }
}

const fn of<T: Typed>(name: &'static str) -> ValueMemberDesc {
    (name, T::DESC, Visibility::Public)
}

type Of<V> = Option<Value<V>>;

typed! {
    Base, "IDL:T/Base:1.0" "Base" = class(ValueModifier::None, None, &[of::<i16>("b")]);
    Derived, "IDL:T/Derived:1.0" "Derived" = class(ValueModifier::Truncatable, Some(Base::DESC), &[of::<i32>("d")]);
    Vb2, "IDL:T/VB2:1.0" "VB2" = class(ValueModifier::None, Some(Base::DESC), &[of::<i32>("d")]);
    LNode, "IDL:T/LNode:1.0" "LNode" = class(ValueModifier::None, None, &[of::<i32>("v"), of::<Of<LNode>>("next")]);
    Hdr, "IDL:T/Hdr:1.0" "Hdr" = class(ValueModifier::None, None, &[of::<i32>("h")]);
    Tp, "IDL:T/TP:1.0" "TP" = class(
        ValueModifier::Truncatable, Some(Hdr::DESC), &[of::<Of<LNode>>("a"), of::<i32>("mid"), of::<Of<LNode>>("z")]
    );
    Tree, "IDL:T/Tree:1.0" "Tree" = class(ValueModifier::None, None, &[
        of::<String>("name"), of::<Vec<Of<Tree>>>("kids"), of::<Vec<Pair>>("pairs"), of::<Of<ValueBase>>("any"),
    ]);
    Named, "IDL:T/Named:1.0" "Named" = class(ValueModifier::Abstract, None, &[]);
    Raw, "IDL:T/Raw:1.0" "Raw" = class(ValueModifier::Custom, Some(Base::DESC), &[]);
    Wrap, "IDL:T/Wrap:1.0" "Wrap" = class(ValueModifier::Truncatable, Some(Hdr::DESC), &[
        of::<Of<Tree>>("tree"), of::<Bytes>("data"), of::<Seq<f64>>("numbers"), of::<i32>("tail"),
    ]);
    BoxStr, "IDL:T/BoxStr:1.0" "BoxStr" = Shape::ValueBox(String::DESC);
    Date, "RMI:demo.Date:0:0" "Date" = class(ValueModifier::None, None, &[of::<i64>("millis")]);
    Stamp, "RMI:demo.Stamp:0:0" "Stamp" = class(ValueModifier::Custom, None, &[]);
    Pair, "IDL:T/Pair:1.0" "Pair" =
        Shape::Struct(&[("left", Of::<Tree>::DESC), ("o", u8::DESC), ("right", Of::<Base>::DESC)]);
}

/// Encodes or decodes a part that contains no values.
macro_rules! plain {
    (put $e:ident, $($member:expr),*) => {{ $(CdrEncode::encode(&$member, $e)?;)* Ok(Flow::Next) }};
    (get $d:ident, $($member:expr),*) => {{ $($member = CdrDecode::decode($d)?;)* Ok(Flow::Next) }};
}

/// `valuetype $name [: $base] { $parts };`, each part given by how it is written and read.
macro_rules! value {
    ($name:ty, $id:literal, parts $parts:expr, casts [$($to:ty = $cast:expr),*], $(const $c:ident: $ct:ty = $cv:expr;)*
        put |$v:ident, $e:ident, $at:ident| { $($n:pat => $put:expr,)* }
        get |$w:ident, $d:ident, $dat:ident| { $($m:pat => $get:expr,)* }
    ) => {
        impl ValueType for $name {
            const REPOSITORY_ID: &'static str = $id;
            const PART_COUNT: u32 = $parts;
            const TYPE: Option<&'static TypeDesc> = Some(<$name as Typed>::DESC);
            $(const $c: $ct = $cv;)*

            fn casts(to: &mut Casts<'_>) {
                to.offer::<Self>(|v| v.downcast_ref());
                $(to.offer::<$to>($cast);)*
            }

            fn encode_part(&self, part: u32, $e: &mut Encoder, $at: &mut Progress) -> Result<Flow, EncodeError> {
                let $v = self;
                let _ = &$at;
                match part { $($n => $put,)* }
            }

            fn decode_part(&mut self, part: u32, $d: &mut Decoder<'_>, $dat: &mut Progress) -> Result<Flow, DecodeError> {
                let $w = self;
                let _ = &$dat;
                match part { $($m => $get,)* }
            }
        }
    };
}

/// `valuetype Base { public short b; };`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Base {
    pub b: i16,
}

value! { Base, "IDL:T/Base:1.0", parts 1, casts [],
    put |v, e, at| { _ => plain!(put e, v.b), }
    get |v, d, at| { _ => plain!(get d, v.b), }
}

/// `valuetype Derived : truncatable Base { public long d; };`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Derived {
    pub base: Base,
    pub d: i32,
}

value! { Derived, "IDL:T/Derived:1.0", parts Base::PART_COUNT + 1,
    casts [Base = |v| v.downcast_ref::<Self>().map(|v| &v.base)],
    const TRUNCATABLE_BASES: &'static [&'static str] = &["IDL:T/Base:1.0"];
    const BASE_PART_COUNTS: &'static [u32] = &[Base::PART_COUNT];
    put |v, e, at| { 0 => ValueType::encode_part(&v.base, 0, e, at), _ => plain!(put e, v.d), }
    get |v, d, at| { 0 => ValueType::decode_part(&mut v.base, 0, d, at), _ => plain!(get d, v.d), }
}

impl Extends<Base> for Derived {}

/// `valuetype VB2 : Base { public long d; };`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vb2 {
    pub base: Base,
    pub d: i32,
}

value! { Vb2, "IDL:T/VB2:1.0", parts 2, casts [Base = |v| v.downcast_ref::<Self>().map(|v| &v.base)],
    put |v, e, at| { 0 => ValueType::encode_part(&v.base, 0, e, at), _ => plain!(put e, v.d), }
    get |v, d, at| { 0 => ValueType::decode_part(&mut v.base, 0, d, at), _ => plain!(get d, v.d), }
}

impl Extends<Base> for Vb2 {}

/// `valuetype LNode { public long v; public LNode next; };`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LNode {
    pub v: i32,
    pub next: Option<Value<LNode>>,
}

value! { LNode, "IDL:T/LNode:1.0", parts 2, casts [],
    put |v, e, at| { 0 => plain!(put e, v.v), _ => v.next.encode_part(e, at), }
    get |v, d, at| { 0 => plain!(get d, v.v), _ => v.next.decode_part(d, at), }
}

/// `valuetype Hdr { public long h; };`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hdr {
    pub h: i32,
}

value! { Hdr, "IDL:T/Hdr:1.0", parts 1, casts [],
    put |v, e, at| { _ => plain!(put e, v.h), }
    get |v, d, at| { _ => plain!(get d, v.h), }
}

/// `valuetype TP : truncatable Hdr { public LNode a; public long mid; public LNode z; };`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tp {
    pub base: Hdr,
    pub a: Option<Value<LNode>>,
    pub mid: i32,
    pub z: Option<Value<LNode>>,
}

value! { Tp, "IDL:T/TP:1.0", parts 4, casts [Hdr = |v| v.downcast_ref::<Self>().map(|v| &v.base)],
    const TRUNCATABLE_BASES: &'static [&'static str] = &["IDL:T/Hdr:1.0"];
    const BASE_PART_COUNTS: &'static [u32] = &[Hdr::PART_COUNT];
    put |v, e, at| {
        0 => ValueType::encode_part(&v.base, 0, e, at),
        1 => v.a.encode_part(e, at),
        2 => plain!(put e, v.mid),
        _ => v.z.encode_part(e, at),
    }
    get |v, d, at| {
        0 => ValueType::decode_part(&mut v.base, 0, d, at),
        1 => v.a.decode_part(d, at),
        2 => plain!(get d, v.mid),
        _ => v.z.decode_part(d, at),
    }
}

impl Extends<Hdr> for Tp {}

/// `valuetype Tree` with the members `public string name`, `public sequence<Tree> kids`,
/// `public sequence<Pair> pairs` and `public ValueBase any`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    pub name: String,
    pub kids: Vec<Option<Value<Tree>>>,
    pub pairs: Vec<Pair>,
    pub any: Option<Value<ValueBase>>,
}

value! { Tree, "IDL:T/Tree:1.0", parts 4, casts [Named = |_| Some(&Named)],
    put |v, e, at| {
        0 => plain!(put e, v.name),
        1 => v.kids.encode_part(e, at),
        2 => plain!(put e, v.pairs),
        _ => v.any.encode_part(e, at),
    }
    get |v, d, at| {
        0 => plain!(get d, v.name),
        1 => v.kids.decode_part(d, at),
        2 => plain!(get d, v.pairs),
        _ => v.any.decode_part(d, at),
    }
}

impl Extends<Named> for Tree {}

/// `struct Pair { Tree left; octet o; Base right; };`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pair {
    pub left: Option<Value<Tree>>,
    pub o: u8,
    pub right: Option<Value<Base>>,
}

impl CdrEncode for Pair {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.left.encode(e)?;
        self.o.encode(e)?;
        self.right.encode(e)
    }
}

impl CdrDecode for Pair {
    const MIN_SIZE: usize = 9;

    fn decode(d: &mut Decoder<'_>) -> Result<Pair, DecodeError> {
        Ok(Pair { left: CdrDecode::decode(d)?, o: CdrDecode::decode(d)?, right: CdrDecode::decode(d)? })
    }
}

/// `abstract valuetype Named { ... };`
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Named;

impl ValueForm for Named {
    const REPOSITORY_ID: &'static str = "IDL:T/Named:1.0";
}

/// `custom valuetype Raw : truncatable Base {};`, whose implementation writes more than it reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Raw {
    pub base: Base,
    pub text: String,
    pub inner: Option<Value<LNode>>,
}

impl CustomMarshal for Raw {
    fn marshal(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.text.encode(e)?;
        self.inner.encode(e)?;
        self.base.b.encode(e)?;
        e.put_u64(0x5A5A);
        Some(Value::new(LNode { v: 77, next: None })).encode(e)
    }

    fn unmarshal(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.text = CdrDecode::decode(d)?;
        self.inner = CdrDecode::decode(d)?;
        self.base.b = CdrDecode::decode(d)?;
        Ok(())
    }
}

value! { Raw, "IDL:T/Raw:1.0", parts 1, casts [Base = |v| v.downcast_ref::<Self>().map(|v| &v.base)],
    const IS_CUSTOM: bool = true;
    put |v, e, at| { _ => v.marshal(e).map(|()| Flow::Next), }
    get |v, d, at| { _ => v.unmarshal(d).map(|()| Flow::Next), }
}

impl Extends<Base> for Raw {}

/// `valuetype Wrap : truncatable Hdr` with the members `public Tree tree`, `public sequence<octet> data`,
/// `public sequence<double> numbers` and `public long tail`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wrap {
    pub base: Hdr,
    pub tree: Option<Value<Tree>>,
    pub data: Bytes,
    pub numbers: Seq<f64>,
    pub tail: i32,
}

value! { Wrap, "IDL:T/Wrap:1.0", parts 3, casts [Hdr = |v| v.downcast_ref::<Self>().map(|v| &v.base)],
    const TRUNCATABLE_BASES: &'static [&'static str] = &["IDL:T/Hdr:1.0"];
    const BASE_PART_COUNTS: &'static [u32] = &[Hdr::PART_COUNT];
    put |v, e, at| {
        0 => ValueType::encode_part(&v.base, 0, e, at),
        1 => v.tree.encode_part(e, at),
        _ => plain!(put e, v.data, v.numbers, v.tail),
    }
    get |v, d, at| {
        0 => ValueType::decode_part(&mut v.base, 0, d, at),
        1 => v.tree.decode_part(d, at),
        _ => plain!(get d, v.data, v.numbers, v.tail),
    }
}

impl Extends<Hdr> for Wrap {}

/// `valuetype BoxStr string;`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoxStr(pub String);

value! { BoxStr, "IDL:T/BoxStr:1.0", parts 1, casts [],
    put |v, e, at| { _ => plain!(put e, v.0), }
    get |v, d, at| { _ => plain!(get d, v.0), }
}

/// `valuetype Date { public long long millis; };`, with an id of Java's `RMI:` mapping.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Date {
    pub millis: i64,
}

value! { Date, "RMI:demo.Date:0:0", parts 1, casts [],
    put |v, e, at| { _ => plain!(put e, v.millis), }
    get |v, d, at| { _ => plain!(get d, v.millis), }
}

/// `custom valuetype Stamp {};`, with an id of Java's `RMI:` mapping: two numbers of 8 bytes and two values
/// between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stamp {
    pub at: u64,
    pub one: Option<Value<LNode>>,
    pub two: Option<Value<LNode>>,
    pub until: u64,
}

impl CustomMarshal for Stamp {
    fn marshal(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.at.encode(e)?;
        self.one.encode(e)?;
        self.two.encode(e)?;
        self.until.encode(e)
    }

    fn unmarshal(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.at = CdrDecode::decode(d)?;
        self.one = CdrDecode::decode(d)?;
        self.two = CdrDecode::decode(d)?;
        self.until = CdrDecode::decode(d)?;
        Ok(())
    }
}

value! { Stamp, "RMI:demo.Stamp:0:0", parts 1, casts [],
    const IS_CUSTOM: bool = true;
    put |v, e, at| { _ => v.marshal(e).map(|()| Flow::Next), }
    get |v, d, at| { _ => v.unmarshal(d).map(|()| Flow::Next), }
}

pub fn hex(text: &str) -> Vec<u8> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

pub fn encoded(order: ByteOrder, f: impl FnOnce(&mut Encoder) -> Result<(), EncodeError>) -> Vec<u8> {
    let mut e = Encoder::new(order, Version::V1_2);
    f(&mut e).unwrap();
    e.into_bytes().to_vec()
}

pub fn all() -> Factories {
    let mut factories = Factories::default();
    factories.register::<Base>();
    factories.register::<Derived>();
    factories.register::<Vb2>();
    factories.register::<LNode>();
    factories.register::<Hdr>();
    factories.register::<Tp>();
    factories.register::<Tree>();
    factories.register::<Raw>();
    factories.register::<Wrap>();
    factories.register::<BoxStr>();
    factories.register::<Date>();
    factories.register::<Stamp>();
    factories
}
