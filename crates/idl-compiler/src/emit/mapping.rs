//! Decisions about the Rust form of IDL types. Other modules emit the code for the chosen forms.

use std::cell::RefCell;
use std::collections::HashMap;

use super::forms::{ArrayForm, Form, MAX_INLINE_BYTES, Passing, SeqForm, TypeUse};
use super::options::{Options, matches_name};
use crate::model::{
    Annotations, Bounds, ConstValue, Def, DefId, DefKind, Member, Model, Primitive, Type, TypeId,
    ZeroCopyLayout,
};
use crate::work;

pub(super) struct Mapping<'a> {
    model: &'a Model,
    options: &'a Options,
    caches: Caches,
}

/// Cached properties of definitions. If they were not cached, nested structs could take exponential time.
#[derive(Default)]
struct Caches {
    /// The size that [`Mapping::measured_size`] returns.
    sizes: Cache<u64>,
    /// Whether a struct has a layout that is known at compile time.
    is_fixed: Cache<bool>,
    has_default: Cache<bool>,
}

/// The cached values of one property, by definition.
#[derive(Default)]
pub(super) struct Cache<T>(RefCell<HashMap<DefId, T>>);

impl<T: Copy> Cache<T> {
    pub(super) fn get_or_compute(&self, id: DefId, compute: impl FnOnce() -> T) -> T {
        work::count_step();
        let cached = self.0.borrow().get(&id).copied();
        cached.unwrap_or_else(|| {
            let value = compute();
            self.0.borrow_mut().insert(id, value);
            value
        })
    }
}

impl<'a> Mapping<'a> {
    pub(super) fn new(model: &'a Model, options: &'a Options) -> Self {
        Mapping { model, options, caches: Caches::default() }
    }

    /// Returns the abstract interfaces that an interface derives from, or a value type supports.
    pub(super) fn abstract_bases(&self, id: DefId) -> Vec<DefId> {
        self.model.all_bases(id).into_iter().filter(|base| self.model.is_abstract_interface(*base)).collect()
    }

