//! The mapping of IDL types to Rust types.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::Cx;
use super::ident::RustName;
use super::names::alias_of_interface;
use crate::model::{
    Annotations, Bounds, ConstValue, DefId, DefKind, Member, Primitive, Type, TypeId, ZeroCopyLayout,
};
use crate::work;

/// Maximum size in bytes of an array that is stored inline.
const MAX_INLINE: u64 = 4096;

/// A use of a type, with the properties of references at this location.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) ty: TypeId,
    /// References here are never nil.
    pub(super) non_nil: bool,
    /// The member is optional.
    pub(super) optional: bool,
    /// The minimum and maximum, in the form that `Ranged` uses.
    pub(super) range: Option<(i128, i128)>,
}

impl Use {
    /// A use of a type without further properties.
    pub(super) fn plain(ty: TypeId) -> Use {
        Use::of(ty, false)
    }

    /// A use of a type inside another type.
    pub(super) fn of(ty: TypeId, non_nil: bool) -> Use {
        Use { ty, non_nil, optional: false, range: None }
    }
}

/// The Rust form of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeqForm {
    /// `sequence<octet>`.
    Bytes,
    /// `Seq<T>`, for elements whose memory is their encoding.
    Seq,
    /// `Vec<T>`, for all others.
    Vec,
}

/// The Rust form of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrayForm {
    /// `[T; N]`.
    Inline,
    /// `Box<[T; N]>`, for large arrays.
    Boxed,
    /// `FixedSeq<T, N>`, for large arrays of elements whose memory is their encoding.
    Shared,
}

