//! The code for `bitset` and `bitmask`: integers whose bits have names.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::cx::{Cx, ModuleDepth};
use super::docs::doc;
use super::forms::Traits;
use super::structs;
use crate::model::{BitField, Bitmask, Bitset, Def, Primitive};

const IMPLEMENTED_TRAITS: &[&str] =
    &["Clone", "Copy", "Debug", "Default", "PartialEq", "Eq", "PartialOrd", "Ord", "Hash"];

fn always_derived() -> TokenStream {
    quote! {
        #[derive(
            ::core::clone::Clone,
            ::core::marker::Copy,
            ::core::default::Default,
            ::core::cmp::PartialEq,
            ::core::cmp::Eq,
            ::core::cmp::PartialOrd,
            ::core::cmp::Ord,
            ::core::hash::Hash
        )]
        #[repr(transparent)]
    }
}

pub(super) fn bitmask(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, body: &Bitmask) -> TokenStream {
    let item = cx.paths.names[def.id].item.at(cx.model.rust_span(def.span));
    let path = cx.paths.item(depth, def.id);
    let holder = cx.primitive(cx.model.holder_type(def.id));
    let docs = cx.item_docs(def, "bitmask");
    let flags: Vec<_> = (body.flags.iter().zip(&cx.paths.names[def.id].members))
        .map(|(flag, name)| {
            let value = Literal::u64_unsuffixed(1 << flag.position);
            let docs = doc(&flag.docs, &format!("Flag `{}`: bit {}.", flag.name, flag.position));
            (name.at(cx.model.rust_span(flag.span)), value, docs)
        })
        .collect();
    let all = Literal::u64_unsuffixed(body.flags.iter().fold(0, |all, flag| all | 1 << flag.position));
    let constants =
        flags.iter().map(|(name, value, docs)| quote!(#docs pub const #name: Self = Self(#value);));
    let name_writes = flags.iter().map(|(name, ..)| {
        let text = name.to_string();
        quote! {
            if __zorb_rest & Self::#name.0 != 0 {
                __zorb_f.write_str(__zorb_bar)?;
                __zorb_f.write_str(#text)?;
                __zorb_bar = " | ";
                __zorb_rest &= !Self::#name.0;
            }
        }
    });
    let operators =
        [("BitOr", "bitor", quote!(|)), ("BitAnd", "bitand", quote!(&)), ("BitXor", "bitxor", quote!(^))];
    let operators = operators.into_iter().map(|(name, method, operator)| {
        let (with, with_method) = (format_ident!("{name}Assign"), format_ident!("{method}_assign"));
        let (name, method) = (format_ident!("{name}"), format_ident!("{method}"));
        quote! {
            impl ::core::ops::#name for #path {
                type Output = Self;

                fn #method(self, __zorb_other: Self) -> Self {
                    Self(self.0 #operator __zorb_other.0)
                }
            }

            impl ::core::ops::#with for #path {
                fn #with_method(&mut self, __zorb_other: Self) {
                    *self = *self #operator __zorb_other;
                }
            }
        }
    });
    let (derives, more) = (always_derived(), cx.derives(depth, def, IMPLEMENTED_TRAITS));
    let cdr = cdr_as_integer(cx, &path, cx.model.holder_type(def.id));
    quote! {
        #docs
        #derives
        #more
        pub struct #item(#holder);

        impl #path {
            #(#constants)*

            /// Returns a value without flags.
            pub const fn empty() -> Self {
                Self(0)
            }

            /// Returns all flags that the IDL names.
            pub const fn all() -> Self {
                Self(#all)
            }

            /// Returns the flags of these bits. Bits that the IDL does not name are kept.
            pub const fn from_bits(bits: #holder) -> Self {
                Self(bits)
            }

            /// Returns the bits.
            pub const fn bits(self) -> #holder {
                self.0
            }

            /// Returns whether no flag is set.
            pub const fn is_empty(self) -> ::core::primitive::bool {
                self.0 == 0
            }

            /// Returns whether all flags of `other` are set.
            pub const fn contains(self, other: Self) -> ::core::primitive::bool {
                self.0 & other.0 == other.0
            }

            /// Returns whether any flag of `other` is set.
            pub const fn intersects(self, other: Self) -> ::core::primitive::bool {
                self.0 & other.0 != 0
            }

            /// Returns the flags of `self` and `other`.
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Returns the flags of `self` that are not flags of `other`.
            pub const fn difference(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            /// Sets the flags of `other`.
            pub fn insert(&mut self, other: Self) {
                self.0 |= other.0;
            }

            /// Clears the flags of `other`.
            pub fn remove(&mut self, other: Self) {
                self.0 &= !other.0;
            }
        }

        #(#operators)*

        impl ::core::ops::Not for #path {
            type Output = Self;

            /// Returns all flags that the IDL names and that are not set.
            fn not(self) -> Self {
                Self(!self.0) & Self::all()
            }
        }

        impl ::core::iter::FromIterator<#path> for #path {
            fn from_iter<S: ::core::iter::IntoIterator<Item = Self>>(__zorb_flags: S) -> Self {
                ::core::iter::Iterator::fold(
                    ::core::iter::IntoIterator::into_iter(__zorb_flags),
                    Self::empty(),
                    Self::union,
                )
            }
        }

        impl ::core::fmt::Debug for #path {
            /// Formats the names of the flags, followed by the bits without a name.
            fn fmt(&self, __zorb_f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let (mut __zorb_bar, mut __zorb_rest) = ("", self.0);
                #(#name_writes)*
                if __zorb_rest != 0 || self.0 == 0 {
                    __zorb_f.write_str(__zorb_bar)?;
                    ::core::fmt::LowerHex::fmt(&__zorb_rest, __zorb_f)?;
                }
                ::core::result::Result::Ok(())
            }
        }

        #cdr
    }
}

