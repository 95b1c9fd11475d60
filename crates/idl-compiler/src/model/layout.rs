//! Memory layout of `@zero_copy` structs.
//!
//! Such a struct is sent and received as its memory image. Therefore its C layout (each struct aligned as its
//! most aligned member) must equal its CDR layout from an 8-byte boundary (only primitives are aligned), also
//! for each element of a sequence.

use std::collections::HashMap;

use super::{DefId, DefKind, Model, Primitive, Type, TypeId};
use crate::source::Span;

/// Layout of a `@zero_copy` struct, equal in memory and in CDR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZeroCopyLayout {
    /// Size in bytes, a multiple of `align`: there is no padding at the end.
    pub size: usize,
    /// Alignment in bytes: 1, 2, 4 or 8.
    pub align: usize,
    /// One entry for each member, those of bases first, in order.
    pub fields: Vec<ZeroCopyField>,
}

/// The position of a member of a `@zero_copy` struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroCopyField {
    /// Bytes from the start of the struct.
    pub offset: usize,
    /// Bytes of padding directly before the member.
    pub padding: usize,
    /// Size of the member in bytes.
    pub size: usize,
}

/// The reason why a struct cannot be `@zero_copy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZeroCopyProblem {
    /// Not a struct with at least one member.
    NotAStruct,
    /// The member's type does not map each value to exactly one bit pattern. Only integers, `octet`, `char`,
    /// `float`, `double`, arrays of those and other `@zero_copy` structs do, without bounds.
    Member {
        /// Position of the member.
        index: usize,
        /// The member's name.
        span: Span,
    },
    /// A struct member that has a stricter alignment in memory than in CDR.
    Misaligned {
        /// Position of the member.
        index: usize,
        /// The member's name.
        span: Span,
        /// Its offset in CDR.
        cdr: usize,
        /// Its offset in memory.
        memory: usize,
    },
    /// The last member ends before a multiple of the alignment.
    TailPadding {
        /// Number of missing bytes.
        missing: usize,
    },
    /// The struct is larger than can be addressed.
    TooLarge,
}

impl Model {
    /// Returns the layout of a struct as `@zero_copy`, whether or not it has the annotation. Nested structs
    /// must have it.
    ///
    /// # Errors
    /// The first reason why the struct cannot be `@zero_copy`.
    pub fn zero_copy_layout(&self, id: DefId) -> Result<ZeroCopyLayout, ZeroCopyProblem> {
        self.layout_and_first(id, true).map(|(layout, _)| layout)
    }

    /// Returns the layout of a struct if it is the same in memory and in CDR. Unlike
    /// [`zero_copy_layout`](Self::zero_copy_layout), this does not require the annotation of nested structs
    /// either.
    pub fn equal_layout(&self, id: DefId) -> Option<ZeroCopyLayout> {
        self.layout_and_first(id, false).ok().map(|(layout, _)| layout)
    }

    /// Returns the layout, and the alignment of the struct's first byte in CDR. With `marked`, nested structs
    /// must be `@zero_copy`.
    fn layout_and_first(&self, id: DefId, marked: bool) -> Result<(ZeroCopyLayout, usize), ZeroCopyProblem> {
        let DefKind::Struct(_) = &self.def(id).kind else { return Err(ZeroCopyProblem::NotAStruct) };
        let members = self.all_struct_members(id);
        let mut layout = ZeroCopyLayout { size: 0, align: 1, fields: Vec::with_capacity(members.len()) };
        let mut first = None;
        for (index, member) in members.into_iter().enumerate() {
            let problem = ZeroCopyProblem::Member { index, span: member.span };
            let plain = !member.annotations.is_optional() && !member.annotations.has_range();
            let part = self.zero_copy_part(member.ty, marked).filter(|_| plain).ok_or(problem)?;
            first.get_or_insert(part.first);
            let (cdr, memory) =
                (layout.size.next_multiple_of(part.first), layout.size.next_multiple_of(part.align));
            if cdr != memory {
                return Err(ZeroCopyProblem::Misaligned { index, span: member.span, cdr, memory });
            }
            layout.fields.push(ZeroCopyField { offset: cdr, padding: cdr - layout.size, size: part.size });
            layout.size = cdr
                .checked_add(part.size)
                .filter(|size| *size < MAX_SIZE)
                .ok_or(ZeroCopyProblem::TooLarge)?;
            layout.align = layout.align.max(part.align);
        }
        let first = first.ok_or(ZeroCopyProblem::NotAStruct)?;
        match layout.size.next_multiple_of(layout.align) - layout.size {
            0 => Ok((layout, first)),
            missing => Err(ZeroCopyProblem::TailPadding { missing }),
        }
    }

    fn zero_copy_part(&self, ty: TypeId, marked: bool) -> Option<Part> {
        if self.ranged_typedef(ty).is_some() {
            return None;
        }
        match self.stripped(ty) {
            Type::Primitive(Primitive::Boolean | Primitive::WChar | Primitive::LongDouble) => None,
            Type::Primitive(p) => Some(Part { size: p.size(), align: p.size(), first: p.size() }),
            Type::Array { element, dims } => {
                let part = self.zero_copy_part(*element, marked)?;
                let size = dims.iter().try_fold(part.size, |size, dim| size.checked_mul(*dim as usize))?;
                (size < MAX_SIZE).then_some(Part { size, ..part })
            }
            Type::Named(def) if !marked || self.def(*def).annotations.has("zero_copy") => {
                let known = self.layouts.borrow().0.get(&(*def, marked)).copied();
                if let Some(part) = known {
                    return part;
                }
                let found = self.layout_and_first(*def, marked).ok();
                let part =
                    found.map(|(layout, first)| Part { size: layout.size, align: layout.align, first });
                self.layouts.borrow_mut().0.insert((*def, marked), part);
                part
            }
            _ => None,
        }
    }
}

/// Maximum size in bytes. Larger structs fit neither into one message nor into the memory of a 32-bit
/// machine.
const MAX_SIZE: usize = 1 << 31;

/// Cached layouts of structs, by whether nested structs must be `@zero_copy`. All structs are complete,
/// because layouts are only computed at the end of a text.
#[derive(Debug, Default)]
pub(super) struct Layouts(HashMap<(DefId, bool), Option<Part>>);

/// A member's size, its alignment in memory, and the alignment of its first byte in CDR.
#[derive(Clone, Copy, Debug)]
struct Part {
    size: usize,
    align: usize,
    first: usize,
}
