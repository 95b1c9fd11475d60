//! The operations of the objects of an Interface Repository, as a server.

use std::sync::Arc;

use orb_runtime::dynamic::{AttributeInfo, Dynamic, Interface, Items, OperationInfo, ServerRequest, Value};
use orb_runtime::poa::Poa;
use orb_runtime::types::{Any, TcKind, TypeCode};
use orb_runtime::values::Encoder;
use orb_runtime::wire::{ByteOrder, Ior, Version};
use orb_runtime::{ObjectRef, SystemException, SystemExceptionKind};

use super::object::Object;
use super::store::{Def, Details, Store, version_of};

/// A call of an operation of one object.
pub(super) struct ObjectCall<'s> {
    pub(super) store: &'s Store,
    pub(super) root_poa: &'s Poa,
    pub(super) object: Object<'s>,
}

pub(super) type ValueResult = Result<Value, SystemException>;

pub(super) fn sequence(values: Vec<Value>) -> Value {
    Value::Items(Box::new(Items::Values(values)))
}

pub(super) fn text_value(text: &str) -> Value {
    text.into()
}

pub(super) fn structure<const N: usize>(members: [Value; N]) -> Value {
    Value::Struct(Box::new(members))
}

pub(super) fn code_value(code: TypeCode) -> Value {
    Value::TypeCode(Box::new(code))
}

/// The maximum size of a result in bytes. By default, peers accept and decode up to 16 MiB.
const MAX_RESULT_BYTES: usize = 8 << 20;

/// Returns the encoded size of a value in bytes.
fn encoded_size(value: &Any) -> Result<usize, SystemException> {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    value.encode_value(&mut e)?;
    Ok(e.len())
}

/// Returns the result unless its encoding exceeds the maximum size.
fn check_size(result: Any) -> Result<Any, SystemException> {
    if encoded_size(&result)? > MAX_RESULT_BYTES { Err(too_large()) } else { Ok(result) }
}

#[cold]
fn too_large() -> SystemException {
    let text = "the result exceeds 8 MiB: request less at a time by `max_returned_objs` or `limit_type`";
    super::exception(SystemExceptionKind::ImpLimit, text)
}

fn bad_param(text: &'static str) -> SystemException {
    super::exception(SystemExceptionKind::BadParam, text)
}

pub(super) fn read_only() -> SystemException {
    let text = "this interface repository is read-only: only the program that serves it can add definitions";
    super::exception(SystemExceptionKind::NoImplement, text)
}

impl<'s> ObjectCall<'s> {
    /// Executes the operation. Raises NO_IMPLEMENT if the operation would change the repository.
    fn execute(&self, request: &ServerRequest) -> ValueResult {
        let name = request.operation();
        if name.starts_with("_set_") || matches!(name, "destroy" | "move") {
            return Err(read_only());
        }
        match name {
            "_get_def_kind" => return Ok(Value::Enum(self.object.kind() as u32)),
            "_get_type" => return Ok(code_value(self.object.type_code())),
            "lookup" | "contents" | "lookup_name" | "describe_contents" => {
                return self.execute_for_container(request);
            }
            _ => {}
        }
        match &self.object {
            Object::Repository => self.execute_for_repository(request),
            Object::Primitive(number) if name == "_get_kind" => Ok(Value::Enum(*number)),
            Object::Primitive(_) => Err(read_only()),
            Object::Type(_, code) => self.execute_for_anonymous_type(name, code),
            Object::Def(index, def) => match name {
                "_get_id" => Ok(text_value(&def.id)),
                "_get_name" => Ok(text_value(&def.name)),
                "_get_version" => Ok(text_value(def.version())),
                "_get_absolute_name" => Ok(text_value(&def.absolute_name)),
                "_get_containing_repository" => self.reference_to(&Object::Repository),
                "_get_defined_in" => match def.parent.and_then(|parent| self.definition_at(parent)) {
                    Some(parent) => self.reference_to(&parent),
                    None => self.reference_to(&Object::Repository),
                },
                "describe" => Ok(structure([Value::Enum(def.kind as u32), self.description(def)?.into()])),
                _ => self.execute_for_definition(name, *index, def, request),
            },
        }
    }

