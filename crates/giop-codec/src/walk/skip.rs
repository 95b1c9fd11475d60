//! Skipping and validation of values.

use super::MAX_ANYS;
use super::copy::skip_by_copying;
use super::run::{StepActions, check_fits, read_length, run};
use crate::cdr::{CdrDecode, CharSet, Decoder, WCharSet, check_bound};
use crate::ior::Ior;
use crate::program::{Contents, EMPTY_VALUE_CHARGE, Index, Labels, Plan, StepResult, read_decimal};
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

/// Skips a value in an any, with structural checks. Returns `None` if it contains parts of value types, which
/// may be null. The decoder is then at an undefined position.
pub(crate) fn skip_in_any(code: &TypeCode, d: &mut Decoder<'_>) -> StepResult<Option<Contents>> {
    let possible = contents(&code.nodes, code.root);
    if possible.graphs {
        return Ok(None);
    }
    let found = Contents { align: possible.align, ..Contents::default() };
    let mut skipper = Skipper { checks: false, is_in_any: true, stops_at_graphs: true, anys: 0, found };
    match skipper.any_value(d, code) {
        _ if skipper.found.graphs => Ok(None),
        result => result.map(|()| Some(skipper.found)),
    }
}

/// Skips a value. `checks` enables checks of text, its bounds, and ordinals.
pub(crate) fn skip_value(code: &TypeCode, d: &mut Decoder<'_>, checks: bool) -> StepResult<Contents> {
    let possible = contents(&code.nodes, code.root);
    if possible.graphs {
        skip_by_copying(code, d)?;
        return Ok(possible);
    }
    let found = Contents { align: possible.align, ..Contents::default() };
    let mut skipper = Skipper { checks, is_in_any: false, stops_at_graphs: false, anys: 0, found };
    skipper.value(d, code)?;
    Ok(skipper.found)
}

/// Returns the possible contents of values of a type, computed once.
pub(crate) fn contents(nodes: &Nodes, root: Index) -> Contents {
    let steps = nodes.compiled();
    let find = || {
        let mut found = Contents::default();
        let mut visited = vec![false; nodes.all().len()];
        let mut pending = vec![root];
        while let Some(index) = pending.pop() {
            let Some(visited @ false) = visited.get_mut(index as usize) else { continue };
            *visited = true;
            let node = nodes.at(index);
            found = found.union(Contents::of_node(node));
            node.indices(|index| pending.push(index));
        }
        found
    };
    steps.contents.get(root as usize).map_or_else(Contents::default, |cell| *cell.get_or_init(find))
}

struct Skipper {
    checks: bool,
    /// Whether the value is in an any, which cannot hold values of all types.
    is_in_any: bool,
    stops_at_graphs: bool,
    anys: usize,
    found: Contents,
}

impl Skipper {
    /// Skips a value in an any, and charges for one that takes no bytes.
    fn any_value(&mut self, d: &mut Decoder<'_>, code: &TypeCode) -> StepResult {
        let start = d.position();
        self.value(d, code)?;
        if d.position() == start { d.charge(EMPTY_VALUE_CHARGE) } else { Ok(()) }
    }

    fn value(&mut self, d: &mut Decoder<'_>, code: &TypeCode) -> StepResult {
        let steps = code.nodes.compiled();
        run(steps, &code.nodes, self, d, steps.entry(code.root))
    }
}

impl StepActions for Skipper {
    fn block(&mut self, d: &mut Decoder<'_>, plan: &Plan) -> StepResult {
        plan.skip(d, 1, self.checks)
    }

    fn run(&mut self, d: &mut Decoder<'_>, plan: &Plan, count: usize) -> StepResult {
        plan.skip(d, count, self.checks)
    }

    fn on_count(&mut self, _: &mut Decoder<'_>, _: usize) -> StepResult {
        Ok(())
    }

    fn on_empty_elements(&mut self, _: &mut Decoder<'_>, first: usize) -> StepResult {
        // The count would be rejected on decoding, because no data follows it in the any.
        if self.is_in_any { Err(DecodeError::new(DecodeErrorKind::NotInAny, first)) } else { Ok(()) }
    }

    fn text(&mut self, d: &mut Decoder<'_>, wide: bool, bound: u32) -> StepResult {
        if wide {
            self.found.wide = true;
            if !self.checks {
                return skip_wstring(d);
            }
            let text = d.read_wstring()?;
            return check_fits(d, bound, || check_bound(&text, bound as usize).is_ok());
        }
        self.found.text = true;
        if !self.checks {
            let len = read_length(d, 1)?;
            return d.take(len).map(drop);
        }
        match d.code_sets().char {
            CharSet::Utf8 => {
                let text = d.read_string_ref()?;
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
        self.found.wide = true;
        d.read_wchar().map(drop)
    }

    fn decimal(&mut self, d: &mut Decoder<'_>, digits: u16) -> StepResult {
        read_decimal(d, digits).map(drop)
    }

    fn label(&mut self, d: &mut Decoder<'_>, labels: Labels) -> StepResult<i64> {
        if let Labels::WChar = labels {
            self.found.wide = true;
        }
        labels.read(d, false)
    }

    fn any(&mut self, d: &mut Decoder<'_>) -> StepResult {
        self.found.anys = true;
        if self.anys >= MAX_ANYS {
            return Err(d.error(DecodeErrorKind::DepthLimit));
        }
        let code = TypeCode::decode(d)?;
        code.nodes.compile_for(d)?;
        let inner = contents(&code.nodes, code.root);
        if inner.graphs {
            self.found = self.found.union(inner);
            if self.stops_at_graphs {
                return Err(d.error(DecodeErrorKind::NotInAny));
            }
            return d.nested(|d| skip_by_copying(&code, d));
        }
        let was_in_any = std::mem::replace(&mut self.is_in_any, true);
        self.anys += 1;
        d.nested(|d| self.any_value(d, &code))?;
        self.anys -= 1;
        self.is_in_any = was_in_any;
        Ok(())
    }

    fn type_code(&mut self, d: &mut Decoder<'_>) -> StepResult {
        TypeCode::decode(d).map(drop)
    }

    fn object(&mut self, d: &mut Decoder<'_>) -> StepResult {
        self.found.references = true;
        Ior::pass(d)
    }

    fn graph(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> StepResult {
        self.found.graphs = true;
        skip_by_copying(&TypeCode::new(nodes.clone(), place), d)
    }

    fn principal(&mut self, d: &mut Decoder<'_>) -> StepResult {
        let len = read_length(d, 1)?;
        d.take(len).map(drop)
    }

    fn except_id(&mut self, d: &mut Decoder<'_>, id: &str) -> StepResult {
        read_except_id(d, id)
    }
}

/// Reads the repository id before the members of an exception. omniORB omits it in anys, where the type code
/// contains it too.
pub(crate) fn read_except_id(d: &mut Decoder<'_>, id: &str) -> StepResult {
    if id.is_empty() || d.clone().read_str_bytes().is_ok_and(|bytes| bytes == id.as_bytes()) {
        d.read_str_bytes()?;
    }
    Ok(())
}

/// Skips a wide string. Decodes the whole string if its size in bytes depends on the code set.
pub(crate) fn skip_wstring(d: &mut Decoder<'_>) -> StepResult {
    let sets = d.code_sets().wchar;
    if d.version() == Version::V1_2 && sets.is_some() && sets != Some(WCharSet::Ucs4) {
        let len = read_length(d, 1)?;
        return d.take(len).map(drop);
    }
    d.read_wstring().map(drop)
}
