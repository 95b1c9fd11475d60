//! Skipping and validation of values.

use super::MAX_NESTED_ANYS;
use super::copy::skip_by_copying;
use super::run::{StepActions, check_fits, read_length, run_steps};
use crate::cdr::{CdrDecode, CharSet, Decoder, WCharSet, check_bound};
use crate::ior::Ior;
use crate::program::{
    Contents, EMPTY_VALUE_CHARGE_BYTES, Index, LabelEncoding, Plan, StepResult, read_decimal,
};
use crate::typecode::{Node, Nodes, TcKind, TypeCode};
use crate::{DecodeError, DecodeErrorKind, Version};

impl Contents {
    /// Returns the possible contents of values of one type, without the contents of its members or elements.
    fn of_node(node: &Node) -> Contents {
        let none = Contents::default();
        match node {
            Node::Basic(kind) => match kind {
                TcKind::Null | TcKind::Void => none,
                TcKind::Boolean | TcKind::Char | TcKind::Octet => Contents { align: 1, ..none },
                TcKind::Short | TcKind::UShort => Contents { align: 2, ..none },
                TcKind::WChar => Contents { has_wide_text: true, align: 4, ..none },
                TcKind::LongLong | TcKind::ULongLong | TcKind::Double | TcKind::LongDouble => {
                    Contents { align: 8, ..none }
                }
                TcKind::Any => Contents { has_anys: true, align: 8, ..none },
                _ => Contents { align: 4, ..none },
            },
            Node::Text { wide, .. } => Contents { has_text: !wide, has_wide_text: *wide, align: 4, ..none },
            Node::Fixed { .. } => Contents { align: 1, ..none },
            Node::Sequence { .. } => Contents { align: 4, ..none },
            Node::Array { .. } | Node::Placeholder(_) => none,
            Node::Named(named) => match named.kind {
                TcKind::ObjRef | TcKind::Component | TcKind::Home => {
                    Contents { has_references: true, align: 4, ..none }
                }
                TcKind::AbstractInterface => {
                    Contents { has_references: true, has_value_types: true, align: 8, ..none }
                }
                TcKind::Value | TcKind::Event | TcKind::ValueBox => {
                    // Derived types may have further contents.
                    Contents {
                        has_value_types: true,
                        has_references: true,
                        has_text: true,
                        has_wide_text: true,
                        has_anys: true,
                        align: 8,
                    }
                }
                TcKind::Enum | TcKind::Except => Contents { align: 4, ..none },
                _ => none,
            },
        }
    }
}

/// Skips a value in an any, and checks its structure. Returns `None` if its type, or that of an any in it,
/// includes a value type. In that case, the position of the decoder is unspecified.
pub(crate) fn skip_in_any(code: &TypeCode, d: &mut Decoder<'_>) -> StepResult<Option<Contents>> {
    let possible = contents(&code.nodes, code.root);
    if possible.has_value_types {
        return Ok(None);
    }
    let found = Contents { align: possible.align, ..Contents::default() };
    let mut skipper =
        Skipper { checks_content: false, is_in_any: true, stops_at_value_types: true, nested_anys: 0, found };
    match skipper.any_value(d, code) {
        _ if skipper.found.has_value_types => Ok(None),
        result => result.map(|()| Some(skipper.found)),
    }
}

/// Skips a value. `checks_content` enables checks of text, of the bounds of text, and of ordinals. A type
/// that includes a value type is always checked.
pub(crate) fn skip_value(code: &TypeCode, d: &mut Decoder<'_>, checks_content: bool) -> StepResult<Contents> {
    let possible = contents(&code.nodes, code.root);
    if possible.has_value_types {
        skip_by_copying(code, d)?;
        return Ok(possible);
    }
    let found = Contents { align: possible.align, ..Contents::default() };
    let mut skipper =
        Skipper { checks_content, is_in_any: false, stops_at_value_types: false, nested_anys: 0, found };
    skipper.value(d, code)?;
    Ok(skipper.found)
}

/// Returns the possible contents of values of a type. They are computed only once.
pub(crate) fn contents(nodes: &Nodes, root: Index) -> Contents {
    let steps = nodes.steps();
    let find = || {
        let mut found = Contents::default();
        let mut visited = vec![false; nodes.all().len()];
        let mut pending = vec![root];
        while let Some(index) = pending.pop() {
            let Some(visited @ false) = visited.get_mut(index as usize) else { continue };
            *visited = true;
            let node = nodes.at(index);
            found = found.union(Contents::of_node(node));
            node.for_each_index(|index| pending.push(index));
        }
        found
    };
    steps.contents.get(root as usize).map_or_else(Contents::default, |cell| *cell.get_or_init(find))
}

struct Skipper {
    checks_content: bool,
    /// Whether the value is in an any. An any cannot hold values of all types.
    is_in_any: bool,
    /// Whether a value type in an any ends the traversal with an error.
    stops_at_value_types: bool,
    nested_anys: usize,
    found: Contents,
}

impl Skipper {
    /// Skips a value in an any. A value without bytes is charged to the decoder's memory limit.
    fn any_value(&mut self, d: &mut Decoder<'_>, code: &TypeCode) -> StepResult {
        let start = d.position();
        self.value(d, code)?;
        if d.position() == start { d.charge(EMPTY_VALUE_CHARGE_BYTES) } else { Ok(()) }
    }

