//! The operations of the objects that describe value types.

use orb_runtime::SystemException;
use orb_runtime::dynamic::{ServerRequest, Value};
use orb_runtime::types::{TypeCode, ValueModifier};

use crate::value_info::{InitializerInfo, ValueInfo};

use super::answer::{
    ObjectCall, ValueResult, code_value, nil_reference, read_only, sequence, structure, text_value,
};
use super::kind::Kind;
use super::object::VALUE_BASE_ID;
use super::store::{Def, Details};

impl ObjectCall<'_> {
    pub(super) fn execute_for_value(
        &self,
        name: &str,
        index: usize,
        def: &Def,
        value: &ValueInfo,
        request: &ServerRequest,
    ) -> ValueResult {
        let is = |modifier| Ok((value.modifier() == modifier).into());
        let all = |ids: &[Box<str>]| {
            self.references_to(ids.iter().filter_map(|id| self.store.find_id(id)).map(|(index, _)| index))
        };
        match name {
            "_get_is_abstract" => is(ValueModifier::Abstract),
            "_get_is_custom" => is(ValueModifier::Custom),
            "_get_is_truncatable" => is(ValueModifier::Truncatable),
            "_get_base_value" => value
                .concrete_base()
                .map_or_else(|| Ok(nil_reference()), |base| self.reference_to_type(&base)),
            "_get_supported_interfaces" => all(&value.supports),
            "_get_abstract_base_values" => all(&value.abstract_bases),
            "_get_initializers" => self.initializers(value, false),
            "_get_ext_initializers" => self.initializers(value, true),
            "is_a" => {
                let id: String = request.get("id")?;
                let base = |index: usize| self.store.get(index).is_some_and(|def| *def.id == *id);
                let is = *def.id == *id || id == VALUE_BASE_ID || has_base(value.concrete_base(), &id);
                Ok((is || self.store.bases(index).into_iter().any(base)).into())
            }
            "describe_value" => self.full_value(index, def, value, false),
            "describe_ext_value" => self.full_value(index, def, value, true),
            _ => Err(read_only()),
        }
    }

    fn full_value(&self, index: usize, def: &Def, value: &ValueInfo, extended: bool) -> ValueResult {
        let (operations, attributes) = self.operations_and_attributes(index, extended)?;
        let members = self.store.contents(Some(index), false);
        let members = members.into_iter().filter_map(|index| self.store.get(index));
        let members = members.filter(|member| member.kind == Kind::ValueMember);
        let members = members.map(|member| self.value_member(member)).collect::<Result<_, _>>()?;
        let [name, id, is_abstract, is_custom, scope, version, supports, bases, truncatable, base] =
            self.description_members(def, value);
        Ok(structure([
            name,
            id,
            is_abstract,
            is_custom,
            scope,
            version,
            operations,
            attributes,
            sequence(members),
            self.initializers(value, extended)?,
            supports,
            bases,
            truncatable,
            base,
            code_value(value.code.clone()),
        ]))
    }

    /// Returns the members of a ValueDescription.
    pub(super) fn description_members(&self, def: &Def, value: &ValueInfo) -> [Value; 10] {
        let [name, id, scope, version] = self.common_members(&def.id, &def.name, def.parent);
        let is = |modifier| Value::from(value.modifier() == modifier);
        let ids = |ids: &[Box<str>]| sequence(ids.iter().map(|id| text_value(id)).collect());
        let base = value.concrete_base();
        [
            name,
            id,
            is(ValueModifier::Abstract),
            is(ValueModifier::Custom),
            scope,
            version,
            ids(&value.supports),
            ids(&value.abstract_bases),
            is(ValueModifier::Truncatable),
            text_value(base.as_ref().and_then(|base| base.id().ok()).unwrap_or_default()),
        ]
    }

    fn initializers(&self, value: &ValueInfo, extended: bool) -> ValueResult {
        let one = |initializer: &InitializerInfo| -> ValueResult {
            let param = |(name, code): &(Box<str>, TypeCode)| {
                Ok(structure([text_value(name), code_value(code.clone()), self.reference_to_type(code)?]))
            };
            let params = initializer.params.iter().map(param);
            let params = sequence(params.collect::<Result<_, SystemException>>()?);
            let name = text_value(&initializer.name);
            Ok(match extended {
                true => structure([params, self.exceptions(&initializer.raises), name]),
                false => structure([params, name]),
            })
        };
        value.initializers.iter().map(one).collect::<Result<_, _>>().map(sequence)
    }

    pub(super) fn value_member(&self, def: &Def) -> ValueResult {
        let access = if let Details::ValueMember(_, access) = &def.details { *access as i16 } else { 0 };
        let [name, id, scope, version] = self.common_members(&def.id, &def.name, def.parent);
        let code = def.type_code();
        let definition = self.reference_to_type(&code)?;
        Ok(structure([name, id, scope, version, code_value(code), definition, access.into()]))
    }
}

/// Returns whether `base`, or one of its own concrete bases, has this id.
fn has_base(mut base: Option<TypeCode>, id: &str) -> bool {
    while let Some(current) = base {
        let current = current.unaliased();
        if current.id() == Ok(id) {
            return true;
        }
        base = current.concrete_base_type().ok().flatten();
    }
    false
}
