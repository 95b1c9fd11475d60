//! The signatures of methods: parameters, results and errors.

use proc_macro2::TokenStream;
use quote::quote;

use super::cx::{Cx, ModuleDepth};
use super::forms::{EmittedFn, Form};
use super::method::{Method, Parameter};
use crate::work;

impl Cx<'_> {
    pub(super) fn parameters(
        &self,
        depth: ModuleDepth,
        method: &Method,
        function: EmittedFn,
    ) -> Vec<TokenStream> {
        work::count_step();
        let rt = &self.runtime_path;
        let lifetime = (function == EmittedFn::LocalMethod).then(|| quote!('l));
        let context = method.context_name().map(|name| quote!(#name: &#lifetime #rt::Context));
        method
            .sent_params()
            .map(|param| {
                let name = param.ident();
                let ty = if param.is_stream {
                    self.stream_type(depth, param.ty, function)
                } else if param.is_inout() {
                    self.inout_type(depth, param.ty, function)
                } else {
                    self.in_type(depth, param.ty, function)
                };
                quote!(#name: #ty)
            })
            .chain(context)
            .collect()
    }

    /// Returns the lifetime parameter `'w,` of a client's method that takes wide strings.
    pub(super) fn wide_lifetime(&self, method: &Method) -> Option<TokenStream> {
        let is_wide =
            |param: &Parameter| !param.is_inout() && self.mapping.passing(param.ty).form == Form::WStr;
        method.sent_params().any(is_wide).then(|| quote!('w,))
    }

    pub(super) fn wide_generics(&self, method: &Method) -> Option<TokenStream> {
        self.wide_lifetime(method).map(|wide| quote!(<#wide>))
    }

    /// Returns the type of a client's results: `()`, the only result, a tuple, a struct, or a stream.
    pub(super) fn result_type(&self, depth: ModuleDepth, method: &Method) -> TokenStream {
        if let Some(reply) = &method.result_struct {
            return self.paths.path(depth, method.def, reply);
        }
        if let Some(result) = method.streamed_result() {
            return self.result_stream(depth, result.ty).stream;
        }
        let types: Vec<_> = method.results.iter().map(|result| self.ty(depth, result.ty)).collect();
        match types.as_slice() {
            [one] => quote!(#one),
            _ => quote!((#(#types),*)),
        }
    }

    pub(super) fn error_type(&self, depth: ModuleDepth, method: &Method) -> TokenStream {
        let rt = &self.runtime_path;
        match &method.error_enum {
            Some(error) => self.paths.method_type(depth, method, error),
            None => quote!(#rt::SystemException),
        }
    }

    pub(super) fn output(&self, depth: ModuleDepth, method: &Method) -> TokenStream {
        let (result, error) = (self.result_type(depth, method), self.error_type(depth, method));
        quote!(::core::result::Result<#result, #error>)
    }

    /// Returns the output of a servant's method. A `@stream` result is the source of the stream.
    pub(super) fn servant_output(&self, depth: ModuleDepth, method: &Method) -> TokenStream {
        match method.streamed_result() {
            Some(result) => {
                let source = self.result_stream(depth, result.ty).source;
                let error = self.error_type(depth, method);
                quote!(::core::result::Result<#source, #error>)
            }
            None => self.output(depth, method),
        }
    }

    pub(super) fn servant_future(&self, output: &TokenStream) -> TokenStream {
        let rt = &self.runtime_path;
        quote!(impl #rt::ServantFuture<Output = #output> + ::core::marker::Send)
    }

    pub(super) fn future(&self, depth: ModuleDepth, method: &Method) -> TokenStream {
        let output = self.output(depth, method);
        quote!(impl ::core::future::Future<Output = #output> + ::core::marker::Send)
    }
}
