//! Conversion of IDL value types to descriptions of value types ([`ValueInfo`]).

use std::sync::Arc;

use idl_compiler::model::{DefId, DefKind, Factory, Model};
use orb_runtime::types::CreateError;

use crate::value_info::{InitializerInfo, ValueInfo};

use super::interfaces::{attribute, exceptions, operation};
use super::types::Types;

/// Returns the description of a value type, or `None` for any other definition.
pub(super) fn value(
    model: &Model,
    types: &mut Types<'_>,
    id: DefId,
) -> Result<Option<Arc<ValueInfo>>, CreateError> {
    let Some(body) = model.value(id) else { return Ok(None) };
    let Some(code) = types.of_definition(id)? else { return Ok(None) };
    let ids = |defs: &[DefId], wanted: fn(&Model, DefId) -> bool| {
        let wanted = defs.iter().filter(|id| wanted(model, **id));
        wanted.map(|id| (&*model.def(*id).repository_id).into()).collect()
    };
    let mut value = ValueInfo {
        abstract_bases: ids(&body.bases, Model::is_abstract_value),
        supports: ids(&body.supports, |_, _| true),
        ..ValueInfo::of_code(&code)
    };
    for member in body.members.iter().map(|member| model.def(*member)) {
        match &member.kind {
            DefKind::Operation(body) => value.operations.push(Arc::new(operation(types, member, body)?)),
            DefKind::Attribute(body) => value.attributes.push(attribute(types, member, body)?),
            _ => {}
        }
    }
    for factory in &body.factories {
        value.initializers.push(initializer(types, factory)?);
    }
    Ok(Some(Arc::new(value)))
}

fn initializer(types: &mut Types<'_>, factory: &Factory) -> Result<InitializerInfo, CreateError> {
    let params = factory.params.iter().map(|param| Ok(((&*param.name).into(), types.of_type(param.ty)?)));
    Ok(InitializerInfo {
        name: (&*factory.name).into(),
        params: params.collect::<Result<_, CreateError>>()?,
        raises: exceptions(types, &factory.raises)?,
    })
}
