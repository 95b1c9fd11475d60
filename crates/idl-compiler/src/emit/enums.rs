//! The code for `enum`.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::cx::{Cx, ModuleDepth};
use super::docs::doc;
use super::{interpreted, structs};
use crate::model::{Def, Enum};

pub(super) fn enumeration(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, body: &Enum) -> TokenStream {
    let rt = &cx.runtime_path;
    let names = &cx.paths.names[def.id];
    let item = names.item.at(cx.model.rust_span(def.span));
    let path = cx.paths.item(depth, def.id);
    let docs = cx.item_docs(def, "enum");
    let variants: Vec<_> = (body.enumerators.iter().zip(&names.members))
        .map(|(enumerator, name)| name.at(cx.model.rust_span(enumerator.span)))
        .collect();
    let ordinals: Vec<_> = (0..variants.len()).map(Literal::usize_unsuffixed).collect();
    let enumerator_docs = (body.enumerators.iter())
        .map(|enumerator| doc(&enumerator.docs, &format!("Enumerator `{}`.", enumerator.name)));
    let Some(first) = variants.get(body.default_ordinal()) else { return TokenStream::new() };
    let value = body.values().map(|values| {
        let values = values.into_iter().map(Literal::i128_unsuffixed);
        quote! {
            impl #path {
                /// Returns the number that `@value` in the IDL assigns. Messages contain the position.
                pub const fn value(self) -> ::core::primitive::i32 {
                    match self {
                        #(Self::#variants => #values,)*
                    }
                }
            }
        }
    });
    let cdr = cx.marshalling_traits(def.id).map(|traits| structs::cdr_by_layout(cx, &path, &traits));
    let interpreted = interpreted::impls(cx, depth, def, &structs::fixed_min_size(cx));
    const IMPLEMENTED_TRAITS: &[&str] =
        &["Clone", "Copy", "Debug", "PartialEq", "Eq", "PartialOrd", "Ord", "Hash", "Default"];
    let derives = cx.derives(depth, def, IMPLEMENTED_TRAITS);
    quote! {
        #docs
        #derives
        #[derive(
            ::core::clone::Clone,
            ::core::marker::Copy,
            ::core::fmt::Debug,
            ::core::cmp::PartialEq,
            ::core::cmp::Eq,
            ::core::cmp::PartialOrd,
            ::core::cmp::Ord,
            ::core::hash::Hash
        )]
        #[repr(u32)]
        pub enum #item {
            #(#enumerator_docs #variants = #ordinals,)*
        }

        impl ::core::default::Default for #path {
            fn default() -> Self {
                Self::#first
            }
        }

        impl #rt::FixedLayout for #path {
            const LAYOUT: #rt::Layout = #rt::Layout::primitive(4, 4);

            #[inline(always)]
            fn put(&self, __zorb_w: &mut #rt::FixedWriter<'_>) {
                __zorb_w.put_u32(*self as ::core::primitive::u32);
            }

            #[inline(always)]
            fn get(__zorb_r: &mut #rt::FixedReader<'_>) -> Self {
                match __zorb_r.read_u32() {
                    #(#ordinals => Self::#variants,)*
                    _ => {
                        __zorb_r.fail();
                        Self::#first
                    }
                }
            }
        }

        #value
        #cdr
        #interpreted
    }
}
