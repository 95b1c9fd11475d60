//! Conversion of IDL interfaces to descriptions of interfaces ([`Interface`]).

use std::collections::HashMap;
use std::sync::Arc;

use idl_compiler::model::{Attribute, Def, DefId, DefKind, Direction, Model, Operation};
use orb_runtime::dynamic::{AttributeInfo, Interface, Mode, OperationInfo, ParamInfo};
use orb_runtime::types::{CreateError, TypeCode};

use super::types::{Types, interface_kind};

/// Returns all interfaces of a model, by the ids of their definitions.
pub(super) fn convert_interfaces(
    model: &Model,
    types: &mut Types<'_>,
) -> Result<HashMap<DefId, Arc<Interface>>, (DefId, CreateError)> {
    let mut converted = HashMap::new();
    let interfaces = model.defs().iter().filter(|def| matches!(def.kind, DefKind::Interface(_)));
    for def in interfaces {
        // Convert the bases first. An interface may be declared before its bases are defined.
        for id in model.all_bases(def.id).into_iter().chain([def.id]) {
            if !converted.contains_key(&id) {
                let interface = interface(model, types, &converted, id).map_err(|error| (id, error))?;
                converted.extend(interface.map(|interface| (id, Arc::new(interface))));
            }
        }
    }
    Ok(converted)
}

fn interface(
    model: &Model,
    types: &mut Types<'_>,
    converted: &HashMap<DefId, Arc<Interface>>,
    id: DefId,
) -> Result<Option<Interface>, CreateError> {
    let (def, Some(body)) = (model.def(id), model.interface(id)) else { return Ok(None) };
    let bases = body.bases.iter().filter_map(|base| converted.get(base).cloned()).collect();
    let (mut operations, mut attributes) = (Vec::new(), Vec::new());
    for member in body.members.iter().map(|member| model.def(*member)) {
        match &member.kind {
            DefKind::Operation(body) => operations.push(operation(types, member, body)?),
            DefKind::Attribute(body) => attributes.push(attribute(types, member, body)?),
            _ => {}
        }
    }
    let names = (interface_kind(body.flavour), &*def.repository_id, &*def.name);
    Ok(Some(Interface::new(names, bases, operations, attributes)))
}

pub(super) fn operation(
    types: &mut Types<'_>,
    def: &Def,
    body: &Operation,
) -> Result<OperationInfo, CreateError> {
    let mut params = Vec::with_capacity(body.params.len());
    for param in &body.params {
        let mode = match param.direction {
            Direction::In => Mode::In,
            Direction::Out => Mode::Out,
            Direction::InOut => Mode::InOut,
        };
        params.push(ParamInfo { name: (&*param.name).into(), mode, code: types.of_type(param.ty)? });
    }
    Ok(OperationInfo {
        id: (&*def.repository_id).into(),
        name: (&*def.name).into(),
        oneway: body.oneway,
        result: body.result.map_or(Ok(TypeCode::VOID), |result| types.of_type(result))?,
        params,
        raises: exceptions(types, &body.raises)?,
        contexts: body.context.iter().map(|pattern| (&**pattern).into()).collect(),
    })
}

pub(super) fn attribute(
    types: &mut Types<'_>,
    def: &Def,
    body: &Attribute,
) -> Result<AttributeInfo, CreateError> {
    Ok(AttributeInfo {
        id: (&*def.repository_id).into(),
        name: (&*def.name).into(),
        readonly: body.readonly,
        code: types.of_type(body.ty)?,
        get_raises: exceptions(types, &body.get_raises)?,
        set_raises: exceptions(types, &body.set_raises)?,
    })
}

pub(super) fn exceptions(types: &mut Types<'_>, raises: &[DefId]) -> Result<Vec<TypeCode>, CreateError> {
    raises.iter().filter_map(|id| types.of_definition(*id).transpose()).collect()
}
