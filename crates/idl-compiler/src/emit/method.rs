//! The common form of operations and attributes: name, arguments and results.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use super::Cx;
use super::docs::doc_and;
use super::ident::RustName;
use super::names::{FactoryNames, MAX_TUPLE};
use super::passing::{Form, Side};
use super::types::Use;
use crate::model::{Def, DefId, DefKind, Direction, Docs, Factory, Operation, Param};
use crate::work;

/// One method: an operation, or the get or set operation of an attribute.
pub(super) struct Method {
    /// The interface or value type that declares the method.
    pub(super) owner: DefId,
    /// The operation or attribute; for a factory the value type.
    pub(super) def: DefId,
    /// The operation name in requests.
    pub(super) wire_name: String,
    /// The Rust name.
    pub(super) name: RustName,
    /// The location of the declaration.
    pub(super) span: Span,
    pub(super) oneway: bool,
    pub(super) params: Vec<Parameter>,
    pub(super) results: Vec<ResultValue>,
    /// `@stream`: the result is sent while it is produced.
    pub(super) streams_result: bool,
    /// The patterns of the context properties that are sent after the arguments.
    pub(super) context: Vec<String>,
    /// The exceptions in order.
    pub(super) raises: Vec<DefId>,
    /// Any other user exception can be raised as well.
    pub(super) raises_any: bool,
    /// The name of the error type in the owner's module, if there are exceptions.
    pub(super) error: Option<RustName>,
    /// The name of the result struct in the owner's module, if the results are too many for a tuple.
    pub(super) reply: Option<RustName>,
    /// The comment in the IDL.
    docs: Docs,
    /// The declaration in IDL.
    pub(super) idl: String,
}

/// A parameter.
pub(super) struct Parameter {
    pub(super) name: RustName,
    /// The name in the IDL.
    pub(super) idl_name: String,
    pub(super) span: Span,
    pub(super) ty: Use,
    pub(super) direction: Direction,
    /// `@stream`: the bytes are received incrementally.
    pub(super) is_stream: bool,
}

/// A result value.
pub(super) struct ResultValue {
    /// The name of the field in the result struct.
    pub(super) name: RustName,
    pub(super) ty: Use,
    /// The documentation of the field.
    pub(super) description: String,
}

impl Parameter {
    /// Returns whether the client sends the parameter.
    pub(super) fn is_sent(&self) -> bool {
        self.direction != Direction::Out
    }

    pub(super) fn is_inout(&self) -> bool {
        self.direction == Direction::InOut
    }

    pub(super) fn ident(&self) -> Ident {
        self.name.at(self.span)
    }
}

impl Method {
    /// Returns the name as an identifier with the location of the declaration.
    pub(super) fn ident(&self) -> Ident {
        self.name.at(self.span)
    }

    /// Returns the name of the call function, which methods of the reference types call.
    pub(super) fn call_name(&self) -> RustName {
        RustName::verbatim(&format!("call_{}", self.name))
    }

    /// Returns the name of the function that calls the object or value in a handle to an abstract interface.
    pub(super) fn either_name(&self) -> RustName {
        RustName::verbatim(&format!("either_{}", self.name))
    }

    /// Returns the parameters that the client sends, in order.
    pub(super) fn sent(&self) -> impl Iterator<Item = &Parameter> {
        self.params.iter().filter(|param| param.is_sent())
    }

    /// Returns the name of the additional last parameter, if a context is sent.
    pub(super) fn context_name(&self) -> Option<RustName> {
        let mut name = RustName::verbatim("context");
        while self.params.iter().any(|param| param.name == name) {
            name = name.underscored();
        }
        (!self.context.is_empty()).then_some(name)
    }

    /// Returns the `@stream` result.
    pub(super) fn streamed_result(&self) -> Option<&ResultValue> {
        self.results.first().filter(|_| self.streams_result)
    }

    /// Returns the names of the parameters of a trait's method, in order.
    pub(super) fn arguments(&self) -> Vec<RustName> {
        self.sent().map(|param| param.name.clone()).chain(self.context_name()).collect()
    }

    /// Returns the documentation: the comment and the declaration in the IDL.
    pub(super) fn docs(&self) -> TokenStream {
        doc_and(&self.docs, &format!("Operation `{}`.", self.wire_name), &format!("IDL: `{}`", self.idl))
    }
}

