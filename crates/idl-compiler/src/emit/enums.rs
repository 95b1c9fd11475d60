//! `enum` and `union`.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::Cx;
use super::docs::{doc, doc_and};
use crate::model::{Case, Def, Enum, TypeId, Union};

/// What a variant of a union holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `V(T)`: one label, so the discriminator follows from the variant.
    One,
    /// `V(Disc, T)`: several labels or `default`.
    Many,
}

impl Cx<'_> {
    /// An enum with all its implementations.
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
        let Some(first) = variants.first() else { return TokenStream::new() };
        let cdr = self.cdr_by_layout(&path);
        quote! {
            #docs
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

            #cdr
        }
    }

    /// A union with all its implementations.
    pub(super) fn union(&self, depth: usize, def: &Def, body: &Union) -> TokenStream {
        let declaration = self.union_declaration(depth, def, body);
        let default = self.union_default(depth, def, body);
        let cdr = self.union_cdr(depth, def, body);
        quote!(#declaration #default #cdr)
    }

    fn discriminator(&self, depth: usize, ty: TypeId) -> TokenStream {
        self.ty(depth, super::types::Use { ty, non_nil: false })
    }

    fn union_declaration(&self, depth: usize, def: &Def, body: &Union) -> TokenStream {
        let names = &self.names[def.id];
        let item = names.item.at(self.model.rust_span(def.span));
        let docs = self.item_docs(def, "union");
        let hash = self
            .model
            .is_hashable_def(def.id)
            .then(|| quote!(#[derive(::core::cmp::Eq, ::core::hash::Hash)]));
        let disc = self.discriminator(depth, body.discriminator);
        let variants = body.cases.iter().zip(&names.members).map(|(case, name)| {
            let name = name.at(self.model.rust_span(case.member.span));
            let ty = self.ty(depth, self.member(def.id, &case.member));
            let labels = self.labels(case);
            let what = format!("Case `{}`: IDL `{}`.", case.member.name, self.model.describe(case.member.ty));
            let labels = format!("Selected by {labels}.");
            let docs = doc_and(&case.member.docs, &what, &labels);
            match shape(case) {
                Shape::One => quote!(#docs #name(#ty),),
                Shape::Many => quote!(#docs #name(#disc, #ty),),
            }
        });
        let other = body.implicit_default.as_ref().map(|_| {
            let other = &names.other;
            quote! {
                #[doc = " No member: the discriminator is none of the labels."]
                #other(#disc),
            }
        });
        quote! {
            #docs
            #[derive(::core::clone::Clone, ::core::fmt::Debug, ::core::cmp::PartialEq)]
            #hash
            pub enum #item {
                #(#variants)*
                #other
            }
        }
    }

    /// The labels of a case, for its documentation.
    fn labels(&self, case: &Case) -> String {
        let mut labels: Vec<String> = case
            .labels
            .iter()
            .map(|label| format!("`{}`", self.model.sources().snippet(label.span).trim()))
            .collect();
        if case.is_default {
            labels.push("every value that is no label of another case".to_owned());
        }
        labels.join(", ")
    }

    /// The first case with its first label.
    fn union_default(&self, depth: usize, def: &Def, body: &Union) -> TokenStream {
        let (Some(case), Some(name)) = (body.cases.first(), self.names[def.id].members.first()) else {
            return TokenStream::new();
        };
        if !self.def_has_default(def.id) {
            return TokenStream::new();
        }
        let path = self.item(depth, def.id);
        let value = self.default(depth, self.member(def.id, &case.member));
        let label = case.labels.first().map(|label| &label.value).or(body.default_value.as_ref());
        let variant = match (shape(case), label) {
            (Shape::Many, Some(label)) => {
                let label = self.value(depth, label);
                quote!(Self::#name(#label, #value))
            }
            _ => quote!(Self::#name(#value)),
        };
        quote! {
            impl ::core::default::Default for #path {
                fn default() -> Self {
                    #variant
                }
            }
        }
    }

    fn union_cdr(&self, depth: usize, def: &Def, body: &Union) -> TokenStream {
        let v1 = &self.v1;
        let names = &self.names[def.id];
        let path = self.item(depth, def.id);
        let disc = self.discriminator(depth, body.discriminator);
        let patterns = |cases: &mut dyn Iterator<Item = &Case>| -> Vec<TokenStream> {
            cases.flat_map(|case| &case.labels).map(|label| self.value(depth, &label.value)).collect()
        };
        let illegal = quote! {
            return ::core::result::Result::Err(
                <#v1::EncodeError as ::core::convert::From<#v1::EncodeErrorKind>>::from(
                    #v1::EncodeErrorKind::IllegalDiscriminator
                )
            );
        };
        let refuse_unless =
            |these: &[TokenStream]| quote!(if !::core::matches!(*__zorb_disc, #(#these)|*) { #illegal });
        let refuse_if = |these: &[TokenStream]| {
            if these.is_empty() {
                return TokenStream::new();
            }
            quote!(if ::core::matches!(*__zorb_disc, #(#these)|*) { #illegal })
        };
        let put_disc = quote!(<#disc as #v1::CdrEncode>::encode(__zorb_disc, __zorb_e)?;);

        let (mut encode, mut decode, mut default, mut discs) = (Vec::new(), Vec::new(), None, Vec::new());
        for (index, (case, name)) in body.cases.iter().zip(&names.members).enumerate() {
            let ty = self.ty(depth, self.member(def.id, &case.member));
            let own = patterns(&mut std::iter::once(case));
            let value = quote!(<#ty as #v1::CdrDecode>::decode(__zorb_d)?);
            match shape(case) {
                Shape::One => {
                    let label = &own[0];
                    encode.push(quote! {
                        Self::#name(__zorb_v) => {
                            <#disc as #v1::CdrEncode>::encode(&(#label), __zorb_e)?;
                            #v1::CdrEncode::encode(__zorb_v, __zorb_e)
                        }
                    });
                    discs.push(quote!(Self::#name(_) => #label,));
                    decode.push(quote!(#label => Self::#name(#value),));
                }
                Shape::Many => {
                    let check = if case.is_default {
                        let others = body.cases.iter().enumerate().filter(|(other, _)| *other != index);
                        refuse_if(&patterns(&mut others.map(|(_, case)| case)))
                    } else {
                        refuse_unless(&own)
                    };
                    encode.push(quote! {
                        Self::#name(__zorb_disc, __zorb_v) => {
                            #check
                            #put_disc
                            #v1::CdrEncode::encode(__zorb_v, __zorb_e)
                        }
                    });
                    discs.push(quote!(Self::#name(__zorb_disc, _) => *__zorb_disc,));
                    if case.is_default {
                        default = Some(quote!(_ => Self::#name(__zorb_disc, #value),));
                    } else {
                        decode.push(quote!(#(#own)|* => Self::#name(__zorb_disc, #value),));
                    }
                }
            }
        }
        if body.implicit_default.is_some() {
            let other = &names.other;
            let check = refuse_if(&patterns(&mut body.cases.iter()));
            encode.push(quote! {
                Self::#other(__zorb_disc) => {
                    #check
                    <#disc as #v1::CdrEncode>::encode(__zorb_disc, __zorb_e)
                }
            });
            discs.push(quote!(Self::#other(__zorb_disc) => *__zorb_disc,));
            default = Some(quote!(_ => Self::#other(__zorb_disc),));
        }
        quote! {
            impl #path {
                #[doc = " The discriminator: which member is selected."]
                pub fn discriminator(&self) -> #disc {
                    match self { #(#discs)* }
                }
            }

            impl #v1::CdrEncode for #path {
                fn encode(&self, __zorb_e: &mut #v1::Encoder) -> ::core::result::Result<(), #v1::EncodeError> {
                    match self { #(#encode)* }
                }
            }

            impl #v1::CdrDecode for #path {
                const MIN_SIZE: ::core::primitive::usize = <#disc as #v1::CdrDecode>::MIN_SIZE;

                fn decode(__zorb_d: &mut #v1::Decoder<'_>) -> ::core::result::Result<Self, #v1::DecodeError> {
                    let __zorb_disc = <#disc as #v1::CdrDecode>::decode(__zorb_d)?;
                    ::core::result::Result::Ok(match __zorb_disc {
                        #(#decode)*
                        #default
                    })
                }
            }
        }
    }
}

/// Whether the discriminator of a case is held beside its value.
fn shape(case: &Case) -> Shape {
    if case.is_default || case.labels.len() > 1 { Shape::Many } else { Shape::One }
}
