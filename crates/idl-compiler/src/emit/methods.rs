//! The methods of interfaces and value types.

use super::cx::Cx;
use super::ident::RustName;
use super::method::{Method, Parameter, ResultValue};
use super::names::{FactoryNames, MAX_TUPLE_LEN};
use crate::model::{Def, DefId, DefKind, Direction, Factory, Operation, Param};

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
                error_enum: (!raises.is_empty()).then(|| error.clone()),
                result_struct: None,
                docs: def.docs.clone(),
                idl: idl.clone(),
            };
            let mut get =
                method(format!("_get_{}", def.name), &names.item, &attribute.get_raises, &names.error_enum);
            get.results =
                vec![ResultValue { name: RustName::verbatim("result"), ty, description: String::new() }];
            if attribute.readonly {
                return vec![get];
            }
            let mut set = method(
                format!("_set_{}", def.name),
                &names.setter,
                &attribute.set_raises,
                &names.set_error_enum,
            );
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
        .map(|(param, name)| parameter(cx, &scoped, param, name))
        .collect();
    let mut results = Vec::new();
    if let Some(ty) = operation.result {
        let mut name = RustName::verbatim("result");
        while params.iter().any(|param| param.name == name && param.direction != Direction::In) {
            name = name.underscored();
        }
        let ty = cx.mapping.use_of(ty, &def.annotations, &scoped);
        results.push(ResultValue { name, ty, description: "The returned value.".to_owned() });
    }
    let outs = params.iter().filter(|param| param.direction != Direction::In);
    results.extend(outs.map(|param| {
        let description = format!("Parameter `{}`.", param.idl_name);
        ResultValue { name: param.name.clone(), ty: param.ty, description }
    }));
    Method {
        owner,
        def: def.id,
        wire_name: def.name.clone(),
        name: names.item.clone(),
        span: cx.model.rust_span(def.span),
        oneway: operation.oneway,
        raises: operation.raises.clone(),
        raises_any: operation.raises_any,
        error_enum: (operation.raises_any || !operation.raises.is_empty()).then(|| names.error_enum.clone()),
        result_struct: (results.len() > MAX_TUPLE_LEN).then(|| names.result_struct.clone()),
        params,
        results,
        streams_result: def.annotations.has("stream"),
        context: operation.context.clone(),
        docs: def.docs.clone(),
        idl: idl_of(cx, def, operation),
    }
}

fn parameter(cx: &Cx<'_>, scoped_owner: &str, param: &Param, name: &RustName) -> Parameter {
    Parameter {
        name: name.clone(),
        idl_name: param.name.clone(),
        span: cx.model.rust_span(param.span),
        ty: cx.mapping.use_of(param.ty, &param.annotations, &format!("{scoped_owner}::{}", param.name)),
        direction: param.direction,
        is_stream: param.annotations.has("stream"),
    }
}

/// Returns a factory as a method without a result.
pub(super) fn factory(cx: &Cx<'_>, owner: &Def, factory: &Factory, names: &FactoryNames) -> Method {
    let scoped = format!("{}::{}", cx.model.scoped_name(owner.id), factory.name);
    let params = factory.params.iter().zip(&names.params);
    let params =
        params.map(|(param, name)| Parameter { is_stream: false, ..parameter(cx, &scoped, param, name) });
    Method {
        owner: owner.id,
        def: owner.id,
        wire_name: factory.name.clone(),
        name: names.item.clone(),
        span: cx.model.rust_span(factory.span),
        oneway: false,
        raises: factory.raises.clone(),
        raises_any: false,
        error_enum: (!factory.raises.is_empty()).then(|| names.error_enum.clone()),
        result_struct: None,
        params: params.collect(),
        results: Vec::new(),
        streams_result: false,
        context: Vec::new(),
        docs: factory.docs.clone(),
        idl: format!("factory {}{}", factory.name, idl_of_params(cx, &factory.params, &factory.raises)),
    }
}

fn idl_of(cx: &Cx<'_>, def: &Def, operation: &Operation) -> String {
    let oneway = if operation.oneway { "oneway " } else { "" };
    let stream = if def.annotations.has("stream") { "@stream " } else { "" };
    let result = operation.result.map_or_else(|| "void".to_owned(), |ty| cx.model.describe(ty));
    let context: Vec<String> = operation.context.iter().map(|name| format!("\"{name}\"")).collect();
    let context =
        if context.is_empty() { String::new() } else { format!(" context ({})", context.join(", ")) };
    let params = idl_of_params(cx, &operation.params, &operation.raises);
    format!("{stream}{oneway}{result} {}{params}{context}", def.name)
}

fn idl_of_params(cx: &Cx<'_>, params: &[Param], raises: &[DefId]) -> String {
    let params: Vec<String> = params
        .iter()
        .map(|param| {
            let direction = param.direction.keyword();
            let stream = if param.annotations.has("stream") { "@stream " } else { "" };
            format!("{stream}{direction} {} {}", cx.model.describe(param.ty), param.name)
        })
        .collect();
    let raises: Vec<String> = raises.iter().map(|id| cx.model.scoped_name(*id)).collect();
    let raises = if raises.is_empty() { String::new() } else { format!(" raises ({})", raises.join(", ")) };
    format!("({}){raises}", params.join(", "))
}
