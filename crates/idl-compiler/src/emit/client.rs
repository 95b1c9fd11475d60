//! The client side of an interface: the reference's methods, the generic trait and the call functions.

use proc_macro2::{Literal, TokenStream};
use quote::{quote, quote_spanned};

use super::cx::{Cx, ModuleDepth};
use super::docs::line_and_doc;
use super::errors;
use super::forms::EmittedFn;
use super::method::Method;
use crate::model::{Def, DefId};

pub(super) fn inherent_methods(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, lineage: &[DefId]) -> TokenStream {
    let path = cx.paths.reference(depth, def.id);
    let methods = lineage.iter().flat_map(|owner| &cx.methods[owner]).map(|method| {
        let (docs, name) = (method.docs(), method.ident());
        let parameters = cx.parameters(depth, method, EmittedFn::ClientMethod);
        let wide = cx.wide_generics(method);
        let output = cx.output(depth, method);
        let call = call(cx, depth, def, method);
        quote! {
            #docs
            pub async fn #name #wide(&self, #(#parameters),*) -> #output {
                #call.await
            }
        }
    });
    quote!(impl #path { #(#methods)* })
}

pub(super) fn client_trait(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let item = cx.paths.names[def.id].item.at(cx.model.rust_span(def.span));
    let first =
        format!("Interface `{}` (`{}`), as clients see it.", cx.model.scoped_name(def.id), def.repository_id);
    let docs = line_and_doc(&first, &def.docs);
    let supers = super_traits(cx, def, |base| cx.paths.item(depth, base));
    let methods = cx.methods[&def.id].iter().map(|method| {
        let (docs, name) = (method.docs(), method.ident());
        let parameters = cx.parameters(depth, method, EmittedFn::ClientMethod);
        let wide = cx.wide_generics(method);
        let future = cx.future(depth, method);
        // The whole signature has the span of the name, which rustc shows for missing and wrong methods.
        quote_spanned!(name.span()=> #docs fn #name #wide(&self, #(#parameters),*) -> #future;)
    });
    quote! {
        #docs
        pub trait #item: #supers ::core::marker::Send + ::core::marker::Sync {
            #(#methods)*
        }
    }
}

