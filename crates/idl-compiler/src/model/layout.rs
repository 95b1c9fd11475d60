//! Memory layout of `@zero_copy` structs.
//!
//! Such a struct is sent and received as it lies in memory, so the layout C gives it (each struct aligned as its most
//! aligned member) and the layout CDR gives it when it starts on an 8-byte boundary (only primitives are aligned) must be
//! the same, element after element of a sequence.

use std::collections::HashMap;

use super::{DefId, DefKind, Model, Primitive, Type, TypeId};
use crate::source::Span;

/// Layout of a `@zero_copy` struct, equal in memory and in CDR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZeroCopyLayout {
    /// Octets, a multiple of `align`: there is no padding at the end.
    pub size: usize,
    /// Alignment in octets: 1, 2, 4 or 8.
    pub align: usize,
    /// One entry a member, those of bases first, in order.
    pub fields: Vec<ZeroCopyField>,
}

/// Where a member of a `@zero_copy` struct lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroCopyField {
    /// Octets from the start of the struct.
    pub offset: usize,
    /// Octets of padding just before the member.
    pub padding: usize,
    /// Octets of the member.
    pub size: usize,
}

/// Why a struct cannot be `@zero_copy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZeroCopyProblem {
    /// Not a struct with at least one member.
    NotAStruct,
    /// The member's type does not have one bit pattern a value: only integers, `octet`, `char`, `float`, `double`,
    /// arrays of those and other `@zero_copy` structs do, without bounds.
    Member {
        /// Position of the member.
        index: usize,
        /// The member's name.
        span: Span,
    },
    /// A struct member that memory aligns more strictly than CDR does.
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
        /// Octets missing.
        missing: usize,
    },
    /// Larger than can be addressed.
    TooLarge,
}

impl Model {
    /// The layout of a struct as `@zero_copy` (whether or not it is annotated so; nested structs must be).
    ///
    /// # Errors
    /// The first reason why it cannot be.
    pub fn zero_copy_layout(&self, id: DefId) -> Result<ZeroCopyLayout, ZeroCopyProblem> {
        self.layout_and_first(id, true).map(|(layout, _)| layout)
    }

    /// The layout of a struct that is the same in memory and in CDR, though nobody asked for it: as
    /// [`zero_copy_layout`](Self::zero_copy_layout), but nested structs need no annotation either.
    pub fn equal_layout(&self, id: DefId) -> Option<ZeroCopyLayout> {
        self.layout_and_first(id, false).ok().map(|(layout, _)| layout)
    }

    /// The layout, and the alignment that CDR gives the first byte of the struct. `marked`: nested structs must be `@zero_copy`.
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

/// Larger structs cannot be held in one message, nor on a 32-bit machine.
const MAX_SIZE: usize = 1 << 31;

/// Structs that were laid out, by whether nested ones must be `@zero_copy`. They are complete: a layout is asked for at the end of a text.
#[derive(Debug, Default)]
pub(super) struct Layouts(HashMap<(DefId, bool), Option<Part>>);

/// A member's place: its size, its alignment in memory, and the alignment CDR gives its first octet.
#[derive(Clone, Copy, Debug)]
struct Part {
    size: usize,
    align: usize,
    first: usize,
}