    fn value(&mut self, d: &mut Decoder<'_>, code: &TypeCode) -> StepResult {
        let steps = code.nodes.steps();
        run_steps(steps, &code.nodes, self, d, steps.entry(code.root))
    }
}

impl StepActions for Skipper {
    fn block(&mut self, d: &mut Decoder<'_>, plan: &Plan) -> StepResult {
        plan.skip(d, 1, self.checks_content)
    }

    fn fixed_elements(&mut self, d: &mut Decoder<'_>, plan: &Plan, count: usize) -> StepResult {
        plan.skip(d, count, self.checks_content)
    }

    fn on_count(&mut self, _: &mut Decoder<'_>, _: usize) -> StepResult {
        Ok(())
    }

    fn on_empty_elements(&mut self, _: &mut Decoder<'_>, first: usize) -> StepResult {
        // Decoding the any later would fail: no data follows that could contain so many elements.
        if self.is_in_any { Err(DecodeError::new(DecodeErrorKind::NotInAny, first)) } else { Ok(()) }
    }

    fn text(&mut self, d: &mut Decoder<'_>, wide: bool, bound: u32) -> StepResult {
        if wide {
            self.found.has_wide_text = true;
            if !self.checks_content {
                return skip_wstring(d);
            }
            let text = d.read_wstring()?;
            return check_fits(d, bound, || check_bound(&text, bound as usize).is_ok());
        }
        self.found.has_text = true;
        if !self.checks_content {
            let len = read_length(d, 1)?;
            return d.take(len).map(drop);
        }
        match d.code_sets().char {
            CharSet::Utf8 => {
                let text = d.read_string_cow()?;
                check_fits(d, bound, || check_bound(&*text, bound as usize).is_ok())
            }
            CharSet::Latin1 => {
                let text = d.read_str_bytes()?;
                check_fits(d, bound, || text.len() <= bound as usize)
            }
            CharSet::Converted(_) => {
                let text = d.read_string()?;
                check_fits(d, bound, || check_bound(text.as_str(), bound as usize).is_ok())
            }
        }
    }

    fn wchar(&mut self, d: &mut Decoder<'_>) -> StepResult {
        self.found.has_wide_text = true;
        d.read_wchar().map(drop)
    }

    fn decimal(&mut self, d: &mut Decoder<'_>, digits: u16) -> StepResult {
        read_decimal(d, digits).map(drop)
    }

    fn label(&mut self, d: &mut Decoder<'_>, labels: LabelEncoding) -> StepResult<i64> {
        if let LabelEncoding::WChar = labels {
            self.found.has_wide_text = true;
        }
        labels.read(d)
    }

    fn any(&mut self, d: &mut Decoder<'_>) -> StepResult {
        self.found.has_anys = true;
        if self.nested_anys >= MAX_NESTED_ANYS {
            return Err(d.error(DecodeErrorKind::DepthLimit));
        }
        let code = TypeCode::decode(d)?;
        code.nodes.compile_for(d)?;
        let inner = contents(&code.nodes, code.root);
        if inner.has_value_types {
            self.found = self.found.union(inner);
            if self.stops_at_value_types {
                return Err(d.error(DecodeErrorKind::NotInAny));
            }
            return d.nested(|d| skip_by_copying(&code, d));
        }
        let was_in_any = std::mem::replace(&mut self.is_in_any, true);
        self.nested_anys += 1;
        d.nested(|d| self.any_value(d, &code))?;
        self.nested_anys -= 1;
        self.is_in_any = was_in_any;
        Ok(())
    }

    fn type_code(&mut self, d: &mut Decoder<'_>) -> StepResult {
        TypeCode::decode(d).map(drop)
    }

    fn object(&mut self, d: &mut Decoder<'_>) -> StepResult {
        self.found.has_references = true;
        Ior::skip(d)
    }

    fn graph(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, declared: Index) -> StepResult {
        self.found.has_value_types = true;
        skip_by_copying(&TypeCode::new(nodes.clone(), declared), d)
    }

    fn principal(&mut self, d: &mut Decoder<'_>) -> StepResult {
        let len = read_length(d, 1)?;
        d.take(len).map(drop)
    }

    fn exception_id(&mut self, d: &mut Decoder<'_>, id: &str) -> StepResult {
        read_exception_id(d, id)
    }
}

/// Reads the repository id before the members of an exception. omniORB omits it in anys.
pub(crate) fn read_exception_id(d: &mut Decoder<'_>, id: &str) -> StepResult {
    if id.is_empty() || d.clone().read_str_bytes().is_ok_and(|bytes| bytes == id.as_bytes()) {
        d.read_str_bytes()?;
    }
    Ok(())
}

/// Skips a wide string. Decodes it, except in GIOP 1.2 with a code set whose lengths are in bytes.
pub(crate) fn skip_wstring(d: &mut Decoder<'_>) -> StepResult {
    let sets = d.code_sets().wchar;
    if d.version() == Version::V1_2 && sets.is_some() && sets != Some(WCharSet::Ucs4) {
        let len = read_length(d, 1)?;
        return d.take(len).map(drop);
    }
    d.read_wstring().map(drop)
}
