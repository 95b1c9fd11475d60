//! Operations and factories of value types: traits that users implement for the state structs.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use super::cx::{Cx, ModuleDepth};
use super::docs::line_and_doc;
use super::forms::EmittedFn;
use super::method::Method;
use super::{errors, methods};
use crate::model::{Def, DefId, DefKind, Value};

impl Cx<'_> {
    /// Returns whether there is a trait of operations: for abstract interfaces and values with operations.
    pub(super) fn has_operations(&self, id: DefId) -> bool {
        match &self.model.def(id).kind {
            DefKind::Value(_) => {
                self.methods.get(&id).is_some_and(|methods| !methods.is_empty())
                    || self.operation_bases(id).next().is_some()
            }
            DefKind::Interface(_) => self.model.is_abstract_interface(id),
            _ => false,
        }
    }

    /// Returns the bases and supported interfaces whose traits of operations are supertraits of this one.
    fn operation_bases(&self, id: DefId) -> impl Iterator<Item = DefId> {
        self.model.direct_bases(id).filter(|base| self.has_operations(*base))
    }
}

pub(super) fn operations(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    if !cx.has_operations(def.id) {
        return TokenStream::new();
    }
    let item = cx.paths.names[def.id].operations_trait.at(cx.model.rust_span(def.span));
    let (kind, scoped) = (def.kind.description(), cx.model.scoped_name(def.id));
    let first = format!("The operations of {kind} `{scoped}`, to be implemented for the state of values.");
    let docs = line_and_doc(&first, &def.docs);
    let supers = cx.operation_bases(def.id).map(|base| cx.paths.operations_path(depth, base));
    let methods = cx.methods[&def.id].iter().map(|method| {
        let (docs, name) = (method.docs(), method.ident());
        let parameters = cx.parameters(depth, method, EmittedFn::ServantMethod);
        let output = cx.output(depth, method);
        let body = match cx.has_default_body(method) {
            true => default_operation(cx, method),
            false => quote_spanned!(name.span()=> ;),
        };
        // The whole signature has the span of the name, which rustc shows for missing and wrong methods.
        quote_spanned!(name.span()=> #docs fn #name(&self, #(#parameters),*) -> #output #body)
    });
    let declaration = quote! {
        #docs
        pub trait #item: #(#supers +)* ::core::marker::Send + ::core::marker::Sync {
            #(#methods)*
        }
    };
    if cx.model.is_abstract_interface(def.id) {
        // The probe is in the hidden module of the abstract interface.
        return declaration;
    }
    let (hidden, probe) = (cx.paths.hidden_name(def.id), probe(cx, def.id));
    quote! {
        #declaration

        #[doc(hidden)]
        pub mod #hidden {
            #probe
        }
    }
}

/// Emits the probe, which determines at compile time whether a type implements the trait of operations.
pub(super) fn probe(cx: &Cx<'_>, id: DefId) -> TokenStream {
    let rt = &cx.runtime_path;
    let item = &cx.paths.names[id].operations_trait;
    // Of two methods with the same name, rustc selects the one that needs fewer borrows, if the bounds are
    // met. If `S` implements the trait of operations, this is the method of `Implemented`, or else that of
    // `Missing`.
    quote! {
        #[derive(::core::fmt::Debug)]
        pub struct Probe<S>(pub ::core::marker::PhantomData<S>);

        pub trait Implemented {
            fn offer(&self, __zorb_to: &mut #rt::Casts<'_>);
        }

        impl<S: super::#item + 'static> Implemented for Probe<S> {
            fn offer(&self, __zorb_to: &mut #rt::Casts<'_>) {
                __zorb_to.offer::<dyn super::#item>(|__zorb_v| {
                    let __zorb_v: &dyn super::#item = __zorb_v.downcast_ref::<S>()?;
                    ::core::option::Option::Some(__zorb_v)
                });
            }
        }

        pub trait Missing {
            fn offer(&self, _: &mut #rt::Casts<'_>) {}
        }

        impl<S> Missing for &Probe<S> {}
    }
}

fn default_operation(cx: &Cx<'_>, method: &Method) -> TokenStream {
    let (arguments, missing) = (method.arguments(), not_implemented(cx, method));
    quote! {
        {
            let _ = (#(#arguments,)*);
            #missing
        }
    }
}

pub(super) fn not_implemented(cx: &Cx<'_>, method: &Method) -> TokenStream {
    let rt = &cx.runtime_path;
    let why = format!("this value does not implement `{}`", method.wire_name);
    quote! {
        ::core::result::Result::Err(::core::convert::From::from(
            #rt::SystemException::no_implement().with_reason(#why)
        ))
    }
}

/// Emits statements that offer the traits of operations that are implemented for a state.
pub(super) fn offers(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let lineage = cx.model.lineage(def.id).into_iter().filter(|id| cx.has_operations(*id));
    let offers = lineage.map(|id| {
        let hidden = cx.paths.hidden_path(depth, id);
        quote! {
            {
                use #hidden::*;
                let __zorb_probe = &Probe::<Self>(::core::marker::PhantomData);
                __zorb_probe.offer(__zorb_to);
            }
        }
    });
    quote!(#(#offers)*)
}

pub(super) fn factory_trait(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, value: &Value) -> TokenStream {
    if value.factories.is_empty() {
        return TokenStream::new();
    }
    let item = cx.paths.names[def.id].factory_trait.at(cx.model.rust_span(def.span));
    let scoped = cx.model.scoped_name(def.id);
    let first = format!("The factories of value type `{scoped}`, to be implemented for its state.");
    let docs = line_and_doc(&first, &def.docs);
    let methods = factory_methods(cx, def, value).into_iter().map(|method| {
        let (docs, name) = (method.docs(), method.ident());
        let parameters = cx.parameters(depth, &method, EmittedFn::ServantMethod);
        let error = cx.error_type(depth, &method);
        quote_spanned! {name.span()=>
            #docs
            fn #name(#(#parameters),*) -> ::core::result::Result<Self, #error>;
        }
    });
    quote! {
        #docs
        pub trait #item: ::core::marker::Sized {
            #(#methods)*
        }
    }
}

fn factory_methods(cx: &Cx<'_>, def: &Def, value: &Value) -> Vec<Method> {
    let factories = value.factories.iter().zip(&cx.paths.names[def.id].factories);
    factories.map(|(factory, names)| methods::factory(cx, def, factory, names)).collect()
}

/// Emits the error types of operations and factories, and the result structs of operations.
pub(super) fn operation_types(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, value: &Value) -> Vec<TokenStream> {
    let mut types = Vec::new();
    for method in &cx.methods[&def.id] {
        types.push(errors::error_enum(cx, depth, method));
        types.push(errors::result_struct(cx, depth, method));
    }
    types.extend(factory_methods(cx, def, value).iter().map(|method| errors::error_enum(cx, depth, method)));
    types
}