    /// Returns the result of the operation. Raises IMP_LIMIT if the result exceeds the maximum size.
    pub(super) fn result(&self, request: &ServerRequest) -> Result<Any, SystemException> {
        let (code, value) = (request.info().result.clone(), self.execute(request)?);
        check_size(Any::from_dynamic(&Dynamic { code, value, graph: Default::default() })?)
    }

    /// Returns the full description of the object if it is an interface. Raises IMP_LIMIT if it is too large.
    pub(super) fn metadata(&self) -> Result<Option<Any>, SystemException> {
        let Object::Def(index, def) = &self.object else { return Ok(None) };
        let Details::Interface(interface) = &def.details else { return Ok(None) };
        let full = self.full_interface(*index, def, interface, true)?;
        let metadata = self.any_of_type("InterfaceAttrExtension::ExtFullInterfaceDescription", full)?;
        check_size(metadata).map(Some)
    }

    fn reference_or_nil(&self, object: Option<Object<'_>>) -> ValueResult {
        object.map_or_else(|| Ok(nil_reference()), |object| self.reference_to(&object))
    }

    fn definition_at(&self, index: usize) -> Option<Object<'s>> {
        self.store.get(index).map(|def| Object::Def(index, def))
    }

    fn reference_to(&self, object: &Object<'_>) -> ValueResult {
        Ok(Value::Object(Box::new(object.reference(self.store, self.root_poa)?)))
    }

    /// Returns a reference to the object that describes a type, or nil for an unknown type.
    pub(super) fn reference_to_type(&self, code: &TypeCode) -> ValueResult {
        self.reference_or_nil(Object::of_code(self.store, code))
    }

    pub(super) fn references_to(&self, definitions: impl IntoIterator<Item = usize>) -> ValueResult {
        let objects = definitions.into_iter().filter_map(|index| self.definition_at(index));
        objects.map(|object| self.reference_to(&object)).collect::<Result<_, _>>().map(sequence)
    }

    /// Returns the index of the called definition, or `None` for the repository.
    fn scope(&self) -> Option<usize> {
        if let Object::Def(index, _) = self.object { Some(index) } else { None }
    }

    fn execute_for_repository(&self, request: &ServerRequest) -> ValueResult {
        let element = || -> Result<TypeCode, SystemException> {
            let element: ObjectRef = request.get("element_type")?;
            self.object_of(&element)
                .map(|object| object.type_code())
                .ok_or_else(|| bad_param("the element type is not an object of this repository"))
        };
        let of_type = |code: TypeCode| self.reference_or_nil(Object::of_anonymous_type(code));
        match request.operation() {
            "lookup_id" => {
                let id: String = request.get("search_id")?;
                self.reference_or_nil(self.store.find_id(&id).map(|(index, def)| Object::Def(index, def)))
            }
            "get_canonical_typecode" => {
                let code: TypeCode = request.get("tc")?;
                let known = Object::of_code(self.store, &code).map(|object| object.type_code());
                Ok(code_value(known.filter(|known| known.equivalent(&code)).unwrap_or(code)))
            }
            "get_primitive" => match argument(request, "kind")? {
                Value::Enum(number) => self.reference_to(&Object::Primitive(number)),
                _ => Err(bad_param("`kind` is not a PrimitiveKind")),
            },
            "create_string" => of_type(TypeCode::string(bound(request, "bound")?)),
            "create_wstring" => of_type(TypeCode::wstring(bound(request, "bound")?)),
            "create_sequence" => of_type(TypeCode::sequence(&element()?, request.get("bound")?)),
            "create_array" => of_type(TypeCode::array(&element()?, bound(request, "length")?)),
            "create_fixed" => {
                let (digits, scale): (u16, i16) = (request.get("digits")?, request.get("scale")?);
                of_type(TypeCode::create_fixed(digits, scale)?)
            }
            _ => Err(read_only()),
        }
    }

    /// Returns the object to which a reference refers, if it is an object of this repository.
    fn object_of(&self, reference: &ObjectRef) -> Option<Object<'s>> {
        let poa = self.root_poa.find(super::object::POA_NAME).ok()?;
        let id = poa.children().iter().find_map(|poa| poa.reference_to_id(reference).ok())?;
        Object::of_id(self.store, id.as_slice())
    }

    fn execute_for_anonymous_type(&self, name: &str, code: &TypeCode) -> ValueResult {
        match name {
            "_get_bound" | "_get_length" => Ok(code.length().unwrap_or(0).into()),
            "_get_digits" => Ok(code.fixed_digits().unwrap_or(0).into()),
            "_get_scale" => Ok(code.fixed_scale().unwrap_or(0).into()),
            "_get_element_type" => Ok(code_value(code.content_type().unwrap_or_default())),
            "_get_element_type_def" => self.reference_to_type(&code.content_type().unwrap_or_default()),
            _ => Err(read_only()),
        }
    }

    fn execute_for_container(&self, request: &ServerRequest) -> ValueResult {
        let wanted = || match argument(request, "limit_type")? {
            Value::Enum(kind) => Ok(kind),
            _ => Err(bad_param("`limit_type` is not a DefinitionKind")),
        };
        let among = |index, wanted| self.store.get(index).is_some_and(|def| def.kind.is_among(wanted));
        let scope = self.scope();
        match request.operation() {
            "lookup" => {
                let name: String = request.get("search_name")?;
                self.reference_or_nil(
                    self.store.find_name(scope, &name).and_then(|index| self.definition_at(index)),
                )
            }
            "contents" => {
                let (wanted, exclude): (u32, bool) = (wanted()?, request.get("exclude_inherited")?);
                let all = self.store.contents(scope, !exclude);
                self.references_to(all.into_iter().filter(|index| among(*index, wanted)))
            }
            "lookup_name" => {
                let name: String = request.get("search_name")?;
                let levels: i32 = request.get("levels_to_search")?;
                let (wanted, exclude): (u32, bool) = (wanted()?, request.get("exclude_inherited")?);
                let mut found = Vec::new();
                let mut level = self.store.contents(scope, !exclude);
                let mut left = if levels < 0 { usize::MAX } else { levels.unsigned_abs() as usize };
                while left > 0 && !level.is_empty() {
                    left -= 1;
                    let named =
                        |index: &&usize| self.store.get(**index).is_some_and(|def| *def.name == *name);
                    found.extend(level.iter().filter(named).filter(|index| among(**index, wanted)).copied());
                    level = level.iter().flat_map(|index| self.store.contents(Some(*index), false)).collect();
                }
                self.references_to(found)
            }
            _ => {
                let (wanted, exclude): (u32, bool) = (wanted()?, request.get("exclude_inherited")?);
                let max_count: i32 = request.get("max_returned_objs")?;
                let max_count = usize::try_from(max_count).unwrap_or(usize::MAX);
                let all = self.store.contents(scope, !exclude);
                let (mut described, mut total_size) = (Vec::new(), 0);
                for index in all.into_iter().filter(|index| among(*index, wanted)).take(max_count) {
                    let Some(def) = self.store.get(index) else { continue };
                    let object = self.reference_to(&Object::Def(index, def))?;
                    let description = self.description(def)?;
                    total_size += encoded_size(&description)?;
                    if total_size > MAX_RESULT_BYTES {
                        return Err(too_large());
                    }
                    described.push(structure([object, Value::Enum(def.kind as u32), description.into()]));
                }
                Ok(sequence(described))
            }
        }
    }

    fn execute_for_definition(
        &self,
        name: &str,
        index: usize,
        def: &Def,
        request: &ServerRequest,
    ) -> ValueResult {
        let content_type = || def.type_code().content_type().unwrap_or_default();
        match (name, &def.details) {
            ("_get_type_def", _) => self.reference_to_type(&def.type_code()),
            ("_get_value", Details::Constant(constant)) => Ok(Any::from_dynamic(constant)?.into()),
            ("_get_members", Details::Type(code)) => self.members(code),
            ("_get_discriminator_type", Details::Type(code)) => {
                Ok(code_value(code.discriminator_type().unwrap_or_default()))
            }
            ("_get_discriminator_type_def", Details::Type(code)) => {
                self.reference_to_type(&code.discriminator_type().unwrap_or_default())
            }
            ("_get_original_type_def", Details::Type(_)) => self.reference_to_type(&content_type()),
            ("_get_access", Details::ValueMember(_, access)) => Ok((*access as i16).into()),
            ("_get_mode", Details::Attribute(attribute)) => Ok(Value::Enum(attribute.readonly.into())),
            ("_get_get_exceptions", Details::Attribute(attribute)) => {
                Ok(self.exceptions(&attribute.get_raises))
            }
            ("_get_set_exceptions", Details::Attribute(attribute)) => {
                Ok(self.exceptions(&attribute.set_raises))
            }
            ("describe_attribute", Details::Attribute(attribute)) => {
                Ok(self.attribute(def.parent, attribute, true))
            }
            ("_get_result", Details::Operation(operation)) => Ok(code_value(operation.result.clone())),
            ("_get_result_def", Details::Operation(operation)) => self.reference_to_type(&operation.result),
            ("_get_params", Details::Operation(operation)) => self.params(operation),
            ("_get_mode", Details::Operation(operation)) => Ok(Value::Enum(operation.oneway.into())),
            ("_get_contexts", Details::Operation(operation)) => Ok(contexts(operation)),
            ("_get_exceptions", Details::Operation(operation)) => {
                let raised =
                    operation.raises.iter().filter_map(|raised| self.store.find_id(raised.id().ok()?));
                self.references_to(raised.map(|(index, _)| index))
            }
            ("_get_base_interfaces", Details::Interface(interface)) => {
                let bases = interface.bases().iter().filter_map(|base| self.store.find_id(base.id()));
                self.references_to(bases.map(|(index, _)| index))
            }
            ("is_a", Details::Interface(interface)) => {
                let id: String = request.get("interface_id")?;
                Ok(interface.is_a(&id).into())
            }
            ("describe_interface", Details::Interface(interface)) => {
                self.full_interface(index, def, interface, false)
            }
            ("describe_ext_interface", Details::Interface(interface)) => {
                self.full_interface(index, def, interface, true)
            }
            (_, Details::Value(value)) => self.execute_for_value(name, index, def, value, request),
            _ => Err(read_only()),
        }
    }

    fn members(&self, code: &TypeCode) -> ValueResult {
        let mut all = Vec::new();
        for index in 0..code.member_count().unwrap_or(0) {
            let name = text_value(code.member_name(index).unwrap_or_default());
            if code.kind() == TcKind::Enum {
                all.push(name);
                continue;
            }
            let member = code.member_type(index).unwrap_or_default();
            let definition = self.reference_to_type(&member)?;
            all.push(match code.kind() {
                TcKind::Union => {
                    let label = code.member_label(index).unwrap_or_default();
                    structure([name, label.into(), code_value(member), definition])
                }
                _ => structure([name, code_value(member), definition]),
            });
        }
        Ok(sequence(all))
    }

    fn params(&self, operation: &OperationInfo) -> ValueResult {
        let param = |param: &orb_runtime::dynamic::ParamInfo| -> ValueResult {
            let mode = Value::Enum(param.mode as u32);
            Ok(structure([
                text_value(&param.name),
                code_value(param.code.clone()),
                self.reference_to_type(&param.code)?,
                mode,
            ]))
        };
        operation.params.iter().map(param).collect::<Result<_, _>>().map(sequence)
    }

    /// Returns the members that all descriptions have: name, id, scope and version.
    pub(super) fn common_members(&self, id: &str, name: &str, parent: Option<usize>) -> [Value; 4] {
        let scope = parent.and_then(|parent| self.store.get(parent)).map_or("", |def| &*def.id);
        [text_value(name), text_value(id), text_value(scope), text_value(version_of(id))]
    }

    pub(super) fn exceptions(&self, raises: &[TypeCode]) -> Value {
        let one = |raised: &TypeCode| {
            let id = raised.id().unwrap_or_default();
            let parent = self.store.find_id(id).and_then(|(_, def)| def.parent);
            let [name, id, scope, version] =
                self.common_members(id, raised.name().unwrap_or_default(), parent);
            structure([name, id, scope, version, code_value(raised.clone())])
        };
        sequence(raises.iter().map(one).collect())
    }

    fn operation(&self, parent: Option<usize>, operation: &OperationInfo) -> ValueResult {
        let [name, id, scope, version] = self.common_members(&operation.id, &operation.name, parent);
        Ok(structure([
            name,
            id,
            scope,
            version,
            code_value(operation.result.clone()),
            Value::Enum(operation.oneway.into()),
            contexts(operation),
            self.params(operation)?,
            self.exceptions(&operation.raises),
        ]))
    }

    /// Returns the description of an attribute. It includes exceptions if `extended` is true.
    fn attribute(&self, parent: Option<usize>, attribute: &AttributeInfo, extended: bool) -> Value {
        let [name, id, scope, version] = self.common_members(&attribute.id, &attribute.name, parent);
        let (code, mode) = (code_value(attribute.code.clone()), Value::Enum(attribute.readonly.into()));
        if !extended {
            return structure([name, id, scope, version, code, mode]);
        }
        let (get, set) = (self.exceptions(&attribute.get_raises), self.exceptions(&attribute.set_raises));
        structure([name, id, scope, version, code, mode, get, set])
    }

    /// Returns the full description of an interface, including inherited operations and attributes.
    fn full_interface(&self, index: usize, def: &Def, interface: &Interface, extended: bool) -> ValueResult {
        let (operations, attributes) = self.operations_and_attributes(index, extended)?;
        let bases = sequence(interface.bases().iter().map(|base| text_value(base.id())).collect());
        let [name, id, scope, version] = self.common_members(&def.id, &def.name, def.parent);
        let code = code_value(def.type_code());
        Ok(structure([name, id, scope, version, operations, attributes, bases, code]))
    }

    /// Returns the operations and attributes of an interface or value type, including inherited ones.
    pub(super) fn operations_and_attributes(
        &self,
        index: usize,
        extended: bool,
    ) -> Result<(Value, Value), SystemException> {
        let (mut operations, mut attributes) = (Vec::new(), Vec::new());
        for owner in std::iter::once(index).chain(self.store.bases(index)) {
            let (own_attributes, own_operations): (&[AttributeInfo], &[Arc<OperationInfo>]) =
                match self.store.get(owner).map(|def| &def.details) {
                    Some(Details::Interface(interface)) => (interface.attributes(), interface.operations()),
                    Some(Details::Value(value)) => (&value.attributes, &value.operations),
                    _ => continue,
                };
            for operation in own_operations {
                operations.push(self.operation(Some(owner), operation)?);
            }
            attributes.extend(own_attributes.iter().map(|one| self.attribute(Some(owner), one, extended)));
        }
        Ok((sequence(operations), sequence(attributes)))
    }

    /// Returns the description of a definition as an `any`. Its type depends on the kind of the definition.
    fn description(&self, def: &Def) -> Result<Any, SystemException> {
        let [name, id, scope, version] = self.common_members(&def.id, &def.name, def.parent);
        let value = match &def.details {
            Details::Module => structure([name, id, scope, version]),
            Details::Interface(interface) => {
                let bases = interface.bases().iter().map(|base| text_value(base.id())).collect();
                structure([name, id, scope, version, sequence(bases)])
            }
            Details::Operation(operation) => self.operation(def.parent, operation)?,
            Details::Attribute(attribute) => self.attribute(def.parent, attribute, false),
            Details::Constant(constant) => {
                let value = Any::from_dynamic(constant)?;
                structure([name, id, scope, version, code_value(constant.code.clone()), value.into()])
            }
            Details::ValueMember(..) => self.value_member(def)?,
            Details::Value(value) => structure(self.description_members(def, value)),
            Details::Type(code) => structure([name, id, scope, version, code_value(code.clone())]),
        };
        self.any_of_type(def.kind.description_struct(), value)
    }

    fn any_of_type(&self, type_name: &str, value: Value) -> Result<Any, SystemException> {
        let code = super::repository_type(type_name)?;
        Ok(Any::from_dynamic(&Dynamic { code, value, graph: Default::default() })?)
    }
}

pub(super) fn nil_reference() -> Value {
    Value::Object(Box::new(Ior::nil()))
}

fn contexts(operation: &OperationInfo) -> Value {
    sequence(operation.contexts.iter().map(|name| text_value(name)).collect())
}

fn argument(request: &ServerRequest, name: &str) -> Result<Value, SystemException> {
    let argument = request.arguments().named(name).and_then(|argument| argument.value.as_ref());
    let argument = argument.ok_or_else(|| bad_param("an argument is missing"))?;
    Ok(argument.to_dynamic()?.value)
}

/// Returns an argument that is a bound or length. It must not be 0.
fn bound(request: &ServerRequest, name: &str) -> Result<u32, SystemException> {
    match request.get(name)? {
        0 => Err(bad_param("the bound or length must not be 0; an unbounded string is a primitive type")),
        bound => Ok(bound),
    }
}