pub(super) fn client_impls(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, lineage: &[DefId]) -> TokenStream {
    let path = cx.paths.reference(depth, def.id);
    let impls = lineage.iter().map(|owner| {
        let item = cx.paths.item(depth, *owner);
        let methods = cx.methods[owner].iter().map(|method| {
            let name = &method.name;
            let parameters = cx.parameters(depth, method, EmittedFn::ClientMethod);
            let wide = cx.wide_generics(method);
            let future = cx.future(depth, method);
            let call = call(cx, depth, def, method);
            quote!(fn #name #wide(&self, #(#parameters),*) -> #future { #call })
        });
        quote!(impl #item for #path { #(#methods)* })
    });
    quote!(#(#impls)*)
}

/// Returns the supertraits of a trait, each followed by a plus sign.
pub(super) fn super_traits(cx: &Cx<'_>, def: &Def, path: impl Fn(DefId) -> TokenStream) -> TokenStream {
    let bases = cx.model.interface(def.id).map_or(&[][..], |interface| &interface.bases);
    let paths = bases.iter().map(|base| path(*base));
    quote!(#(#paths +)*)
}

/// Returns the expression that calls a method's call function, for the body of the method.
fn call(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, method: &Method) -> TokenStream {
    // The hidden module of a local interface has call functions for inherited operations too.
    let local = cx.model.is_local_interface(def.id);
    let hidden = cx.paths.hidden_path(depth, if local { def.id } else { method.owner });
    let is_abstract = cx.model.is_abstract_interface(def.id);
    let function = if is_abstract { method.abstract_call_name() } else { method.call_name() };
    let arguments = method.sent_params().map(|param| {
        let name = &param.name;
        if param.is_stream || cx.mapping.is_converted_by_client(param.ty, param.is_inout()) {
            quote!(::core::convert::Into::into(#name))
        } else {
            quote!(#name)
        }
    });
    let arguments = arguments.chain(method.context_name().map(|context| quote!(#context)));
    let target = match local {
        true => quote!(&*self.object),
        false if is_abstract => quote!(&self.held),
        false => quote!(&self.object),
    };
    quote!(#hidden::#function(#target, #(#arguments),*))
}

/// Emits the call function. It calls a servant of the same process directly, or sends a request.
pub(super) fn call_function(cx: &Cx<'_>, depth: ModuleDepth, index: usize, method: &Method) -> TokenStream {
    let rt = &cx.runtime_path;
    let function = method.call_name();
    let parameters = cx.parameters(depth, method, EmittedFn::CallFunction);
    let output = cx.output(depth, method);
    let wire = &method.wire_name;
    let kind = if method.oneway { quote!(oneway) } else { quote!(twoway) };
    let streamed = method.params.iter().any(|param| param.is_stream).then(|| quote!(.streamed()));
    let index = Literal::usize_unsuffixed(index);
    let checks = bound_checks(cx, method);
    let named = named_properties(cx, method);
    let arguments = local_arguments(method);
    let name = &method.name;
    let encode = encode_arguments(cx, depth, method);
    // A stream is the last argument. The code that encodes the other arguments does not include it.
    let source = method.sent_params().find(|param| param.is_stream).map(|param| &param.name);
    let (invoke, send_oneway) = match source {
        Some(_) => (quote!(invoke_from), quote!(send_oneway_from)),
        None => (quote!(invoke), quote!(send_oneway)),
    };
    let source = source.map(|source| quote!(::core::convert::From::from(#source),));
    let call = if method.streams_result { quote!(call_into) } else { quote!(call) };
    let incremental = method.streamed_result().filter(|result| !cx.model.contains_value(result.ty.ty));
    let remote = if let Some(result) = incremental {
        let stream = cx.result_stream(depth, result.ty).stream;
        let raised = decode_raised(cx, depth, method);
        let source = match source {
            Some(source) => quote!(::core::option::Option::Some(#source)),
            None => quote!(::core::option::Option::None),
        };
        quote!(#rt::invoke_into::<#stream, _>(__zorb_target, &__ZORB_OPERATION, #source, #encode, #raised).await)
    } else if method.oneway {
        quote!(#rt::#send_oneway(__zorb_target, &__ZORB_OPERATION, #source #encode).await)
    } else {
        let decode = decode_results(cx, depth, method);
        let raised = decode_raised(cx, depth, method);
        let whole =
            quote!(#rt::#invoke(__zorb_target, &__ZORB_OPERATION, #source #encode, #decode, #raised).await);
        match method.streams_result {
            // Values may refer to values in preceding elements, so the result is decoded as a whole.
            true => quote!(::core::result::Result::map(#whole, ::core::convert::From::from)),
            false => whole,
        }
    };
    quote! {
        pub async fn #function(__zorb_target: &#rt::ObjectRef, #(#parameters),*) -> #output {
            static __ZORB_OPERATION: #rt::Operation = #rt::Operation::#kind(#wire)#streamed.of(&INTERFACE, #index);
            #checks
            #named
            if let ::core::option::Option::Some(__zorb_local) = #rt::local::<dyn Local>(__zorb_target) {
                return __zorb_local
                    .#call(__zorb_target, &__ZORB_OPERATION, move |__zorb_servant| {
                        Local::#name(__zorb_servant, #(#arguments),*)
                    })
                    .await;
            }
            #remote
        }
    }
}

/// Emits the static description of the interface, if there are call functions, which use it.
pub(super) fn interface_static(cx: &Cx<'_>, def: &Def) -> Option<TokenStream> {
    let rt = &cx.runtime_path;
    let id = &def.repository_id;
    let wires = cx.methods[&def.id].iter().map(|method| &method.wire_name);
    (wires.len() > 0)
        .then(|| quote!(static INTERFACE: #rt::Interface = #rt::Interface::new(#id, &[#(#wires),*]);))
}

pub(super) fn local_arguments(method: &Method) -> Vec<TokenStream> {
    let argument = |param: &super::method::Parameter| {
        let name = &param.name;
        if param.is_stream { quote!(::core::convert::From::from(#name)) } else { quote!(#name) }
    };
    method.sent_params().map(argument).chain(method.context_name().map(|_| quote!(__zorb_context))).collect()
}

/// Emits the checks of bounded arguments, so that nothing is sent if one is too long.
pub(super) fn bound_checks(cx: &Cx<'_>, method: &Method) -> TokenStream {
    let sent = method.sent_params().filter(|param| !param.is_inout());
    let checks = sent.filter_map(|param| {
        let name = &param.name;
        cx.bound_check(param.ty, &quote!(#name), &param.idl_name)
    });
    quote! {
        #(
            if let ::core::result::Result::Err(__zorb_x) = #checks {
                return ::core::result::Result::Err(::core::convert::From::from(__zorb_x));
            }
        )*
    }
}

/// Emits the statement that keeps only those properties of the context that the operation names.
pub(super) fn named_properties(cx: &Cx<'_>, method: &Method) -> Option<TokenStream> {
    let rt = &cx.runtime_path;
    let (context, patterns) = (method.context_name()?, &method.context);
    Some(quote!(let __zorb_context = &#rt::Context::matching(#context, &[#(#patterns),*]);))
}

fn encode_arguments(cx: &Cx<'_>, depth: ModuleDepth, method: &Method) -> TokenStream {
    let rt = &cx.runtime_path;
    let context = method.context_name().map(|_| quote!(#rt::CdrEncode::encode(__zorb_context, __zorb_e)?;));
    let arguments: Vec<_> = method
        .sent_params()
        .filter(|param| !param.is_stream)
        .map(|param| {
            let name = &param.name;
            cx.encode_argument(depth, method.owner, param.ty, param.is_inout(), &quote!(#name))
        })
        .chain(context)
        .collect();
    if arguments.is_empty() {
        return quote!(|_| ::core::result::Result::Ok(()));
    }
    quote! {
        |__zorb_e| {
            #(#arguments)*
            ::core::result::Result::Ok(())
        }
    }
}

fn decode_results(cx: &Cx<'_>, depth: ModuleDepth, method: &Method) -> TokenStream {
    let rt = &cx.runtime_path;
    let values = method.results.iter().map(|result| {
        let ty = cx.ty(depth, result.ty);
        match cx.mapping.is_native(result.ty) {
            true => quote!(<#rt::Native<#ty> as #rt::CdrDecode>::decode(__zorb_d).map(|__zorb_n| __zorb_n.0)),
            false => cx.decode_value(depth, method.owner, result.ty, &ty),
        }
    });
    let values: Vec<_> = values.collect();
    if let Some(reply) = &method.result_struct {
        let path = cx.paths.path(depth, method.def, reply);
        let names = method.results.iter().map(|result| &result.name);
        return quote!(|__zorb_d| ::core::result::Result::Ok(#path { #(#names: #values?,)* }));
    }
    match values.as_slice() {
        [] => quote!(|_| ::core::result::Result::Ok(())),
        [one] => quote!(|__zorb_d| #one),
        _ => quote!(|__zorb_d| ::core::result::Result::Ok((#(#values?),*))),
    }
}

fn decode_raised(cx: &Cx<'_>, depth: ModuleDepth, method: &Method) -> TokenStream {
    let rt = &cx.runtime_path;
    if method.raises.is_empty() {
        // A native type in `raises` stands for arbitrary exceptions, whose types are not known.
        return quote!(|_, _| ::core::option::Option::None);
    }
    let error = cx.error_type(depth, method);
    let ids = method.raises.iter().map(|id| &cx.model.def(*id).repository_id);
    let types = method.raises.iter().map(|id| cx.paths.item(depth, *id));
    let variants = errors::error_variants(cx, method);
    quote! {
        |__zorb_id, __zorb_d| match __zorb_id {
            #(
                #ids => ::core::option::Option::Some(
                    <#types as #rt::CdrDecode>::decode(__zorb_d).map(#error::#variants)
                ),
            )*
            _ => ::core::option::Option::None,
        }
    }
}