pub(super) fn bitset(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, body: &Bitset) -> TokenStream {
    let item = cx.paths.names[def.id].item.at(cx.model.rust_span(def.span));
    let path = cx.paths.item(depth, def.id);
    let bits = cx.model.holder_type(def.id);
    let holder = cx.primitive(bits);
    let docs = cx.item_docs(def, "bitset");
    let (mut shift, mut named_bits) = (0, 0);
    let (mut accessors, mut shown_fields) = (Vec::new(), Vec::new());
    for (field, name) in bit_fields(cx, def) {
        let width = u32::from(field.width);
        if let Some(name) = name {
            named_bits |= (u64::MAX >> (64 - width)) << shift;
            accessors.push(field_accessors(cx, field, &name, bits, shift));
            let text = name.to_string();
            let text = text.strip_prefix("r#").unwrap_or(&text);
            shown_fields.push(quote!(.field(#text, &self.#name())));
        }
        shift += width;
    }
    let field_bits = match named_bits.count_ones() as usize == 8 * bits.size() {
        true => quote!(bits),
        false => {
            let named_bits = Literal::u64_unsuffixed(named_bits);
            quote!(bits & #named_bits)
        }
    };
    let to_base = body.base.map(|base| {
        let base_path = cx.paths.item(depth, base);
        let low = cast(cx, quote!(__zorb_bits.0), bits, cx.model.holder_type(base));
        quote! {
            impl ::core::convert::From<#path> for #base_path {
                /// Returns the fields of the base.
                fn from(__zorb_bits: #path) -> Self {
                    Self::from_bits(#low)
                }
            }
        }
    });
    let text = cx.paths.names[def.id].item.to_string();
    let (derives, more) = (always_derived(), cx.derives(depth, def, IMPLEMENTED_TRAITS));
    let cdr = cdr_as_integer(cx, &path, bits);
    quote! {
        #docs
        #derives
        #more
        pub struct #item(#holder);

        impl #path {
            /// Returns the fields in these bits. Bits that belong to no field are cleared.
            pub const fn from_bits(bits: #holder) -> Self {
                Self(#field_bits)
            }

            /// Returns the bits. Bits that belong to no field are 0.
            pub const fn bits(self) -> #holder {
                self.0
            }

            #(#accessors)*
        }

        #to_base

        impl ::core::fmt::Debug for #path {
            fn fmt(&self, __zorb_f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                __zorb_f.debug_struct(#text) #(#shown_fields)* .finish()
            }
        }

        #cdr
    }
}

/// Returns all fields of a bitset with their Rust names. The fields of the bases come first.
fn bit_fields<'c>(cx: &'c Cx<'_>, def: &Def) -> Vec<(&'c BitField, Option<Ident>)> {
    let base = |id| cx.model.bitset(id).and_then(|body| body.base);
    let mut owners: Vec<_> = std::iter::successors(Some(def.id), |id| base(*id)).collect();
    owners.reverse();
    let mut fields = Vec::new();
    for owner in owners {
        let Some(body) = cx.model.bitset(owner) else { continue };
        let mut names = cx.paths.names[owner].members.iter();
        for field in &body.fields {
            let name = field.name.as_ref().and_then(|_| names.next());
            fields.push((field, name.map(|name| name.at(cx.model.rust_span(field.span)))));
        }
    }
    fields
}

/// Emits the three methods of a field: `field`, `with_field` and `set_field`.
fn field_accessors(cx: &Cx<'_>, field: &BitField, name: &Ident, bits: Primitive, shift: u32) -> TokenStream {
    let rt = &cx.runtime_path;
    let stem = name.to_string();
    let stem = stem.strip_prefix("r#").unwrap_or(&stem);
    let (with, set) = (format_ident!("with_{stem}"), format_ident!("set_{stem}"));
    let ty = cx.primitive(field.ty);
    let width = u32::from(field.width);
    let all = cast(cx, quote!(self.0), bits, Primitive::ULongLong);
    let (shift, width_literal) = (Literal::u32_unsuffixed(shift), Literal::u32_unsuffixed(width));
    let location = quote!(#all, #shift, #width_literal);
    let signed = field.ty.integer_range().is_some_and(|(min, _)| min < 0);
    let carrier = if signed { Primitive::LongLong } else { Primitive::ULongLong };
    let get = match (field.ty, signed) {
        (Primitive::Boolean, _) => quote!(#rt::bit_field(#location) != 0),
        (ty, true) => cast(cx, quote!(#rt::signed_bit_field(#location)), carrier, ty),
        (ty, false) => cast(cx, quote!(#rt::bit_field(#location)), carrier, ty),
    };
    let value = match field.ty {
        Primitive::Boolean => quote!(value as ::core::primitive::u64),
        ty => cast(cx, quote!(value), ty, carrier),
    };
    let fits = field.ty == Primitive::Boolean || field.ty.size() * 8 == usize::from(field.width);
    let name_in_idl = field.name.as_deref().unwrap_or_default();
    let docs =
        doc(&field.docs, &format!("Field `{name_in_idl}`: {width} bits, IDL `{}`.", field.ty.idl_name()));
    let (with_docs, set_docs) =
        (format!("Returns a copy with this value of `{name_in_idl}`."), format!("Sets `{name_in_idl}`."));
    let low = |expression| cast(cx, expression, Primitive::ULongLong, bits);
    let getter = quote! {
        #docs
        pub const fn #name(self) -> #ty {
            #get
        }
    };
    if fits {
        let value = if signed { quote!((#value) as ::core::primitive::u64) } else { value };
        let replaced = low(quote!(#rt::replace_bit_field_truncated(#location, #value)));
        return quote! {
            #getter

            #[doc = #with_docs]
            pub const fn #with(self, value: #ty) -> Self {
                Self(#replaced)
            }

            #[doc = #set_docs]
            pub fn #set(&mut self, value: #ty) {
                *self = self.#with(value);
            }
        };
    }
    let function = if signed { quote!(try_replace_signed_bit_field) } else { quote!(try_replace_bit_field) };
    let new_bits = low(quote!(__zorb_bits));
    quote! {
        #getter

        #[doc = #with_docs]
        ///
        /// # Errors
        /// The value does not fit in the bits of the field.
        pub const fn #with(self, value: #ty) -> ::core::result::Result<Self, #rt::BitsError> {
            match #rt::#function(#location, #value) {
                ::core::result::Result::Ok(__zorb_bits) => ::core::result::Result::Ok(Self(#new_bits)),
                ::core::result::Result::Err(__zorb_error) => ::core::result::Result::Err(__zorb_error),
            }
        }

        #[doc = #set_docs]
        ///
        /// # Errors
        /// The value does not fit in the bits of the field.
        pub fn #set(&mut self, value: #ty) -> ::core::result::Result<(), #rt::BitsError> {
            *self = self.#with(value)?;
            ::core::result::Result::Ok(())
        }
    }
}

/// Returns the cast of an integer to another type, or the expression itself if the types are equal.
fn cast(cx: &Cx<'_>, expression: TokenStream, from: Primitive, to: Primitive) -> TokenStream {
    let same = |p: Primitive| if p == Primitive::Octet { Primitive::UInt8 } else { p };
    if same(from) == same(to) {
        return expression;
    }
    let to = cx.primitive(to);
    quote!(#expression as #to)
}

fn cdr_as_integer(cx: &Cx<'_>, path: &TokenStream, bits: Primitive) -> TokenStream {
    let rt = &cx.runtime_path;
    let size = Literal::usize_unsuffixed(bits.size());
    let (put, read) = (format_ident!("put_u{}", 8 * bits.size()), format_ident!("read_u{}", 8 * bits.size()));
    let traits = Traits { encode: quote!(#rt::CdrEncode), decode: quote!(#rt::CdrDecode) };
    let cdr = structs::cdr_by_layout(cx, path, &traits);
    quote! {
        impl #rt::FixedLayout for #path {
            const LAYOUT: #rt::Layout = #rt::Layout::primitive(#size, #size);

            #[inline(always)]
            fn put(&self, __zorb_w: &mut #rt::FixedWriter<'_>) {
                __zorb_w.#put(self.0);
            }

            #[inline(always)]
            fn get(__zorb_r: &mut #rt::FixedReader<'_>) -> Self {
                Self::from_bits(__zorb_r.#read())
            }
        }

        #cdr
    }
}
