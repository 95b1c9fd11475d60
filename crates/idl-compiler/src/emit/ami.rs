//! Reply handlers (the callback model of CORBA Messaging): their traits, and the `sendc_` methods, which send
//! a request and return without waiting for the reply.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::quote;

use super::cx::{Cx, ModuleDepth};
use super::forms::{EmittedFn, Form};
use super::ident::RustName;
use super::method::{Method, Parameter};
use crate::model::{Def, DefId, Flavour};

impl Cx<'_> {
    /// Returns whether a trait of reply handlers is emitted for an interface: the options request it, and
    /// objects of the interface can be remote.
    pub(super) fn has_handler(&self, id: DefId) -> bool {
        self.model.interface(id).is_some_and(|interface| interface.flavour == Flavour::Plain)
            && self.paths.external.is_emitted(id)
            && self.options.has_handlers(self.model, id)
    }
}

pub(super) fn handlers(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, lineage: &[DefId]) -> Option<TokenStream> {
    if !cx.has_handler(def.id) {
        return None;
    }
    let (handler, senders) = (handler_trait(cx, depth, def), senders(cx, depth, def, lineage));
    Some(quote!(#handler #senders))
}

fn handler_trait(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let item = cx.paths.names[def.id].handler.at(cx.model.rust_span(def.span));
    let first = format!(
        " A handler for replies of interface `{}` (`{}`). The `sendc_` methods of `{}` take a handler.",
        cx.model.scoped_name(def.id),
        def.repository_id,
        cx.paths.names[def.id].reference.as_str(),
    );
    let bases = cx.model.interface(def.id).map_or(&[][..], |interface| &interface.bases);
    let supers = bases.iter().filter(|base| cx.has_handler(**base));
    let supers = supers.map(|base| cx.paths.handler_path(depth, *base));
    let unit_future = quote!(impl ::core::future::Future<Output = ()> + ::core::marker::Send);
    let methods = replies(cx, def.id).into_iter().map(|(method, reply, excep)| {
        let result = cx.result_type(depth, method);
        let result = (!method.results.is_empty()).then(|| quote!(result: #result));
        let error = cx.error_type(depth, method);
        let done = format!(" Receives the results of `{}`.", method.wire_name);
        let failed = format!(
            " Receives the exception that `{}` raised, or the reason why it has no results.",
            method.wire_name
        );
        quote! {
            #[doc = #done]
            fn #reply(&self, #result) -> #unit_future;

            #[doc = #failed]
            fn #excep(&self, exception: #error) -> #unit_future;
        }
    });
    quote! {
        #[doc = #first]
        pub trait #item: #(#supers +)* ::core::marker::Send + ::core::marker::Sync + 'static {
            #(#methods)*
        }
    }
}

/// Returns the methods with replies, each with the names of the handler methods for reply and exception.
fn replies<'c>(cx: &'c Cx<'_>, id: DefId) -> Vec<(&'c Method, RustName, RustName)> {
    let lineage = cx.model.lineage(id);
    let all = || lineage.iter().flat_map(|owner| &cx.methods[owner]).filter(|method| !method.oneway);
    // A handler's method for replies to an operation or setter always has the name of the reference's method,
    // without `sendc_`. The names of the methods for getters and exceptions are changed if they clash.
    let is_get = |method: &Method| method.wire_name.starts_with("_get_");
    let mut taken: HashSet<String> =
        all().filter(|method| !is_get(method)).map(|method| method.name.as_str().to_owned()).collect();
    let mut names = Vec::new();
    for method in all() {
        let stem = method.name.as_str();
        let reply = if is_get(method) { unused_name(&mut taken, "get_", stem, "") } else { stem.to_owned() };
        names.push((method, reply));
    }
    let with_exceptions = names.into_iter().map(|(method, reply)| {
        let excep = unused_name(&mut taken, "", &reply, "_excep");
        (method, RustName::verbatim(&reply), RustName::verbatim(&excep))
    });
    with_exceptions.filter(|(method, ..)| method.owner == id).collect()
}

fn senders(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, lineage: &[DefId]) -> TokenStream {
    let rt = &cx.runtime_path;
    let path = cx.paths.reference(depth, def.id);
    let methods = lineage.iter().flat_map(|owner| &cx.methods[owner]);
    let mut taken: HashSet<String> = methods.map(|method| method.name.as_str().to_owned()).collect();
    let mut senders = Vec::new();
    for owner in lineage.iter().filter(|owner| cx.has_handler(**owner)) {
        let handler = cx.paths.handler_path(depth, *owner);
        for (method, reply, excep) in replies(cx, *owner) {
            let stem = match method.wire_name.starts_with("_get_") {
                true => format!("get_{}", method.name.as_str()),
                false => method.name.as_str().to_owned(),
            };
            let name = RustName::verbatim(&unused_name(&mut taken, "sendc_", &stem, "")).at(method.span);
            let arguments = method.arguments();
            let handler_param = RustName::verbatim("handler").until_free(|name| arguments.contains(name));
            let parameters = cx.parameters(depth, method, EmittedFn::ClientMethod);
            let wide = cx.wide_lifetime(method);
            let (owned, sent): (Vec<_>, Vec<_>) =
                method.sent_params().map(|param| owned_argument(cx, param)).unzip();
            let context = method.context_name();
            let owned_context =
                context.as_ref().map(|name| quote!(let #name = ::core::clone::Clone::clone(#name);));
            let sent = sent.into_iter().chain(context.map(|name| quote!(&#name)));
            let hidden = cx.paths.hidden_path(depth, method.owner);
            let function = method.call_name();
            let (pattern, result) = match method.results.is_empty() {
                true => (quote!(()), quote!()),
                false => (quote!(__zorb_result), quote!(__zorb_result)),
            };
            let doc = format!(
                " Sends `{}` and returns. A task of the current runtime passes the reply to `{handler_param}`.",
                method.wire_name
            );
            senders.push(quote! {
                #[doc = #doc]
                ///
                /// # Errors
                /// `INITIALIZE` outside of a tokio runtime. The handler receives all other errors.
                pub fn #name<#wide __ZorbHandler: #handler>(
                    &self,
                    #handler_param: &::std::sync::Arc<__ZorbHandler>,
                    #(#parameters),*
                ) -> ::core::result::Result<(), #rt::SystemException> {
                    let __zorb_object = ::core::clone::Clone::clone(&self.object);
                    let __zorb_handler = ::core::clone::Clone::clone(#handler_param);
                    #(#owned)*
                    #owned_context
                    #rt::sendc(
                        async move { #hidden::#function(&__zorb_object, #(#sent),*).await },
                        move |__zorb_reply| async move {
                            match __zorb_reply {
                                ::core::result::Result::Ok(#pattern) => {
                                    #handler::#reply(&*__zorb_handler, #result).await
                                }
                                ::core::result::Result::Err(__zorb_x) => {
                                    #handler::#excep(&*__zorb_handler, __zorb_x).await
                                }
                            }
                        },
                    )
                }
            });
        }
    }
    quote!(impl #path { #(#senders)* })
}

/// Returns the statement that makes an argument an owned value, and the expression that passes it.
fn owned_argument(cx: &Cx<'_>, param: &Parameter) -> (TokenStream, TokenStream) {
    let rt = &cx.runtime_path;
    let name = &param.name;
    let form = cx.mapping.passing(param.ty).form;
    if form == Form::WStr && !param.is_inout() {
        let owned = quote!(#rt::WStr::to_wstring(::core::convert::Into::into(#name)));
        return (quote!(let #name = #owned;), quote!(#name.as_wstr()));
    }
    if param.is_stream || cx.mapping.is_converted_by_client(param.ty, param.is_inout()) {
        return (quote!(let #name = ::core::convert::Into::into(#name);), quote!(#name));
    }
    if param.is_inout() {
        return (quote!(), quote!(#name));
    }
    match form {
        Form::Value | Form::Shared | Form::Reference | Form::WStr => (quote!(), quote!(#name)),
        Form::ArrayRef => (quote!(let #name = #rt::boxed_array(#name);), quote!(&*#name)),
        Form::Str | Form::Slice | Form::Borrow => {
            (quote!(let #name = ::std::borrow::ToOwned::to_owned(#name);), quote!(&#name))
        }
    }
}

/// Returns an unused name, with as many `ami_` before the stem as necessary.
fn unused_name(taken: &mut HashSet<String>, prefix: &str, stem: &str, suffix: &str) -> String {
    let mut ami = String::new();
    loop {
        let name = format!("{prefix}{ami}{stem}{suffix}");
        if taken.insert(name.clone()) {
            return name;
        }
        ami.push_str("ami_");
    }
}
