//! Skipping and validation of values.

use super::MAX_ANYS;
use super::copy::pass_over;
use super::run::{StepActions, length, run};
use crate::cdr::{CdrDecode, CharSet, Decoder, WCharSet, check_bound};
use crate::ior::Ior;
use crate::program::{Contents, EMPTY_VALUE, Index, Labels, Plan, StepResult, read_decimal};
use crate::typecode::{Node, Nodes, TcKind, TypeCode};
use crate::{DecodeError, DecodeErrorKind, Version};

impl Contents {
    /// Returns the possible contents of values of a type, without those of its parts.
    fn of_node(node: &Node) -> Contents {
        let none = Contents::default();
        match node {
            Node::Basic(kind) => match kind {
                TcKind::Null | TcKind::Void => none,
                TcKind::Boolean | TcKind::Char | TcKind::Octet => Contents { align: 1, ..none },
                TcKind::Short | TcKind::UShort => Contents { align: 2, ..none },
                TcKind::WChar => Contents { wide: true, align: 4, ..none },
                TcKind::LongLong | TcKind::ULongLong | TcKind::Double | TcKind::LongDouble => {
                    Contents { align: 8, ..none }
                }
                TcKind::Any => Contents { anys: true, align: 8, ..none },
                _ => Contents { align: 4, ..none },
            },
            Node::Text { wide, .. } => Contents { text: !wide, wide: *wide, align: 4, ..none },
            Node::Fixed { .. } => Contents { align: 1, ..none },
            Node::Sequence { .. } => Contents { align: 4, ..none },
            Node::Array { .. } | Node::Recursive(_) => none,
            Node::Named(named) => match named.kind {
                TcKind::ObjRef | TcKind::Component | TcKind::Home => {
                    Contents { references: true, align: 4, ..none }
                }
                TcKind::AbstractInterface => Contents { references: true, graphs: true, align: 8, ..none },
                TcKind::Value | TcKind::Event | TcKind::ValueBox => {
                    // Derived types may have further contents.
                    Contents { graphs: true, references: true, text: true, wide: true, anys: true, align: 8 }
                }
                TcKind::Enum | TcKind::Except => Contents { align: 4, ..none },
                _ => none,
            },
        }
    }
}

/// Skips a value in an any, with structural checks. Returns `None` if it contains a place for a value of a
/// value type. It is then skipped only in part, before the first such value.
pub(crate) fn go_over_any(code: &TypeCode, d: &mut Decoder<'_>) -> StepResult<Option<Contents>> {
    let may_be = contents(&code.nodes, code.root);
    if may_be.graphs {
        return Ok(None);
    }
    let seen = Contents { align: may_be.align, ..Contents::default() };
    let mut skipper = Skipper { checks: false, in_any: true, stops: true, anys: 0, seen };
    let start = d.position();
    match skipper.value(d, code) {
        _ if skipper.seen.graphs => Ok(None),
        Ok(()) if d.position() == start => d.charge(EMPTY_VALUE).map(|()| Some(skipper.seen)),
        done => done.map(|()| Some(skipper.seen)),
    }
}

/// Skips a value. One that may contain values of value types is copied without an output.
pub(crate) fn go_over(code: &TypeCode, d: &mut Decoder<'_>, checks: bool) -> StepResult<Contents> {
    let may_be = contents(&code.nodes, code.root);
    if may_be.graphs {
        pass_over(code, d)?;
        return Ok(may_be);
    }
    let seen = Contents { align: may_be.align, ..Contents::default() };
    let mut skipper = Skipper { checks, in_any: false, stops: false, anys: 0, seen };
    skipper.value(d, code)?;
    Ok(skipper.seen)
}

/// Returns the possible contents of values of a type, computed once.
pub(crate) fn contents(nodes: &Nodes, root: Index) -> Contents {
    let body = nodes.compiled();
    let find = || {
        let mut found = Contents::default();
        let mut seen = vec![false; nodes.all().len()];
        let mut waiting = vec![root];
        while let Some(index) = waiting.pop() {
            let Some(seen @ false) = seen.get_mut(index as usize) else { continue };
            *seen = true;
            let node = nodes.at(index);
            found = found.and(Contents::of_node(node));
            node.indices(|index| waiting.push(index));
        }
        found
    };
    match body.contents.get(root as usize) {
        Some(place) => *place.get_or_init(find),
        None => Contents::default(),
    }
}

struct Skipper {
    checks: bool,
    /// Whether the value is in an any, which must not contain certain types.
    in_any: bool,
    /// Whether to stop before the first value of a value type.
    stops: bool,
    /// Number of enclosing anys.
    anys: usize,
    seen: Contents,
}

impl Skipper {
    fn value(&mut self, d: &mut Decoder<'_>, code: &TypeCode) -> StepResult {
        let body = code.nodes.compiled();
        run(body, &code.nodes, self, d, body.entry(code.root))
    }
}

