//! Memory layout of `@zero_copy` structs.
//!
//! A `@zero_copy` struct is sent and received as its memory image. Therefore its layout in memory, which is
//! the C layout, must equal its CDR layout, both for a struct at an 8-byte boundary and for each element of a
//! sequence. In C, a struct has the strictest alignment of its members. In CDR, only primitives are aligned.

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
    /// The members in order, starting with inherited members.
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
    /// A member that is optional, has bounds, or is not an integer, `octet`, `char`, `float`, `double`,
    /// another `@zero_copy` struct, or an array of these of less than 2 GiB.
    Member {
        /// Position of the member.
        index: usize,
        /// Location of the member's name.
        span: Span,
    },
    /// A struct member that has a stricter alignment in memory than in CDR.
    Misaligned {
        /// Position of the member.
        index: usize,
        /// Location of the member's name.
        span: Span,
        /// Offset of the member in CDR.
        cdr: usize,
        /// Offset of the member in memory.
        memory: usize,
    },
    /// The last member ends before a multiple of the alignment.
    TailPadding {
        /// Number of missing bytes.
        missing: usize,
    },
    /// The struct has 2 GiB or more.
    TooLarge,
}

impl Model {
    /// Returns the layout of a struct as if it were `@zero_copy`. Nested structs must have the annotation.
    ///
    /// # Errors
    /// The first reason why the struct cannot be `@zero_copy`.
    pub fn zero_copy_layout(&self, id: DefId) -> Result<ZeroCopyLayout, ZeroCopyProblem> {
        self.layout_and_cdr_align(id, true).map(|(layout, _)| layout)
    }

    /// Returns the layout of a struct if it is the same in memory and in CDR. Unlike with
    /// [`zero_copy_layout`](Self::zero_copy_layout), nested structs need no annotation.
    pub fn equal_layout(&self, id: DefId) -> Option<ZeroCopyLayout> {
        self.layout_and_cdr_align(id, false).ok().map(|(layout, _)| layout)
    }

    /// Returns the layout and its CDR alignment. With `only_annotated`, nested structs must be `@zero_copy`.
    fn layout_and_cdr_align(
        &self,
        id: DefId,
        only_annotated: bool,
    ) -> Result<(ZeroCopyLayout, usize), ZeroCopyProblem> {
        let DefKind::Struct(_) = &self.def(id).kind else { return Err(ZeroCopyProblem::NotAStruct) };
        let members = self.all_struct_members(id);
        let mut layout = ZeroCopyLayout { size: 0, align: 1, fields: Vec::with_capacity(members.len()) };
        let mut first_align = None;
        for (index, member) in members.into_iter().enumerate() {
            let problem = ZeroCopyProblem::Member { index, span: member.span };
            let plain = !member.annotations.is_optional() && !member.annotations.has_range();
            let part = self.zero_copy_part(member.ty, only_annotated).filter(|_| plain).ok_or(problem)?;
            first_align.get_or_insert(part.cdr_align);
            let (cdr, memory) =
                (layout.size.next_multiple_of(part.cdr_align), layout.size.next_multiple_of(part.align));
            if cdr != memory {
                return Err(ZeroCopyProblem::Misaligned { index, span: member.span, cdr, memory });
            }
            layout.fields.push(ZeroCopyField { offset: cdr, padding: cdr - layout.size, size: part.size });
            layout.size = cdr
                .checked_add(part.size)
                .filter(|size| *size < MAX_BYTES)
                .ok_or(ZeroCopyProblem::TooLarge)?;
            layout.align = layout.align.max(part.align);
        }
        let first_align = first_align.ok_or(ZeroCopyProblem::NotAStruct)?;
        match layout.size.next_multiple_of(layout.align) - layout.size {
            0 => Ok((layout, first_align)),
            missing => Err(ZeroCopyProblem::TailPadding { missing }),
        }
    }

    fn zero_copy_part(&self, ty: TypeId, only_annotated: bool) -> Option<Part> {
        if self.ranged_typedef(ty).is_some() {
            return None;
        }
        match self.stripped(ty) {
            Type::Primitive(Primitive::Boolean | Primitive::WChar | Primitive::LongDouble) => None,
            Type::Primitive(p) => Some(Part { size: p.size(), align: p.size(), cdr_align: p.size() }),
            Type::Array { element, dims } => {
                let part = self.zero_copy_part(*element, only_annotated)?;
                let size = dims.iter().try_fold(part.size, |size, dim| size.checked_mul(*dim as usize))?;
                (size < MAX_BYTES).then_some(Part { size, ..part })
            }
            Type::Named(def) if !only_annotated || self.def(*def).annotations.has("zero_copy") => {
                let key = (*def, only_annotated);
                let cached = self.layouts.borrow().0.get(&key).copied();
                if let Some(part) = cached {
                    return part;
                }
                let found = self.layout_and_cdr_align(*def, only_annotated).ok();
                let part = found.map(|(layout, cdr_align)| Part {
                    size: layout.size,
                    align: layout.align,
                    cdr_align,
                });
                self.layouts.borrow_mut().0.insert(key, part);
                part
            }
            _ => None,
        }
    }
}

/// Structs and arrays must be smaller than this, because larger ones do not fit into a message.
const MAX_BYTES: usize = 1 << 31;

/// Cached layouts of structs, by definition and by whether nested structs must be `@zero_copy`. Layouts are
/// computed at the end of a text, when all structs are complete.
#[derive(Debug, Default)]
pub(super) struct Layouts(HashMap<(DefId, bool), Option<Part>>);

/// A member's size, its alignment in memory, and the alignment of its first byte in CDR.
#[derive(Clone, Copy, Debug)]
struct Part {
    size: usize,
    align: usize,
    cdr_align: usize,
}