impl Cx<'_> {
    /// Returns the path of a name in the same module as the item of `id`.
    pub(super) fn path(&self, depth: usize, id: DefId, name: &RustName) -> TokenStream {
        work::step();
        let scope = self.scope_path(depth, id);
        quote!(#scope::#name)
    }

    /// Returns the path of the item of `id`.
    pub(super) fn item(&self, depth: usize, id: DefId) -> TokenStream {
        self.path(depth, id, &self.names[id].item)
    }

    /// Returns the path of an interface's reference type, or of an alias of it.
    pub(super) fn reference(&self, depth: usize, id: DefId) -> TokenStream {
        self.path(depth, id, &self.names[id].reference)
    }

    /// Returns the use of a type for an item with these annotations and this scoped name.
    pub(super) fn place(&self, ty: TypeId, annotations: &Annotations, scoped: &str) -> Use {
        let listed = self.options.non_nil.iter().any(|pattern| matches_name(pattern, scoped));
        let bounds = self.model.bounds(annotations, ty);
        let range =
            bounds.and_then(|Bounds { min, max }| Some((self.bound(ty, &min)?, self.bound(ty, &max)?)));
        Use { range, ..Use::of(ty, listed || annotations.has("non_nil")) }
    }

    /// Returns the Rust type of owned values: members, elements, results.
    pub(super) fn ty(&self, depth: usize, u: Use) -> TokenStream {
        work::step();
        let v1 = &self.v1;
        if u.optional {
            let value = self.ty(depth, Use { optional: false, ..u });
            return quote!(::core::option::Option<#value>);
        }
        if let Some((min, max)) = u.range {
            let number = self.ty(depth, Use { range: None, ..u });
            let (min, max) = (integer(min), integer(max));
            return quote!(#v1::Ranged<#number, #min, #max>);
        }
        match self.model.ty(u.ty) {
            Type::Primitive(primitive) => self.primitive(*primitive),
            Type::String(bound) => self.bounded(quote!(::std::string::String), *bound),
            Type::WString(bound) => self.bounded(quote!(#v1::WString), *bound),
            Type::Sequence { element, bound } => {
                let plain = self.sequence(depth, Use::of(*element, u.non_nil));
                self.bounded(plain, *bound)
            }
            Type::Array { element, dims } => {
                let element = Use::of(*element, u.non_nil);
                match (self.array_form(u.ty), dims.split_first()) {
                    (ArrayForm::Shared, Some((outer, inner))) => {
                        let (outer, row) =
                            (Literal::u32_unsuffixed(*outer), self.array(depth, element, inner));
                        quote!(#v1::FixedSeq<#row, #outer>)
                    }
                    (ArrayForm::Boxed, _) => {
                        let array = self.array(depth, element, dims);
                        quote!(::std::boxed::Box<#array>)
                    }
                    _ => self.array(depth, element, dims),
                }
            }
            Type::Object => optional(quote!(#v1::ObjectRef), u.non_nil),
            Type::ValueBase => optional(quote!(#v1::Value<#v1::ValueBase>), false),
            Type::Any => quote!(#v1::Any),
            Type::TypeCode => quote!(#v1::TypeCode),
            Type::Map { key, value, bound } => {
                let (key, value) =
                    (self.ty(depth, Use::of(*key, u.non_nil)), self.ty(depth, Use::of(*value, u.non_nil)));
                self.bounded(quote!(::std::collections::BTreeMap<#key, #value>), *bound)
            }
            Type::Fixed { digits, scale } => {
                let (digits, scale) = (Literal::u8_unsuffixed(*digits), Literal::u8_unsuffixed(*scale));
                quote!(#v1::Fixed<#digits, #scale>)
            }
            Type::Named(def) if self.model.is_reference(u.ty) => {
                let alias =
                    self.model.typedef(*def).is_some() && alias_of_interface(self.model, *def).is_none();
                let path = if alias { self.item(depth, *def) } else { self.reference(depth, *def) };
                optional(path, u.non_nil)
            }
            Type::Named(def) if self.model.is_value(u.ty) => {
                let path = self.item(depth, *def);
                optional(quote!(#v1::Value<#path>), false)
            }
            Type::Named(def) => self.item(depth, *def),
        }
    }

    /// Returns the Rust type of a basic type.
    pub(super) fn primitive(&self, primitive: Primitive) -> TokenStream {
        let v1 = &self.v1;
        match primitive {
            Primitive::Boolean => quote!(::core::primitive::bool),
            Primitive::Octet | Primitive::UInt8 => quote!(::core::primitive::u8),
            Primitive::Int8 => quote!(::core::primitive::i8),
            Primitive::Short => quote!(::core::primitive::i16),
            Primitive::UShort => quote!(::core::primitive::u16),
            Primitive::Long => quote!(::core::primitive::i32),
            Primitive::ULong => quote!(::core::primitive::u32),
            Primitive::LongLong => quote!(::core::primitive::i64),
            Primitive::ULongLong => quote!(::core::primitive::u64),
            Primitive::Float => quote!(::core::primitive::f32),
            Primitive::Double => quote!(::core::primitive::f64),
            Primitive::Char => quote!(#v1::Char),
            Primitive::WChar => quote!(#v1::WChar),
            Primitive::LongDouble => quote!(#v1::LongDouble),
        }
    }

    /// Returns the Rust type of an unbounded sequence of this element.
    pub(super) fn sequence(&self, depth: usize, element: Use) -> TokenStream {
        let v1 = &self.v1;
        let item = self.ty(depth, element);
        match self.seq_form(element.ty) {
            SeqForm::Bytes => quote!(#v1::Bytes),
            SeqForm::Seq => quote!(#v1::Seq<#item>),
            SeqForm::Vec => quote!(::std::vec::Vec<#item>),
        }
    }

    /// Returns the form of a sequence of this element.
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

    /// Returns whether this is a struct with the annotation `@zero_copy`.
    pub(super) fn is_zero_copy(&self, id: DefId) -> bool {
        let def = self.model.def(id);
        matches!(def.kind, DefKind::Struct(_)) && def.annotations.has("zero_copy")
    }

    /// Returns the type of a member of a `@zero_copy` struct, in which arrays of any size are inline.
    pub(super) fn in_place(&self, depth: usize, u: Use) -> TokenStream {
        let (stripped, non_nil) = self.strip(u);
        match self.model.ty(stripped) {
            Type::Array { element, dims } => {
                let element = self.in_place(depth, Use::of(*element, non_nil));
                nested(element, dims)
            }
            _ => self.ty(depth, u),
        }
    }

    /// Returns an expression for the default value of a type from [`in_place`](Self::in_place).
    pub(super) fn default_in_place(&self, u: Use) -> TokenStream {
        let (stripped, non_nil) = self.strip(u);
        match self.model.ty(stripped) {
            Type::Array { element, dims } => {
                let element = self.default_in_place(Use::of(*element, non_nil));
                dims.iter().fold(element, |item, _| quote!(::core::array::from_fn(|_| #item)))
            }
            _ => self.default(u),
        }
    }

    /// Returns the layout of a plain struct whose elements can be viewed in the receive buffer, because its
    /// memory layout is that of CDR.
    pub(super) fn viewed(&self, id: DefId) -> Option<ZeroCopyLayout> {
        let DefKind::Struct(_) = &self.model.def(id).kind else { return None };
        let fixed = self.model.all_struct_members(id).iter().all(|member| self.is_fixed_member(member));
        if fixed && !self.is_zero_copy(id) { self.model.equal_layout(id) } else { None }
    }

    fn bounded(&self, plain: TokenStream, bound: Option<u32>) -> TokenStream {
        let v1 = &self.v1;
        match bound {
            Some(n) => {
                let n = Literal::u32_unsuffixed(n);
                quote!(#v1::Bounded<#plain, #n>)
            }
            None => plain,
        }
    }

    /// Returns `[[T; M]; N]`, without the box of a boxed array.
    pub(super) fn array(&self, depth: usize, element: Use, dims: &[u32]) -> TokenStream {
        nested(self.ty(depth, element), dims)
    }

    /// Returns the form of the array that this type resolves to.
    pub(super) fn array_form(&self, ty: TypeId) -> ArrayForm {
        let Type::Array { element, dims } = self.model.stripped(ty) else { return ArrayForm::Inline };
        if self.inline_size(*element, dims) <= MAX_INLINE {
            return ArrayForm::Inline;
        }
        match self.seq_form(*element) {
            SeqForm::Vec => ArrayForm::Boxed,
            SeqForm::Bytes | SeqForm::Seq => ArrayForm::Shared,
        }
    }

    /// Returns the total size of all elements.
    fn inline_size(&self, element: TypeId, dims: &[u32]) -> u64 {
        dims.iter().fold(self.size(element), |size, dim| size.saturating_mul(u64::from(*dim)))
    }

    /// Returns the size by which arrays are measured. It is the same on every target, and independent of the
    /// codec. Basic types count their bytes in CDR. Strings, sequences, references and large arrays count 24,
    /// and a union its largest member plus 8.
    fn size(&self, ty: TypeId) -> u64 {
        const HANDLE: u64 = 24;
        match self.model.stripped(ty) {
            Type::Primitive(primitive) => primitive.size() as u64,
            Type::String(_) | Type::WString(_) | Type::Sequence { .. } | Type::Object => HANDLE,
            Type::Any | Type::TypeCode | Type::ValueBase | Type::Map { .. } => HANDLE,
            Type::Fixed { .. } => 16,
            // The size of the elements is computed once. Otherwise nested arrays would double the work with
            // each level.
            Type::Array { element, dims } => match self.inline_size(*element, dims) {
                size if size <= MAX_INLINE => size,
                _ => HANDLE,
            },
            Type::Named(def) => self.facts.sizes.of(*def, || {
                if self.is_zero_copy(*def) {
                    return self.model.zero_copy_layout(*def).map_or(HANDLE, |layout| layout.size as u64);
                }
                // Lazy, because values may contain themselves.
                let sizes = || self.model.member_types(*def).into_iter().map(|ty| self.size(ty));
                match &self.model.def(*def).kind {
                    DefKind::Enum(_) => 4,
                    DefKind::Struct(_) => sizes().fold(0, u64::saturating_add),
                    DefKind::Union(_) => sizes().max().unwrap_or(0).saturating_add(8),
                    DefKind::Bitset(_) | DefKind::Bitmask(_) => self.model.bits(*def).size() as u64,
                    _ => HANDLE,
                }
            }),
        }
    }

    /// Returns whether the Rust type implements `FixedLayout`.
    pub(super) fn is_fixed(&self, ty: TypeId) -> bool {
        match self.model.stripped(ty) {
            _ if self.model.ranged_typedef(ty).is_some() => false,
            Type::Primitive(primitive) => *primitive != Primitive::WChar,
            Type::Array { element, .. } => {
                self.array_form(ty) == ArrayForm::Inline && self.is_fixed(*element)
            }
            Type::Named(def) => match &self.model.def(*def).kind {
                DefKind::Enum(_) => true,
                DefKind::Struct(_) if self.is_zero_copy(*def) => true,
                DefKind::Struct(_) => self.facts.fixed.of(*def, || {
                    let members = self.model.all_struct_members(*def);
                    !members.is_empty() && members.iter().all(|member| self.is_fixed_member(member))
                }),
                DefKind::Bitset(_) | DefKind::Bitmask(_) => true,
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns whether the Rust type of the member implements `FixedLayout`.
    pub(super) fn is_fixed_member(&self, member: &Member) -> bool {
        self.model.is_plain(member) && self.is_fixed(member.ty)
    }

    /// Returns whether the Rust type has a default. All types have one, except references that are never nil
    /// and types that contain them.
    pub(super) fn has_default(&self, u: Use) -> bool {
        let (ty, non_nil) = self.strip(u);
        match self.model.ty(ty) {
            _ if u.optional => true,
            _ if self.model.is_reference(ty) => !non_nil,
            Type::Array { element, .. } => self.has_default(Use::of(*element, non_nil)),
            Type::Named(def) => self.def_has_default(*def),
            _ => true,
        }
    }

    /// Returns whether the struct, exception or union has a default.
    pub(super) fn def_has_default(&self, id: DefId) -> bool {
        self.facts.defaults.of(id, || self.find_def_default(id))
    }

    fn find_def_default(&self, id: DefId) -> bool {
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

    /// Returns an expression for the type's default value: zero, empty, nil, first.
    pub(super) fn default(&self, u: Use) -> TokenStream {
        if u.optional {
            return quote!(::core::option::Option::None);
        }
        let (ty, non_nil) = self.strip(u);
        let (Type::Array { element, dims }, form) = (self.model.ty(ty), self.array_form(ty)) else {
            return quote!(::core::default::Default::default());
        };
        let element = self.default(Use::of(*element, non_nil));
        let rows = dims.get(1..).unwrap_or_default().iter();
        let row = rows.fold(element, |item, _| quote!(::core::array::from_fn(|_| #item)));
        match form {
            ArrayForm::Shared => quote!(::core::default::Default::default()),
            ArrayForm::Inline => quote!(::core::array::from_fn(|_| #row)),
            // Rows are created on the heap, not on the stack. The conversion cannot fail, because the length
            // is right.
            ArrayForm::Boxed => {
                let outer = dims.first().map(|dim| Literal::u32_unsuffixed(*dim));
                quote! {
                    match ::core::convert::TryFrom::<::std::boxed::Box<[_]>>::try_from(
                        ::core::iter::Iterator::collect(
                            ::core::iter::Iterator::take(::core::iter::repeat_with(|| #row), #outer)
                        )
                    ) {
                        ::core::result::Result::Ok(__zorb_array) => __zorb_array,
                        ::core::result::Result::Err(_) => ::core::unreachable!(),
                    }
                }
            }
        }
    }

    /// Resolves all typedefs, and returns whether references in the type are never nil. For a sequence or
    /// array, a typedef determines this for the elements. For a reference itself, its use determines it.
    pub(super) fn strip(&self, u: Use) -> (TypeId, bool) {
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

    /// Returns the type that a typedef names.
    pub(super) fn alias(&self, id: DefId) -> Use {
        let def = self.model.def(id);
        let ty = self.model.typedef(id).map_or(TypeId(0), |alias| alias.ty);
        self.place(ty, &def.annotations, &self.model.scoped_name(id))
    }

    /// Returns the type of a member.
    pub(super) fn member(&self, id: DefId, member: &Member) -> Use {
        let scoped = format!("{}::{}", self.model.scoped_name(id), member.name);
        Use {
            optional: member.annotations.is_optional(),
            ..self.place(member.ty, &member.annotations, &scoped)
        }
    }

    /// Returns an expression for the default value of a member of this type, which must have a default.
    pub(super) fn member_default(&self, depth: usize, u: Use, member: &Member) -> TokenStream {
        let v1 = &self.v1;
        let Some(value) = member.annotations.default_value() else { return self.default(u) };
        let constant = self.typed_value(depth, u.ty, value);
        let owned = match self.model.stripped(u.ty) {
            Type::String(_) => quote!(::std::string::String::from(#constant)),
            Type::WString(_) => quote!(#v1::WString::from(#constant)),
            _ if u.range.is_some() => quote!(#v1::Ranged::checked_constant(#constant)),
            _ => constant,
        };
        let owned = match self.model.stripped(u.ty) {
            // The value was already checked against the bound.
            Type::String(Some(_)) | Type::WString(Some(_)) => {
                quote!(#v1::Bounded::new(#owned).unwrap_or_default())
            }
            _ => owned,
        };
        if u.optional { quote!(::core::option::Option::Some(#owned)) } else { owned }
    }

    /// Returns a bound of a number of this type as an integer: the number itself, the digits of a decimal
    /// number, or the bits of a floating-point number.
    fn bound(&self, ty: TypeId, value: &ConstValue) -> Option<i128> {
        match (value, self.model.stripped(ty)) {
            (ConstValue::Integer(value), _) => Some(*value),
            (ConstValue::Float(value), Type::Primitive(Primitive::Float)) => {
                Some((*value as f32).to_bits().into())
            }
            (ConstValue::Float(value), _) => Some(value.to_bits().into()),
            _ => self.model.unscaled(ty, value),
        }
    }

    /// Returns a constant of this type as an expression.
    pub(super) fn typed_value(&self, depth: usize, ty: TypeId, value: &ConstValue) -> TokenStream {
        let v1 = &self.v1;
        let number = self.plain_value(depth, ty, value);
        match self.model.ranged_typedef(ty) {
            Some(_) => quote!(#v1::Ranged::checked_constant(#number)),
            None => number,
        }
    }

    fn plain_value(&self, depth: usize, ty: TypeId, value: &ConstValue) -> TokenStream {
        match (value, self.model.stripped(ty)) {
            (ConstValue::Float(value), Type::Primitive(Primitive::Float)) => {
                let bits = Literal::u32_unsuffixed((*value as f32).to_bits());
                quote!(::core::primitive::f32::from_bits(#bits))
            }
            (value, _) => match self.model.unscaled(ty, value) {
                Some(unscaled) => fixed(&self.v1, unscaled),
                None => self.value(depth, value),
            },
        }
    }

    /// Returns a constant or label as an expression that is also a valid pattern.
    pub(super) fn value(&self, depth: usize, value: &ConstValue) -> TokenStream {
        let v1 = &self.v1;
        match value {
            ConstValue::Bool(value) => quote!(#value),
            ConstValue::Integer(value) => integer(*value),
            // Bits, because in decimal constants of the user's IDL, clippy would report approximations of pi
            // and excessive precision.
            ConstValue::Float(value) => {
                let bits = Literal::u64_unsuffixed(value.to_bits());
                quote!(::core::primitive::f64::from_bits(#bits))
            }
            ConstValue::LongDouble(bits) => {
                let bits = Literal::u128_unsuffixed(*bits);
                quote!(#v1::LongDouble::from_bits(#bits))
            }
            ConstValue::Char(octet) => {
                let octet = Literal::u8_unsuffixed(*octet);
                quote!(#v1::Char(#octet))
            }
            ConstValue::WChar(unit) => {
                let unit = Literal::u16_unsuffixed(*unit);
                quote!(#v1::WChar(#unit))
            }
            ConstValue::String(text) | ConstValue::WString(text) => quote!(#text),
            // A constant of type `fixed` itself, which has the scale of the value.
            ConstValue::Fixed { unscaled, .. } => fixed(v1, *unscaled),
            ConstValue::Enum { def, ordinal } => {
                let item = self.item(depth, *def);
                let variant = &self.names[*def].members[*ordinal as usize];
                quote!(#item::#variant)
            }
        }
    }
}

/// Returns a `fixed` with these digits, in the type that the context requires.
fn fixed(v1: &TokenStream, unscaled: i128) -> TokenStream {
    let digits = integer(unscaled);
    quote!(#v1::Fixed::checked_constant(#digits))
}

fn integer(value: i128) -> TokenStream {
    let digits = Literal::u128_unsuffixed(value.unsigned_abs());
    if value < 0 { quote!(-#digits) } else { quote!(#digits) }
}

/// Returns `[[T; M]; N]`.
fn nested(element: TokenStream, dims: &[u32]) -> TokenStream {
    dims.iter().rev().fold(element, |inner, dim| {
        let dim = Literal::u32_unsuffixed(*dim);
        quote!([#inner; #dim])
    })
}

fn optional(path: TokenStream, non_nil: bool) -> TokenStream {
    if non_nil { path } else { quote!(::core::option::Option<#path>) }
}

/// Returns whether a scoped name matches a pattern of the option `non_nil`: a scoped name, or a prefix
/// followed by `*`.
pub(super) fn matches_name(pattern: &str, scoped: &str) -> bool {
    let pattern = pattern.trim_start_matches("::");
    match pattern.strip_suffix('*') {
        Some(prefix) => scoped.starts_with(prefix),
        None => scoped == pattern,
    }
}
