//! The code for `union`: a Rust enum whose variants correspond to the cases.

use proc_macro2::TokenStream;
use quote::quote;

use super::cx::{Cx, ModuleDepth};
use super::docs::doc_and_paragraph;
use super::forms::{Traits, TypeUse};
use super::interpreted;
use crate::model::{Case, ConstValue, Def, TypeId, Union};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `V(T)`: the case has one label, so the variant determines the discriminator.
    Value,
    /// `V(Disc, T)`: the case has several labels or `default`.
    DiscriminatorAndValue,
}

/// The arms of one variant in the three `match` expressions.
struct Arms {
    encode: TokenStream,
    decode: TokenStream,
    discriminator: TokenStream,
}

pub(super) fn union(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, body: &Union) -> TokenStream {
    let declaration = union_declaration(cx, depth, def, body);
    let default = union_default(cx, depth, def, body);
    let discriminator = union_discriminator(cx, depth, def, body);
    let cdr = cx.marshalling_traits(def.id).map(|traits| union_cdr(cx, depth, def, body, &traits));
    let interpreted = interpreted::impls(cx, depth, def, &union_min_size(cx, depth, body));
    quote!(#declaration #default #discriminator #cdr #interpreted)
}

fn discriminator(cx: &Cx<'_>, depth: ModuleDepth, ty: TypeId) -> TokenStream {
    cx.ty(depth, TypeUse::plain(ty))
}

fn union_declaration(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, body: &Union) -> TokenStream {
    let names = &cx.paths.names[def.id];
    let item = names.item.at(cx.model.rust_span(def.span));
    let docs = cx.item_docs(def, "union");
    let hash =
        cx.model.is_hashable_def(def.id).then(|| quote!(#[derive(::core::cmp::Eq, ::core::hash::Hash)]));
    let derives = cx.derives(depth, def, cx.mapping.default_derives(def.id));
    let disc = discriminator(cx, depth, body.discriminator);
    let variants = body.cases.iter().zip(&names.members).map(|(case, name)| {
        let name = name.at(cx.model.rust_span(case.member.span));
        let ty = cx.ty(depth, cx.mapping.member(def.id, &case.member));
        let labels = labels(cx, case);
        let description =
            format!("Case `{}`: IDL `{}`.", case.member.name, cx.model.describe(case.member.ty));
        let labels = format!("Selected by {labels}.");
        let docs = doc_and_paragraph(&case.member.docs, &description, &labels);
        match shape(case) {
            Shape::Value => quote!(#docs #name(#ty),),
            Shape::DiscriminatorAndValue => quote!(#docs #name(#disc, #ty),),
        }
    });
    let other = body.implicit_default.as_ref().map(|_| {
        let other = &names.other_variant;
        quote! {
            #[doc = " No member: the discriminator is none of the labels."]
            #other(#disc),
        }
    });
    quote! {
        #docs
        #[derive(::core::clone::Clone, ::core::fmt::Debug, ::core::cmp::PartialEq)]
        #derives
        #hash
        pub enum #item {
            #(#variants)*
            #other
        }
    }
}

fn labels(cx: &Cx<'_>, case: &Case) -> String {
    let snippet = |span| cx.model.sources().snippet(span).trim();
    let mut labels: Vec<String> =
        case.labels.iter().map(|label| format!("`{}`", snippet(label.span))).collect();
    if case.is_default {
        labels.push("every value that is no label of another case".to_owned());
    }
    labels.join(", ")
}

/// Emits the implementation of `Default`: the first case with its first label.
fn union_default(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, body: &Union) -> TokenStream {
    let (Some(case), Some(name)) = (body.cases.first(), cx.paths.names[def.id].members.first()) else {
        return TokenStream::new();
    };
    if !cx.mapping.def_has_default(def.id) {
        return TokenStream::new();
    }
    let path = cx.paths.item(depth, def.id);
    let value = cx.default(cx.mapping.member(def.id, &case.member));
    let label = case.labels.first().map(|label| &label.value).or(body.default_value.as_ref());
    let variant = match (shape(case), label) {
        (Shape::DiscriminatorAndValue, Some(label)) => {
            let label = cx.value(depth, label);
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

/// Returns the minimum number of bytes of an encoded union, which is that of its discriminator.
fn union_min_size(cx: &Cx<'_>, depth: ModuleDepth, body: &Union) -> TokenStream {
    let (rt, disc) = (&cx.runtime_path, discriminator(cx, depth, body.discriminator));
    quote!(<#disc as #rt::CdrDecode>::MIN_SIZE)
}

fn arms(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, body: &Union) -> Vec<Arms> {
    // The arm that matches every discriminator comes last.
    let mut order: Vec<usize> = (0..body.cases.len()).collect();
    order.sort_by_key(|index| body.cases[*index].is_default);
    let cases = order.into_iter().map(|index| case_arms(cx, depth, def, body, index));
    cases.chain(other_arms(cx, depth, def, body)).collect()
}

fn union_discriminator(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, body: &Union) -> TokenStream {
    let (path, disc) = (cx.paths.item(depth, def.id), discriminator(cx, depth, body.discriminator));
    let arms = arms(cx, depth, def, body);
    let discriminators = arms.iter().map(|arms| &arms.discriminator);
    quote! {
        impl #path {
            #[doc = " Returns the discriminator, which selects the member."]
            pub fn discriminator(&self) -> #disc {
                match self { #(#discriminators)* }
            }
        }
    }
}

fn union_cdr(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, body: &Union, traits: &Traits) -> TokenStream {
    let rt = &cx.runtime_path;
    let Traits { encode: encodes, decode: decodes } = traits;
    let path = cx.paths.item(depth, def.id);
    let disc = discriminator(cx, depth, body.discriminator);
    let min_size = union_min_size(cx, depth, body);
    let arms = arms(cx, depth, def, body);
    let encode = arms.iter().map(|arms| &arms.encode);
    let decode = arms.iter().map(|arms| &arms.decode);
    quote! {
        impl #encodes for #path {
            fn encode(&self, __zorb_e: &mut #rt::Encoder) -> ::core::result::Result<(), #rt::EncodeError> {
                match self { #(#encode)* }
            }
        }

        impl #decodes for #path {
            const MIN_SIZE: ::core::primitive::usize = #min_size;

            fn decode(__zorb_d: &mut #rt::Decoder<'_>) -> ::core::result::Result<Self, #rt::DecodeError> {
                let __zorb_disc = <#disc as #rt::CdrDecode>::decode(__zorb_d)?;
                ::core::result::Result::Ok(match __zorb_disc { #(#decode)* })
            }
        }
    }
}

fn case_arms(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, body: &Union, index: usize) -> Arms {
    let rt = &cx.runtime_path;
    let case = &body.cases[index];
    let name = &cx.paths.names[def.id].members[index];
    let disc = discriminator(cx, depth, body.discriminator);
    let ty = cx.ty(depth, cx.mapping.member(def.id, &case.member));
    let value = quote!(<#ty as #rt::CdrDecode>::decode(__zorb_d)?);
    let own = labels_pattern(cx, depth, [case]);
    if let (Shape::Value, Some(label)) = (shape(case), case.labels.first()) {
        let label = cx.value(depth, &label.value);
        return Arms {
            encode: quote! {
                Self::#name(__zorb_v) => {
                    <#disc as #rt::CdrEncode>::encode(&(#label), __zorb_e)?;
                    #rt::CdrEncode::encode(__zorb_v, __zorb_e)
                }
            },
            decode: quote!(#own => Self::#name(#value),),
            discriminator: quote!(Self::#name(_) => #label,),
        };
    }
    let (mismatch, pattern) = if case.is_default {
        let others = body.cases.iter().enumerate().filter(|(other, _)| *other != index);
        let others = labels_pattern(cx, depth, others.map(|(_, case)| case));
        (others.map(|others| quote!(::core::matches!(*__zorb_disc, #others))), quote!(_))
    } else {
        (Some(quote!(!::core::matches!(*__zorb_disc, #own))), quote!(#own))
    };
    let check = mismatch.map(|mismatch| discriminator_check(cx, mismatch));
    Arms {
        encode: quote! {
            Self::#name(__zorb_disc, __zorb_v) => {
                #check
                <#disc as #rt::CdrEncode>::encode(__zorb_disc, __zorb_e)?;
                #rt::CdrEncode::encode(__zorb_v, __zorb_e)
            }
        },
        decode: quote!(#pattern => Self::#name(__zorb_disc, #value),),
        discriminator: quote!(Self::#name(__zorb_disc, _) => *__zorb_disc,),
    }
}

fn other_arms(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, body: &Union) -> Option<Arms> {
    body.implicit_default.as_ref()?;
    let rt = &cx.runtime_path;
    let other = &cx.paths.names[def.id].other_variant;
    let disc = discriminator(cx, depth, body.discriminator);
    let labels = labels_pattern(cx, depth, &body.cases);
    let check = labels.map(|labels| discriminator_check(cx, quote!(::core::matches!(*__zorb_disc, #labels))));
    Some(Arms {
        encode: quote! {
            Self::#other(__zorb_disc) => {
                #check
                <#disc as #rt::CdrEncode>::encode(__zorb_disc, __zorb_e)
            }
        },
        decode: quote!(_ => Self::#other(__zorb_disc),),
        discriminator: quote!(Self::#other(__zorb_disc) => *__zorb_disc,),
    })
}

/// Emits the check of the discriminator in a variant. If `condition` is true, the variant cannot be encoded.
fn discriminator_check(cx: &Cx<'_>, condition: TokenStream) -> TokenStream {
    let rt = &cx.runtime_path;
    quote! {
        if #condition {
            return ::core::result::Result::Err(
                #rt::EncodeError::new(#rt::EncodeErrorKind::IllegalDiscriminator)
            );
        }
    }
}

/// Returns a pattern of all labels of these cases, or `None` if they have no labels.
fn labels_pattern<'m>(
    cx: &Cx<'_>,
    depth: ModuleDepth,
    cases: impl IntoIterator<Item = &'m Case>,
) -> Option<TokenStream> {
    let rt = &cx.runtime_path;
    let labels: Vec<&ConstValue> =
        cases.into_iter().flat_map(|case| &case.labels).map(|label| &label.value).collect();
    let characters = |number: fn(&ConstValue) -> Option<u16>| {
        let numbers = labels.iter().map(|label| number(label).map(proc_macro2::Literal::u16_unsuffixed));
        numbers.collect::<Option<Vec<_>>>()
    };
    let (first, rest) = labels.split_first()?;
    match first {
        ConstValue::Char(_) => {
            let bytes =
                characters(|label| if let ConstValue::Char(c) = label { Some((*c).into()) } else { None })?;
            Some(quote!(#rt::Char(#(#bytes)|*)))
        }
        ConstValue::WChar(_) => {
            let units = characters(|label| if let ConstValue::WChar(c) = label { Some(*c) } else { None })?;
            Some(quote!(#rt::WChar(#(#units)|*)))
        }
        _ => {
            let (first, rest) = (cx.value(depth, first), rest.iter().map(|label| cx.value(depth, label)));
            Some(quote!(#first #(| #rest)*))
        }
    }
}

fn shape(case: &Case) -> Shape {
    if case.is_default || case.labels.len() > 1 { Shape::DiscriminatorAndValue } else { Shape::Value }
}
