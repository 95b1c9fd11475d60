//! The reference type of an interface: a typed wrapper of `ObjectRef`, and its conversions.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::cx::{Cx, ModuleDepth};
use super::docs::line_and_doc;
use crate::model::Def;

pub(super) fn reference_type(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let rt = &cx.runtime_path;
    let name = &cx.paths.names[def.id].reference;
    let item = name.at(cx.model.rust_span(def.span));
    let path = cx.paths.reference(depth, def.id);
    let text = name.as_str();
    let id = &def.repository_id;
    let default = format!("Reference to an object of interface `{}`.", cx.model.scoped_name(def.id));
    let docs = line_and_doc(&default, &def.docs);
    let conversions = conversions(cx, depth, def);
    let fmt = quote!(&self, __zorb_f: &mut ::core::fmt::Formatter<'_>);
    let encoded = quote!(::core::result::Result<(), #rt::EncodeError>);
    quote! {
        #docs
        #[derive(::core::clone::Clone, ::core::cmp::PartialEq, ::core::cmp::Eq, ::core::hash::Hash)]
        pub struct #item {
            object: #rt::ObjectRef,
        }

        impl ::core::fmt::Debug for #path {
            fn fmt(#fmt) -> ::core::fmt::Result {
                __zorb_f.debug_tuple(#text).field(&self.object).finish()
            }
        }

        impl ::core::fmt::Display for #path {
            fn fmt(#fmt) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(&self.object, __zorb_f)
            }
        }

        impl #rt::Reference for #path {
            const REPOSITORY_ID: &'static ::core::primitive::str = #id;

            fn from_object(__zorb_object: #rt::ObjectRef) -> Self {
                Self { object: __zorb_object }
            }

            fn as_object(&self) -> &#rt::ObjectRef {
                &self.object
            }
        }

        impl #rt::Nilable for #path {
            const MIN_SIZE: ::core::primitive::usize = <#rt::ObjectRef as #rt::Nilable>::MIN_SIZE;

            fn encode_some(&self, __zorb_e: &mut #rt::Encoder) -> #encoded {
                #rt::CdrEncode::encode(&self.object, __zorb_e)
            }

            fn encode_nil(__zorb_e: &mut #rt::Encoder) -> #encoded {
                <#rt::ObjectRef as #rt::Nilable>::encode_nil(__zorb_e)
            }

            fn decode_nilable(
                __zorb_d: &mut #rt::Decoder<'_>,
            ) -> ::core::result::Result<::core::option::Option<Self>, #rt::DecodeError> {
                let __zorb_object = <#rt::ObjectRef as #rt::Nilable>::decode_nilable(__zorb_d)?;
                ::core::result::Result::Ok(__zorb_object.map(<Self as #rt::Reference>::from_object))
            }
        }

        impl #rt::CdrEncode for #path {
            fn encode(&self, __zorb_e: &mut #rt::Encoder) -> #encoded {
                #rt::CdrEncode::encode(&self.object, __zorb_e)
            }
        }

        impl #rt::CdrDecode for #path {
            const MIN_SIZE: ::core::primitive::usize = <#rt::ObjectRef as #rt::CdrDecode>::MIN_SIZE;

            fn decode(__zorb_d: &mut #rt::Decoder<'_>) -> ::core::result::Result<Self, #rt::DecodeError> {
                let __zorb_object = <#rt::ObjectRef as #rt::CdrDecode>::decode(__zorb_d)?;
                ::core::result::Result::Ok(<Self as #rt::Reference>::from_object(__zorb_object))
            }
        }

        #conversions
    }
}

/// Emits conversions to each base and to `ObjectRef`, and to an `Option` of each of them for parameters.
fn conversions(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let rt = &cx.runtime_path;
    let path = cx.paths.reference(depth, def.id);
    let targets =
        cx.model.all_bases(def.id).into_iter().map(|base| match cx.model.is_abstract_interface(base) {
            false => (cx.paths.reference(depth, base), quote!(Reference)),
            true => (cx.paths.reference(depth, base), quote!(AbstractReference)),
        });
    let (targets, traits): (Vec<_>, Vec<_>) =
        targets.chain([(quote!(#rt::ObjectRef), quote!(Reference))]).unzip();
    let argument = format_ident!("__zorb_reference");
    let clones = clone_conversions(&path, &argument);
    let optional = targets.iter().map(|target| optional_conversions(&path, target, &argument));
    quote! {
        #clones

        #(
            impl ::core::convert::From<#path> for #targets {
                fn from(__zorb_reference: #path) -> Self {
                    <#targets as #rt::#traits>::from_object(__zorb_reference.object)
                }
            }

            impl ::core::convert::From<&#path> for #targets {
                fn from(__zorb_reference: &#path) -> Self {
                    let __zorb_object = ::core::clone::Clone::clone(&__zorb_reference.object);
                    <#targets as #rt::#traits>::from_object(__zorb_object)
                }
            }

            #optional
        )*
    }
}

/// Emits the conversions of `&path` to `path` and to `Option<path>`.
pub(super) fn clone_conversions(path: &TokenStream, argument: &Ident) -> TokenStream {
    quote! {
        impl ::core::convert::From<&#path> for #path {
            fn from(#argument: &#path) -> Self {
                ::core::clone::Clone::clone(#argument)
            }
        }

        impl ::core::convert::From<&#path> for ::core::option::Option<#path> {
            fn from(#argument: &#path) -> Self {
                ::core::option::Option::Some(::core::clone::Clone::clone(#argument))
            }
        }
    }
}

/// Emits the conversions of `path` and `&path` to `Option<target>`.
fn optional_conversions(path: &TokenStream, target: &TokenStream, argument: &Ident) -> TokenStream {
    quote! {
        impl ::core::convert::From<#path> for ::core::option::Option<#target> {
            fn from(#argument: #path) -> Self {
                ::core::option::Option::Some(::core::convert::From::from(#argument))
            }
        }

        impl ::core::convert::From<&#path> for ::core::option::Option<#target> {
            fn from(#argument: &#path) -> Self {
                ::core::option::Option::Some(::core::convert::From::from(#argument))
            }
        }
    }
}

/// Emits the conversions of `&path` to `target`, and of `path` and `&path` to `Option<target>`. They use the
/// conversion of `path` to `target`, which the caller emits.
pub(super) fn further_conversions(path: &TokenStream, target: &TokenStream, argument: &Ident) -> TokenStream {
    let optional = optional_conversions(path, target, argument);
    quote! {
        impl ::core::convert::From<&#path> for #target {
            fn from(#argument: &#path) -> Self {
                ::core::convert::From::from(::core::clone::Clone::clone(#argument))
            }
        }

        #optional
    }
}