impl Cx<'_> {
    /// Returns the parameters of a method as `name: Type`.
    pub(super) fn parameters(&self, depth: usize, method: &Method, side: Side) -> Vec<TokenStream> {
        work::step();
        let v1 = &self.v1;
        let lifetime = (side == Side::Local).then(|| quote!('l));
        let context = method.context_name().map(|name| quote!(#name: &#lifetime #v1::Context));
        method
            .sent()
            .map(|param| {
                let name = param.ident();
                let ty = if param.is_stream {
                    self.stream_type(depth, param.ty, side)
                } else if param.is_inout() {
                    self.inout_type(depth, param.ty, side)
                } else {
                    self.in_type(depth, param.ty, side)
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
        method.sent().any(is_wide).then(|| quote!('w,))
    }

    /// Returns the generic parameters of a client's method, if there are any.
    pub(super) fn wide_generics(&self, method: &Method) -> Option<TokenStream> {
        self.wide_lifetime(method).map(|wide| quote!(<#wide>))
    }

    /// Returns the type of a client's results: `()`, the type of the only result, a tuple or a struct; a
    /// stream for a `@stream` result.
    pub(super) fn result_type(&self, depth: usize, method: &Method) -> TokenStream {
        if let Some(reply) = &method.reply {
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

    /// Returns the type of the errors.
    pub(super) fn error_type(&self, depth: usize, method: &Method) -> TokenStream {
        let v1 = &self.v1;
        match &method.error {
            Some(error) => self.paths.method_type(depth, method, error),
            None => quote!(#v1::SystemException),
        }
    }

    /// Returns `Result<results, errors>`.
    pub(super) fn output(&self, depth: usize, method: &Method) -> TokenStream {
        let (result, error) = (self.result_type(depth, method), self.error_type(depth, method));
        quote!(::core::result::Result<#result, #error>)
    }

    /// Returns the result type of a servant's method. It differs from [`output`](Self::output) for a
    /// `@stream` result: the servant returns the source of the stream.
    pub(super) fn servant_output(&self, depth: usize, method: &Method) -> TokenStream {
        match method.streamed_result() {
            Some(result) => {
                let source = self.result_stream(depth, result.ty).source;
                let error = self.error_type(depth, method);
                quote!(::core::result::Result<#source, #error>)
            }
            None => self.output(depth, method),
        }
    }

    /// Returns the return type of an asynchronous method of a servant.
    pub(super) fn servant_future(&self, output: &TokenStream) -> TokenStream {
        let v1 = &self.v1;
        quote!(impl #v1::ServantFuture<Output = #output> + ::core::marker::Send)
    }

    /// Returns the return type of an asynchronous method of a trait.
    pub(super) fn future(&self, depth: usize, method: &Method) -> TokenStream {
        let output = self.output(depth, method);
        quote!(impl ::core::future::Future<Output = #output> + ::core::marker::Send)
    }
}

/// Returns the operations and attributes that an interface or value type declares itself.
pub(super) fn methods(cx: &Cx<'_>, interface: DefId) -> Vec<Method> {
    let members = cx.model.children(interface).iter().map(|id| cx.model.def(*id));
    members.flat_map(|def| methods_of(cx, interface, def)).collect()
}

fn methods_of(cx: &Cx<'_>, owner: DefId, def: &Def) -> Vec<Method> {
    match &def.kind {
        DefKind::Operation(body) => vec![operation(cx, owner, def, body)],
        DefKind::Attribute(attribute) => {
            let names = &cx.paths.names[def.id];
            let ty = cx.mapping.use_of(attribute.ty, &def.annotations, &cx.model.scoped_name(def.id));
            let readonly = if attribute.readonly { "readonly " } else { "" };
            let idl = format!("{readonly}attribute {} {}", cx.model.describe(attribute.ty), def.name);
            let method = |wire_name, name: &RustName, raises: &[DefId], error: &RustName| Method {
                owner,
                def: def.id,
                wire_name,
                name: name.clone(),
                span: cx.model.rust_span(def.span),
                oneway: false,
                params: Vec::new(),
                results: Vec::new(),
                streams_result: false,
                context: Vec::new(),
                raises: raises.to_vec(),
                raises_any: false,
                error: (!raises.is_empty()).then(|| error.clone()),
                reply: None,
                docs: def.docs.clone(),
                idl: idl.clone(),
            };
            let mut get =
                method(format!("_get_{}", def.name), &names.item, &attribute.get_raises, &names.error);
            get.results =
                vec![ResultValue { name: RustName::verbatim("result"), ty, description: String::new() }];
            if attribute.readonly {
                return vec![get];
            }
            let mut set =
                method(format!("_set_{}", def.name), &names.setter, &attribute.set_raises, &names.set_error);
            set.params = vec![Parameter {
                name: RustName::verbatim("value"),
                idl_name: "value".to_owned(),
                span: set.span,
                ty,
                direction: Direction::In,
                is_stream: false,
            }];
            vec![get, set]
        }
        _ => Vec::new(),
    }
}

fn operation(cx: &Cx<'_>, owner: DefId, def: &Def, operation: &Operation) -> Method {
    let names = &cx.paths.names[def.id];
    let scoped = cx.model.scoped_name(def.id);
    let params: Vec<Parameter> = (operation.params.iter().zip(&names.members))
        .map(|(param, name)| Parameter {
            name: name.clone(),
            idl_name: param.name.clone(),
            span: cx.model.rust_span(param.span),
            ty: cx.mapping.use_of(param.ty, &param.annotations, &format!("{scoped}::{}", param.name)),
            direction: param.direction,
            is_stream: param.annotations.get("stream").is_some(),
        })
        .collect();
    let mut results = Vec::new();
    if let Some(ty) = operation.result {
        let mut name = RustName::verbatim("result");
        while params.iter().any(|param| param.name == name && param.direction != Direction::In) {
            name = name.underscored();
        }
        let ty = cx.mapping.use_of(ty, &def.annotations, &scoped);
        results.push(ResultValue { name, ty, description: "The value returned.".to_owned() });
    }
    for (param, idl) in
        params.iter().zip(&operation.params).filter(|(param, _)| param.direction != Direction::In)
    {
        let description = format!("Parameter `{}`.", idl.name);
        results.push(ResultValue { name: param.name.clone(), ty: param.ty, description });
    }
    Method {
        owner,
        def: def.id,
        wire_name: def.name.clone(),
        name: names.item.clone(),
        span: cx.model.rust_span(def.span),
        oneway: operation.oneway,
        raises: operation.raises.clone(),
        raises_any: operation.raises_any,
        error: (operation.raises_any || !operation.raises.is_empty()).then(|| names.error.clone()),
        reply: (results.len() > MAX_TUPLE).then(|| names.reply.clone()),
        params,
        results,
        streams_result: def.annotations.get("stream").is_some(),
        context: operation.context.clone(),
        docs: def.docs.clone(),
        idl: idl_of(cx, def, operation),
    }
}

/// Returns a factory as a method without a result.
pub(super) fn factory(cx: &Cx<'_>, owner: &Def, factory: &Factory, names: &FactoryNames) -> Method {
    let scoped = format!("{}::{}", cx.model.scoped_name(owner.id), factory.name);
    let params = (factory.params.iter().zip(&names.params)).map(|(param, name)| Parameter {
        name: name.clone(),
        idl_name: param.name.clone(),
        span: cx.model.rust_span(param.span),
        ty: cx.mapping.use_of(param.ty, &param.annotations, &format!("{scoped}::{}", param.name)),
        direction: param.direction,
        is_stream: false,
    });
    Method {
        owner: owner.id,
        def: owner.id,
        wire_name: factory.name.clone(),
        name: names.item.clone(),
        span: cx.model.rust_span(factory.span),
        oneway: false,
        raises: factory.raises.clone(),
        raises_any: false,
        error: (!factory.raises.is_empty()).then(|| names.error.clone()),
        reply: None,
        params: params.collect(),
        results: Vec::new(),
        streams_result: false,
        context: Vec::new(),
        docs: factory.docs.clone(),
        idl: format!("factory {}{}", factory.name, idl_of_params(cx, &factory.params, &factory.raises)),
    }
}

/// Returns the declaration of an operation in IDL.
fn idl_of(cx: &Cx<'_>, def: &Def, operation: &Operation) -> String {
    let oneway = if operation.oneway { "oneway " } else { "" };
    let stream = if def.annotations.get("stream").is_some() { "@stream " } else { "" };
    let result = operation.result.map_or_else(|| "void".to_owned(), |ty| cx.model.describe(ty));
    let context: Vec<String> = operation.context.iter().map(|name| format!("\"{name}\"")).collect();
    let context =
        if context.is_empty() { String::new() } else { format!(" context ({})", context.join(", ")) };
    let params = idl_of_params(cx, &operation.params, &operation.raises);
    format!("{stream}{oneway}{result} {}{params}{context}", def.name)
}

/// Returns parameters and exceptions in IDL.
fn idl_of_params(cx: &Cx<'_>, params: &[Param], raises: &[DefId]) -> String {
    let params: Vec<String> = params
        .iter()
        .map(|param| {
            let direction = match param.direction {
                Direction::In => "in",
                Direction::Out => "out",
                Direction::InOut => "inout",
            };
            let stream = if param.annotations.get("stream").is_some() { "@stream " } else { "" };
            format!("{stream}{direction} {} {}", cx.model.describe(param.ty), param.name)
        })
        .collect();
    let raises: Vec<String> = raises.iter().map(|id| cx.model.scoped_name(*id)).collect();
    let raises = if raises.is_empty() { String::new() } else { format!(" raises ({})", raises.join(", ")) };
    format!("({}){raises}", params.join(", "))
}