impl StepActions for Skipper {
    fn block(&mut self, d: &mut Decoder<'_>, plan: &Plan) -> StepResult {
        plan.pass(d, 1, self.checks)
    }

    fn run(&mut self, d: &mut Decoder<'_>, plan: &Plan, count: usize) -> StepResult {
        plan.pass(d, count, self.checks)
    }

    fn count(&mut self, _: &mut Decoder<'_>, _: usize) -> StepResult {
        Ok(())
    }

    fn nothing(&mut self, _: &mut Decoder<'_>, first: usize) -> StepResult {
        // Such a count would be rejected on decoding, because no data follows it in the any.
        if self.in_any { Err(DecodeError::new(DecodeErrorKind::NotInAny, first)) } else { Ok(()) }
    }

    fn text(&mut self, d: &mut Decoder<'_>, wide: bool, bound: u32) -> StepResult {
        if wide {
            self.seen.wide = true;
            if !self.checks {
                return pass_wide(d);
            }
            let text = d.read_wstring()?;
            return within(d, check_bound(&text, bound as usize).is_ok(), bound);
        }
        self.seen.text = true;
        if !self.checks {
            let len = length(d, 1)?;
            return d.take(len).map(drop);
        }
        match d.code_sets().char {
            CharSet::Utf8 => {
                let text = d.read_string_ref()?;
                within(d, bound == 0 || check_bound(&*text, bound as usize).is_ok(), bound)
            }
            CharSet::Latin1 => {
                let octets = d.read_octet_str()?;
                within(d, octets.len() <= bound as usize, bound)
            }
            CharSet::Converted(_) => {
                let text = d.read_string()?;
                within(d, check_bound(text.as_str(), bound as usize).is_ok(), bound)
            }
        }
    }

    fn wchar(&mut self, d: &mut Decoder<'_>) -> StepResult {
        self.seen.wide = true;
        d.read_wchar().map(drop)
    }

    fn decimal(&mut self, d: &mut Decoder<'_>, digits: u16) -> StepResult {
        read_decimal(d, digits).map(drop)
    }

    fn label(&mut self, d: &mut Decoder<'_>, labels: Labels) -> StepResult<i64> {
        if let Labels::WChar = labels {
            self.seen.wide = true;
        }
        labels.read(d, false)
    }

    fn any(&mut self, d: &mut Decoder<'_>) -> StepResult {
        self.seen.anys = true;
        if self.anys >= MAX_ANYS {
            return Err(d.error(DecodeErrorKind::DepthLimit));
        }
        let code = TypeCode::decode(d)?;
        code.nodes.compile_for(d)?;
        let inner = contents(&code.nodes, code.root);
        if inner.graphs {
            self.seen = self.seen.and(inner);
            if self.stops {
                return Err(d.error(DecodeErrorKind::NotInAny));
            }
            return d.nested(|d| pass_over(&code, d));
        }
        let around = std::mem::replace(&mut self.in_any, true);
        self.anys += 1;
        d.nested(|d| {
            let start = d.position();
            self.value(d, &code)?;
            if d.position() == start { d.charge(EMPTY_VALUE) } else { Ok(()) }
        })?;
        self.anys -= 1;
        self.in_any = around;
        Ok(())
    }

    fn type_code(&mut self, d: &mut Decoder<'_>) -> StepResult {
        TypeCode::decode(d).map(drop)
    }

    fn object(&mut self, d: &mut Decoder<'_>) -> StepResult {
        self.seen.references = true;
        Ior::pass(d)
    }

    fn graph(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> StepResult {
        self.seen.graphs = true;
        pass_over(&TypeCode::new(nodes.clone(), place), d)
    }

    fn principal(&mut self, d: &mut Decoder<'_>) -> StepResult {
        let len = length(d, 1)?;
        d.take(len).map(drop)
    }

    fn except_id(&mut self, d: &mut Decoder<'_>, id: &str) -> StepResult {
        read_except_id(d, id)
    }
}

/// Reads the repository id before the members of an exception. omniORB omits it in anys, where the type code
/// contains it too.
pub(crate) fn read_except_id(d: &mut Decoder<'_>, id: &str) -> StepResult {
    let there = id.is_empty() || d.clone().read_octet_str().is_ok_and(|octets| octets == id.as_bytes());
    if there {
        d.read_octet_str()?;
    }
    Ok(())
}

/// Skips a wide string. Decodes the whole string if its length in the message depends on the code set,
/// otherwise only the length.
pub(crate) fn pass_wide(d: &mut Decoder<'_>) -> StepResult {
    let sets = d.code_sets().wchar;
    if d.version() == Version::V1_2 && sets.is_some() && sets != Some(WCharSet::Ucs4) {
        let len = length(d, 1)?;
        return d.take(len).map(drop);
    }
    d.read_wstring().map(drop)
}

fn within(d: &Decoder<'_>, fits: bool, bound: u32) -> StepResult {
    if bound == 0 || fits { Ok(()) } else { Err(d.error(DecodeErrorKind::BoundExceeded)) }
}