    pub(super) fn default_derives(&self, id: DefId) -> &'static [&'static str] {
        match (self.model.is_hashable_def(id), self.def_has_default(id)) {
            (true, true) => &["Clone", "Debug", "PartialEq", "Default", "Eq", "Hash"],
            (true, false) => &["Clone", "Debug", "PartialEq", "Eq", "Hash"],
            (false, true) => &["Clone", "Debug", "PartialEq", "Default"],
            (false, false) => &["Clone", "Debug", "PartialEq"],
        }
    }

    pub(super) fn passing(&self, u: TypeUse) -> Passing {
        let plain = |form| Passing { form, bound: None };
        match self.model.stripped(u.ty) {
            Type::Primitive(_) | Type::Fixed { .. } => plain(Form::Value),
            Type::String(bound) => Passing { form: Form::Str, bound: *bound },
            Type::WString(bound) => Passing { form: Form::WStr, bound: *bound },
            Type::Sequence { element, bound } => {
                let form = if self.seq_form(*element) == SeqForm::Vec { Form::Slice } else { Form::Shared };
                Passing { form, bound: *bound }
            }
            Type::Array { .. } if self.array_form(u.ty) == ArrayForm::Boxed => plain(Form::ArrayRef),
            Type::Array { .. } => plain(Form::Borrow),
            Type::Object | Type::ValueBase => plain(Form::Reference),
            Type::Any | Type::TypeCode | Type::Map { .. } => plain(Form::Borrow),
            Type::Named(def) => match self.model.def(*def).kind {
                DefKind::Enum(_) | DefKind::Native | DefKind::Bitset(_) | DefKind::Bitmask(_) => {
                    plain(Form::Value)
                }
                DefKind::Interface(_) | DefKind::Value(_) | DefKind::ValueBox(_) => plain(Form::Reference),
                _ => plain(Form::Borrow),
            },
        }
    }

    pub(super) fn is_native(&self, u: TypeUse) -> bool {
        match self.model.stripped(u.ty) {
            Type::Named(def) => matches!(self.model.def(*def).kind, DefKind::Native),
            _ => false,
        }
    }

    /// Returns whether the client's method takes any type that converts to the type of this parameter.
    pub(super) fn is_converted_by_client(&self, u: TypeUse, inout: bool) -> bool {
        let Passing { form, bound } = self.passing(u);
        match form {
            Form::WStr => !inout,
            Form::Shared | Form::Reference => !(inout && bound.is_some()),
            _ => false,
        }
    }

    pub(super) fn use_of(&self, ty: TypeId, annotations: &Annotations, scoped: &str) -> TypeUse {
        let listed = self.options.non_nil.iter().any(|pattern| matches_name(pattern, scoped));
        let bounds = self.model.bounds(annotations, ty);
        let range = bounds.and_then(|Bounds { min, max }| {
            Some((self.bound_as_integer(ty, &min)?, self.bound_as_integer(ty, &max)?))
        });
        TypeUse { range, ..TypeUse::of(ty, listed || annotations.has("non_nil")) }
    }

    pub(super) fn seq_form(&self, element: TypeId) -> SeqForm {
        match self.model.stripped(element) {
            _ if self.model.ranged_typedef(element).is_some() => SeqForm::Vec,
            Type::Primitive(Primitive::Octet) => SeqForm::Bytes,
            Type::Primitive(Primitive::Boolean | Primitive::WChar) => SeqForm::Vec,
            Type::Primitive(_) => SeqForm::Seq,
            Type::Named(def) if self.is_zero_copy(*def) => SeqForm::Seq,
            _ => SeqForm::Vec,
        }
    }

    pub(super) fn is_zero_copy(&self, id: DefId) -> bool {
        let def = self.model.def(id);
        matches!(def.kind, DefKind::Struct(_)) && def.annotations.has("zero_copy")
    }

    /// Returns the layout of a struct whose memory layout is that of CDR, unless it is `@zero_copy`. A
    /// servant can view the elements of a sequence of such structs in the received message.
    pub(super) fn view_layout(&self, id: DefId) -> Option<ZeroCopyLayout> {
        let DefKind::Struct(_) = &self.model.def(id).kind else { return None };
        let fixed = self.model.all_struct_members(id).iter().all(|member| self.is_fixed_member(member));
        if fixed && !self.is_zero_copy(id) { self.model.equal_layout(id) } else { None }
    }

    /// Returns the form of the array that this type resolves to.
    pub(super) fn array_form(&self, ty: TypeId) -> ArrayForm {
        let Type::Array { element, dims } = self.model.stripped(ty) else { return ArrayForm::Inline };
        if self.inline_size(*element, dims) <= MAX_INLINE_BYTES {
            return ArrayForm::Inline;
        }
        match self.seq_form(*element) {
            SeqForm::Vec => ArrayForm::Boxed,
            SeqForm::Bytes | SeqForm::Seq => ArrayForm::Shared,
        }
    }

    fn inline_size(&self, element: TypeId, dims: &[u32]) -> u64 {
        dims.iter().fold(self.measured_size(element), |size, dim| size.saturating_mul(u64::from(*dim)))
    }

    /// Returns a size in bytes that decides whether an array of this type is stored inline. It is the same on
    /// every target, and independent of the codec. The size of a basic type is its size in CDR. The size of
    /// strings, sequences, references and large arrays is 24, and that of a union is the size of its largest
    /// member plus 8.
    fn measured_size(&self, ty: TypeId) -> u64 {
        const HANDLE_SIZE: u64 = 24;
        match self.model.stripped(ty) {
            Type::Primitive(primitive) => primitive.size() as u64,
            Type::String(_) | Type::WString(_) | Type::Sequence { .. } | Type::Object => HANDLE_SIZE,
            Type::Any | Type::TypeCode | Type::ValueBase | Type::Map { .. } => HANDLE_SIZE,
            Type::Fixed { .. } => 16,
            // The element size is computed only once, because each level of arrays would double the work.
            Type::Array { element, dims } => match self.inline_size(*element, dims) {
                size if size <= MAX_INLINE_BYTES => size,
                _ => HANDLE_SIZE,
            },
            Type::Named(def) => self.caches.sizes.get_or_compute(*def, || {
                if self.is_zero_copy(*def) {
                    return self
                        .model
                        .zero_copy_layout(*def)
                        .map_or(HANDLE_SIZE, |layout| layout.size as u64);
                }
                // The sizes are computed only when needed, because value types may contain themselves.
                let sizes = || self.model.member_types(*def).into_iter().map(|ty| self.measured_size(ty));
                match &self.model.def(*def).kind {
                    DefKind::Enum(_) => 4,
                    DefKind::Struct(_) => sizes().fold(0, u64::saturating_add),
                    DefKind::Union(_) => sizes().max().unwrap_or(0).saturating_add(8),
                    DefKind::Bitset(_) | DefKind::Bitmask(_) => self.model.holder_type(*def).size() as u64,
                    _ => HANDLE_SIZE,
                }
            }),
        }
    }

    fn is_fixed(&self, ty: TypeId) -> bool {
        match self.model.stripped(ty) {
            _ if self.model.ranged_typedef(ty).is_some() => false,
            Type::Primitive(primitive) => *primitive != Primitive::WChar,
            Type::Array { element, .. } => {
                self.array_form(ty) == ArrayForm::Inline && self.is_fixed(*element)
            }
            Type::Named(def) => match &self.model.def(*def).kind {
                DefKind::Enum(_) => true,
                DefKind::Struct(_) if self.is_zero_copy(*def) => true,
                DefKind::Struct(_) => self.caches.is_fixed.get_or_compute(*def, || {
                    let members = self.model.all_struct_members(*def);
                    !members.is_empty() && members.iter().all(|member| self.is_fixed_member(member))
                }),
                DefKind::Bitset(_) | DefKind::Bitmask(_) => true,
                _ => false,
            },
            _ => false,
        }
    }

    pub(super) fn is_fixed_member(&self, member: &Member) -> bool {
        self.model.is_plain(member) && self.is_fixed(member.ty)
    }

    /// Returns whether the Rust type has a default. Native types and references that are never nil have none.
    /// Sequences, maps and optional members always have one.
    pub(super) fn has_default(&self, u: TypeUse) -> bool {
        let (ty, non_nil) = self.strip(u);
        match self.model.ty(ty) {
            _ if u.optional => true,
            _ if self.model.is_reference(ty) => !non_nil,
            Type::Array { element, .. } => self.has_default(TypeUse::of(*element, non_nil)),
            Type::Named(def) => self.def_has_default(*def),
            _ => true,
        }
    }

    pub(super) fn def_has_default(&self, id: DefId) -> bool {
        self.caches.has_default.get_or_compute(id, || self.compute_has_default(id))
    }

    fn compute_has_default(&self, id: DefId) -> bool {
        match &self.model.def(id).kind {
            DefKind::Struct(s) | DefKind::Exception(s) => {
                s.members.iter().all(|member| self.has_default(self.member(id, member)))
                    && s.base.is_none_or(|base| self.def_has_default(base))
            }
            DefKind::Native => false,
            DefKind::Union(u) => {
                u.cases.first().is_none_or(|case| self.has_default(self.member(id, &case.member)))
            }
            _ => true,
        }
    }

    /// Resolves all typedefs. Returns the type, and whether references in it are never nil. If the type is a
    /// reference, its use determines this. If it is a sequence or array, the last typedef does.
    pub(super) fn strip(&self, u: TypeUse) -> (TypeId, bool) {
        let (mut ty, mut non_nil) = (u.ty, u.non_nil);
        if self.model.is_reference(ty) {
            return (self.model.strip(ty), non_nil);
        }
        while let Type::Named(id) = self.model.ty(ty) {
            let Some(alias) = self.model.typedef(*id) else { break };
            non_nil = self.alias(*id).non_nil;
            ty = alias.ty;
        }
        (ty, non_nil)
    }

    pub(super) fn alias(&self, id: DefId) -> TypeUse {
        let def = self.model.def(id);
        let ty = self.model.typedef(id).map_or(TypeId(0), |alias| alias.ty);
        self.use_of(ty, &def.annotations, &self.model.scoped_name(id))
    }

    pub(super) fn member(&self, id: DefId, member: &Member) -> TypeUse {
        let scoped = format!("{}::{}", self.model.scoped_name(id), member.name);
        let optional = member.annotations.is_optional();
        TypeUse { optional, ..self.use_of(member.ty, &member.annotations, &scoped) }
    }

    /// Returns a bound as an integer: that of a floating-point type as its bits, of `fixed` as its digits.
    fn bound_as_integer(&self, ty: TypeId, value: &ConstValue) -> Option<i128> {
        match (value, self.model.stripped(ty)) {
            (ConstValue::Integer(value), _) => Some(*value),
            (ConstValue::Float(value), Type::Primitive(Primitive::Float)) => {
                Some((*value as f32).to_bits().into())
            }
            (ConstValue::Float(value), _) => Some(value.to_bits().into()),
            _ => self.model.unscaled(ty, value),
        }
    }

    /// Returns whether the Rust type is a handle to a value, or an unbounded sequence of such handles.
    pub(super) fn holds_values(&self, ty: TypeId) -> bool {
        match self.model.stripped(ty) {
            Type::Sequence { element, bound: None } => self.is_value_handle(*element),
            _ => self.is_value_handle(ty),
        }
    }

    /// Returns whether the Rust type is a handle to a value or to an abstract interface.
    fn is_value_handle(&self, ty: TypeId) -> bool {
        let is_abstract = match self.model.stripped(ty) {
            Type::Named(def) => self.model.is_abstract_interface(*def),
            _ => false,
        };
        is_abstract || self.model.is_value(ty)
    }

    pub(super) fn box_content(&self, def: &Def, ty: TypeId) -> TypeUse {
        self.use_of(ty, &def.annotations, &self.model.scoped_name(def.id))
    }

    pub(super) fn value_bases(&self, id: DefId) -> Vec<DefId> {
        self.model.all_bases(id).into_iter().filter(|base| self.model.value(*base).is_some()).collect()
    }
}
