//! `enum`.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::Cx;
use super::docs::doc;
use crate::model::{Def, Enum};

impl Cx<'_> {
    /// Emits an enum with all its implementations.
    pub(super) fn enumeration(&self, depth: usize, def: &Def, body: &Enum) -> TokenStream {
        let v1 = &self.v1;
        let names = &self.names[def.id];
        let item = names.item.at(self.model.rust_span(def.span));
        let path = self.item(depth, def.id);
        let docs = self.item_docs(def, "enum");
        let variants: Vec<_> = (body.enumerators.iter().zip(&names.members))
            .map(|(enumerator, name)| name.at(self.model.rust_span(enumerator.span)))
            .collect();
        let ordinals: Vec<_> = (0..variants.len()).map(Literal::usize_unsuffixed).collect();
        let docs_of_variants = body
            .enumerators
            .iter()
            .map(|enumerator| doc(&enumerator.docs, &format!("Enumerator `{}`.", enumerator.name)));
        let Some(first) = variants.get(body.default_ordinal()) else { return TokenStream::new() };
        let value = body.values().map(|values| {
            let values = values.into_iter().map(Literal::i128_unsuffixed);
            quote! {
                impl #path {
                    /// The number that the IDL's `@value` gives it. It travels as its position.
                    pub const fn value(self) -> ::core::primitive::i32 {
                        match self {
                            #(Self::#variants => #values,)*
                        }
                    }
                }
            }
        });
        let cdr = self.own_code(def.id).map(|traits| self.cdr_by_layout(&path, &traits));
        let hybrid = self.hybrid(depth, def, &self.fixed_least());
        const HAS: &[&str] =
            &["Clone", "Copy", "Debug", "PartialEq", "Eq", "PartialOrd", "Ord", "Hash", "Default"];
        let derives = self.derives(depth, def, HAS);
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
                #(#docs_of_variants #variants = #ordinals,)*
            }

            impl ::core::default::Default for #path {
                fn default() -> Self {
                    Self::#first
                }
            }

            impl #v1::FixedLayout for #path {
                const LAYOUT: #v1::Layout = #v1::Layout::prim(4, 4);

                #[inline(always)]
                fn put(&self, __zorb_w: &mut #v1::FixedWriter<'_>) {
                    __zorb_w.put_u32(*self as ::core::primitive::u32);
                }

                #[inline(always)]
                fn get(__zorb_r: &mut #v1::FixedReader<'_>) -> Self {
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
            #hybrid
        }
    }
}
