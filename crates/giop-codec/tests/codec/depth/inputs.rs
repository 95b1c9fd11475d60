//! Data that nests one construct, or several in turn, to any depth.

use giop_codec::cdr::{CdrEncode, Encoder};
use giop_codec::typecode::{TcKind, TypeCode, TypeSet, UnionLabel, ValueModifier, Visibility};
use giop_codec::{ByteOrder, Version};

/// A type and the parts of its values: the words that open a level, and the words that close it.
pub(crate) struct Nest {
    pub(crate) name: &'static str,
    pub(crate) code: TypeCode,
    open: Vec<u32>,
    close: Vec<u32>,
}

impl Nest {
    fn new(name: &'static str, code: TypeCode, open: &[u32]) -> Nest {
        Nest { name, code, open: open.to_vec(), close: Vec::new() }
    }

    /// Returns a value with that number of levels, in native order. In the innermost level, each construct
    /// ends with a word of zero.
    pub(crate) fn octets(&self, levels: usize) -> Vec<u8> {
        nested(&self.open, &self.close, levels)
    }
}

/// Creates a recursive struct, union or value type, which `define` defines.
fn recursive(define: impl FnOnce(&mut TypeSet, giop_codec::typecode::TypeRef)) -> TypeCode {
    let mut set = TypeSet::new();
    let at = set.declare();
    define(&mut set, at);
    set.type_code(at).unwrap()
}

const VALUE: u32 = 0x7FFF_FF00;
const SEQUENCE: u32 = 19;
const ANY: u32 = 11;

/// Returns the type code of a `sequence<any>`, as words in native order.
fn sequence_of_anys() -> [u32; 5] {
    [SEQUENCE, 12, order_flag(), ANY, 0]
}

/// Returns the byte order as an `octet`, padded to a word.
fn order_flag() -> u32 {
    u32::from_ne_bytes([u8::from(cfg!(target_endian = "little")), 0, 0, 0])
}

/// Returns a type code as words in native order.
fn words(code: &TypeCode) -> Vec<u32> {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    code.encode(&mut e).unwrap();
    e.align(4);
    e.into_bytes().chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
}

/// Returns each construct alone, and all of them in turn.
pub(crate) fn all() -> Vec<Nest> {
    let public = Visibility::Public;
    let structs = recursive(|set, at| {
        let kids = set.sequence(at, 0).unwrap();
        set.define_struct(at, "IDL:S:1.0", "S", &[("kids", kids)]).unwrap();
    });
    let arrays = recursive(|set, at| {
        let kids = set.sequence(at, 0).unwrap();
        let kids = set.array(kids, 1).unwrap();
        set.define_struct(at, "IDL:A:1.0", "A", &[("kids", kids)]).unwrap();
    });
    let unions = recursive(|set, at| {
        let (long, kids) = (set.add(&TypeCode::LONG), set.sequence(at, 0).unwrap());
        set.define_union(at, "IDL:U:1.0", "U", long, &[(UnionLabel::Case(1), "kids", kids)]).unwrap();
    });
    let value = |set: &mut TypeSet, at, members: &[_]| {
        set.define_value(at, TcKind::Value, "IDL:V:1.0", "V", ValueModifier::None, None, members).unwrap();
    };
    let values = recursive(|set, at| value(set, at, &[("next", at, public)]));
    let lists = recursive(|set, at| {
        let kids = set.sequence(at, 0).unwrap();
        value(set, at, &[("kids", kids, public)]);
    });
    let in_structs = recursive(|set, at| {
        let inner = set.declare();
        set.define_struct(inner, "IDL:In:1.0", "In", &[("next", at)]).unwrap();
        value(set, at, &[("in", inner, public)]);
    });
    let boxes = recursive(|set, at| {
        let kids = set.sequence(at, 0).unwrap();
        set.define_value_box(at, "IDL:B:1.0", "B", kids).unwrap();
    });
    let of_anys = recursive(|set, at| {
        let any = set.add(&TypeCode::ANY);
        value(set, at, &[("any", any, public)]);
    });
    let mixed = recursive(|set, at| {
        let (long, any) = (set.add(&TypeCode::LONG), set.add(&TypeCode::ANY));
        let (inner, vt) = (set.declare(), set.declare());
        let anys = set.sequence(any, 0).unwrap();
        let anys = set.array(anys, 1).unwrap();
        set.define_struct(inner, "IDL:M:1.0", "M", &[("vt", vt), ("anys", anys)]).unwrap();
        value(set, vt, &[("next", at, public), ("in", any, public)]);
        let kids = set.sequence(inner, 0).unwrap();
        set.define_union(at, "IDL:X:1.0", "X", long, &[(UnionLabel::Case(1), "kids", kids)]).unwrap();
    });
    let anys = TypeCode::ANY;
    vec![
        Nest::new("struct and sequence", structs, &[1]),
        Nest::new("array and sequence", arrays, &[1]),
        Nest::new("union", unions, &[1, 1]),
        Nest::new("any", anys.clone(), &[ANY]),
        Nest::new("any of sequences", anys, &[sequence_of_anys().as_slice(), &[1]].concat()),
        Nest::new("value", values, &[VALUE]),
        Nest::new("value of sequences", lists, &[VALUE, 1]),
        Nest::new("value of structs", in_structs, &[VALUE]),
        Nest::new("value box", boxes, &[VALUE, 1]),
        Nest::new("value of anys", of_anys.clone(), &[&[VALUE], words(&of_anys).as_slice()].concat()),
        // A union that contains a struct, which contains a value, which contains the next union; then an any
        // and a sequence of them.
        Nest { close: vec![0, 0], ..Nest::new("all in turn", mixed, &[1, 1, VALUE]) },
    ]
}

/// Repeats words that open levels, a word of zero, and words that close levels, for at most the number of
/// levels in a message of 16 MiB.
fn nested(open: &[u32], close: &[u32], levels: usize) -> Vec<u8> {
    let levels = levels.min((4 << 20) / (open.len() + close.len()));
    [octets(open).repeat(levels), vec![0; 4], octets(close).repeat(levels)].concat()
}

fn octets(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Returns a type code of nested sequences: one encapsulation for each level, each within the previous one.
pub(crate) fn type_code(levels: usize) -> Vec<u8> {
    // A kind, a length, and the byte order precede the inner type, and the bound follows it.
    let size = |levels: usize| (4 + levels * 16) as u32;
    let mut words = Vec::with_capacity(4 * levels + 1);
    for level in (0..levels).rev() {
        words.extend_from_slice(&[SEQUENCE, 8 + size(level), order_flag()]);
    }
    words.push(5);
    [octets(&words), vec![0; 4 * levels]].concat()
}

/// Returns nested encapsulations.
pub(crate) fn encapsulations(levels: usize) -> Vec<u8> {
    let mut words = Vec::with_capacity(2 * levels);
    for level in (0..levels).rev() {
        words.extend_from_slice(&[4 + 8 * level as u32, order_flag()]);
    }
    octets(&words)
}

/// Returns values of types in `values`: a list, and a tree whose branches are in structs in sequences.
pub(crate) fn known_values(levels: usize) -> [(&'static str, Vec<u8>); 2] {
    // An empty name has a length of 1. A branch is followed by an `octet`, another branch, and the rest of
    // its tree.
    [("list", nested(&[VALUE, 7], &[], levels)), ("tree", nested(&[VALUE, 1, 0, 0, 1], &[0, 0, 0], levels))]
}
