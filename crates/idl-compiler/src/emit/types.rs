//! The mapping of IDL types to Rust types.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::cx::{Cx, ModuleDepth};
use super::forms::{ArrayForm, SeqForm, TypeUse};
use super::names::aliased_interface;
use crate::model::{ConstValue, Member, Primitive, Type, TypeId};
use crate::work;

impl Cx<'_> {
    /// Returns the Rust type of owned values: members, elements, results.
    pub(super) fn ty(&self, depth: ModuleDepth, u: TypeUse) -> TokenStream {
        work::count_step();
        let rt = &self.runtime_path;
        if u.optional {
            let value = self.ty(depth, TypeUse { optional: false, ..u });
            return quote!(::core::option::Option<#value>);
        }
        if let Some((min, max)) = u.range {
            let number = self.ty(depth, TypeUse { range: None, ..u });
            let (min, max) = (integer(min), integer(max));
            return quote!(#rt::Ranged<#number, #min, #max>);
        }
        match self.model.ty(u.ty) {
            Type::Primitive(primitive) => self.primitive(*primitive),
            Type::String(bound) => self.bounded(quote!(::std::string::String), *bound),
            Type::WString(bound) => self.bounded(quote!(#rt::WString), *bound),
            Type::Sequence { element, bound } => {
                let plain = self.sequence(depth, TypeUse::of(*element, u.non_nil));
                self.bounded(plain, *bound)
            }
            Type::Array { element, dims } => {
                let element = TypeUse::of(*element, u.non_nil);
                match (self.mapping.array_form(u.ty), dims.split_first()) {
                    (ArrayForm::Shared, Some((outer, inner))) => {
                        let (outer, row) =
                            (Literal::u32_unsuffixed(*outer), self.array(depth, element, inner));
                        quote!(#rt::FixedSeq<#row, #outer>)
                    }
                    (ArrayForm::Boxed, _) => {
                        let array = self.array(depth, element, dims);
                        quote!(::std::boxed::Box<#array>)
                    }
                    _ => self.array(depth, element, dims),
                }
            }
            Type::Object => optional(quote!(#rt::ObjectRef), u.non_nil),
            Type::ValueBase => optional(quote!(#rt::Value<#rt::ValueBase>), false),
            Type::Any => quote!(#rt::Any),
            Type::TypeCode => quote!(#rt::TypeCode),
            Type::Map { key, value, bound } => {
                let (key, value) = (
                    self.ty(depth, TypeUse::of(*key, u.non_nil)),
                    self.ty(depth, TypeUse::of(*value, u.non_nil)),
                );
                self.bounded(quote!(::std::collections::BTreeMap<#key, #value>), *bound)
            }
            Type::Fixed { digits, scale } => {
                let (digits, scale) = (Literal::u8_unsuffixed(*digits), Literal::u8_unsuffixed(*scale));
                quote!(#rt::Fixed<#digits, #scale>)
            }
            Type::Named(def) if self.model.is_reference(u.ty) => {
                let alias =
                    self.model.typedef(*def).is_some() && aliased_interface(self.model, *def).is_none();
                let path =
                    if alias { self.paths.item(depth, *def) } else { self.paths.reference(depth, *def) };
                optional(path, u.non_nil)
            }
            Type::Named(def) if self.model.is_value(u.ty) => {
                let path = self.paths.item(depth, *def);
                optional(quote!(#rt::Value<#path>), false)
            }
            Type::Named(def) => self.paths.item(depth, *def),
        }
    }

    pub(super) fn primitive(&self, primitive: Primitive) -> TokenStream {
        let rt = &self.runtime_path;
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
            Primitive::Char => quote!(#rt::Char),
            Primitive::WChar => quote!(#rt::WChar),
            Primitive::LongDouble => quote!(#rt::LongDouble),
        }
    }

    pub(super) fn sequence(&self, depth: ModuleDepth, element: TypeUse) -> TokenStream {
        let rt = &self.runtime_path;
        let item = self.ty(depth, element);
        match self.mapping.seq_form(element.ty) {
            SeqForm::Bytes => quote!(#rt::Bytes),
            SeqForm::Seq => quote!(#rt::Seq<#item>),
            SeqForm::Vec => quote!(::std::vec::Vec<#item>),
        }
    }

    /// Returns the type of a member of a `@zero_copy` struct, in which arrays of any size are inline.
    pub(super) fn inline_type(&self, depth: ModuleDepth, u: TypeUse) -> TokenStream {
        let (stripped, non_nil) = self.mapping.strip(u);
        match self.model.ty(stripped) {
            Type::Array { element, dims } => {
                let element = self.inline_type(depth, TypeUse::of(*element, non_nil));
                nested_array(element, dims)
            }
            _ => self.ty(depth, u),
        }
    }

    /// Returns an expression for the default value of a type from [`inline_type`](Self::inline_type).
    pub(super) fn inline_default(&self, u: TypeUse) -> TokenStream {
        let (stripped, non_nil) = self.mapping.strip(u);
        match self.model.ty(stripped) {
            Type::Array { element, dims } => {
                let element = self.inline_default(TypeUse::of(*element, non_nil));
                dims.iter().fold(element, |item, _| quote!(::core::array::from_fn(|_| #item)))
            }
            _ => self.default(u),
        }
    }

    fn bounded(&self, plain: TokenStream, bound: Option<u32>) -> TokenStream {
        let rt = &self.runtime_path;
        match bound {
            Some(n) => {
                let n = Literal::u32_unsuffixed(n);
                quote!(#rt::Bounded<#plain, #n>)
            }
            None => plain,
        }
    }

    /// Returns `[[T; M]; N]`, without the box of a boxed array.
    pub(super) fn array(&self, depth: ModuleDepth, element: TypeUse, dims: &[u32]) -> TokenStream {
        nested_array(self.ty(depth, element), dims)
    }

    /// Returns an expression for the type's default: zero, empty, nil, the default enumerator or first case.
    pub(super) fn default(&self, u: TypeUse) -> TokenStream {
        if u.optional {
            return quote!(::core::option::Option::None);
        }
        let (ty, non_nil) = self.mapping.strip(u);
        let (Type::Array { element, dims }, form) = (self.model.ty(ty), self.mapping.array_form(ty)) else {
            return quote!(::core::default::Default::default());
        };
        let element = self.default(TypeUse::of(*element, non_nil));
        let rows = dims.get(1..).unwrap_or_default().iter();
        let row = rows.fold(element, |item, _| quote!(::core::array::from_fn(|_| #item)));
        match form {
            ArrayForm::Shared => quote!(::core::default::Default::default()),
            ArrayForm::Inline => quote!(::core::array::from_fn(|_| #row)),
            // Rows are created on the heap, not on the stack. The conversion succeeds: the length is right.
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

    /// Returns an expression for the default value of a member of this type, which must have a default.
    pub(super) fn member_default(&self, depth: ModuleDepth, u: TypeUse, member: &Member) -> TokenStream {
        let rt = &self.runtime_path;
        let Some(value) = member.annotations.default_value() else { return self.default(u) };
        let constant = self.typed_value(depth, u.ty, value);
        let owned = match self.model.stripped(u.ty) {
            Type::String(_) => quote!(::std::string::String::from(#constant)),
            Type::WString(_) => quote!(#rt::WString::from(#constant)),
            _ if u.range.is_some() => quote!(#rt::Ranged::checked_constant(#constant)),
            _ => constant,
        };
        let owned = match self.model.stripped(u.ty) {
            // The value was already checked against the bound.
            Type::String(Some(_)) | Type::WString(Some(_)) => {
                quote!(#rt::Bounded::new(#owned).unwrap_or_default())
            }
            _ => owned,
        };
        if u.optional { quote!(::core::option::Option::Some(#owned)) } else { owned }
    }

    pub(super) fn typed_value(&self, depth: ModuleDepth, ty: TypeId, value: &ConstValue) -> TokenStream {
        let rt = &self.runtime_path;
        let number = self.plain_value(depth, ty, value);
        match self.model.ranged_typedef(ty) {
            Some(_) => quote!(#rt::Ranged::checked_constant(#number)),
            None => number,
        }
    }

    fn plain_value(&self, depth: ModuleDepth, ty: TypeId, value: &ConstValue) -> TokenStream {
        match (value, self.model.stripped(ty)) {
            (ConstValue::Float(value), Type::Primitive(Primitive::Float)) => {
                let bits = Literal::u32_unsuffixed((*value as f32).to_bits());
                quote!(::core::primitive::f32::from_bits(#bits))
            }
            (value, _) => match self.model.unscaled(ty, value) {
                Some(unscaled) => fixed(&self.runtime_path, unscaled),
                None => self.value(depth, value),
            },
        }
    }

    /// Returns a constant or label as an expression. That of a label is also a valid pattern.
    pub(super) fn value(&self, depth: ModuleDepth, value: &ConstValue) -> TokenStream {
        let rt = &self.runtime_path;
        match value {
            ConstValue::Bool(value) => quote!(#value),
            ConstValue::Integer(value) => integer(*value),
            // Bits are emitted, because clippy rejects decimal numbers that are too precise or close to pi.
            ConstValue::Float(value) => {
                let bits = Literal::u64_unsuffixed(value.to_bits());
                quote!(::core::primitive::f64::from_bits(#bits))
            }
            ConstValue::LongDouble(bits) => {
                let bits = Literal::u128_unsuffixed(*bits);
                quote!(#rt::LongDouble::from_bits(#bits))
            }
            ConstValue::Char(byte) => {
                let byte = Literal::u8_unsuffixed(*byte);
                quote!(#rt::Char(#byte))
            }
            ConstValue::WChar(unit) => {
                let unit = Literal::u16_unsuffixed(*unit);
                quote!(#rt::WChar(#unit))
            }
            ConstValue::String(text) | ConstValue::WString(text) => quote!(#text),
            // A constant of type `fixed` without digits and scale has the scale of the value.
            ConstValue::Fixed { unscaled, .. } => fixed(rt, *unscaled),
            ConstValue::Enum { def, ordinal } => {
                let item = self.paths.item(depth, *def);
                let variant = &self.paths.names[*def].members[*ordinal as usize];
                quote!(#item::#variant)
            }
        }
    }
}

/// Returns a `fixed` with these digits, in the type that the context requires.
fn fixed(rt: &TokenStream, unscaled: i128) -> TokenStream {
    let digits = integer(unscaled);
    quote!(#rt::Fixed::checked_constant(#digits))
}

fn integer(value: i128) -> TokenStream {
    let digits = Literal::u128_unsuffixed(value.unsigned_abs());
    if value < 0 { quote!(-#digits) } else { quote!(#digits) }
}

/// Returns `[[T; M]; N]`.
fn nested_array(element: TokenStream, dims: &[u32]) -> TokenStream {
    dims.iter().rev().fold(element, |inner, dim| {
        let dim = Literal::u32_unsuffixed(*dim);
        quote!([#inner; #dim])
    })
}

fn optional(path: TokenStream, non_nil: bool) -> TokenStream {
    if non_nil { path } else { quote!(::core::option::Option<#path>) }
}
