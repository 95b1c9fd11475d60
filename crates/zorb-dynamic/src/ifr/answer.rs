//! The answers of the repository's objects.

use std::sync::Arc;

use orb_runtime::dynamic::{AttributeInfo, Dynamic, Interface, Items, OperationInfo, ServerRequest, Value};
use orb_runtime::poa::Poa;
use orb_runtime::types::{Any, TcKind, TypeCode};
use orb_runtime::values::Encoder;
use orb_runtime::wire::{ByteOrder, Ior, Version};
use orb_runtime::{ObjectRef, SystemException, SystemExceptionKind};

use super::object::Object;
use super::store::{About, Def, Store};

/// One request to one object.
pub(super) struct Question<'s> {
    pub(super) store: &'s Store,
    pub(super) root: &'s Poa,
    pub(super) object: Object<'s>,
}

pub(super) type Answer = Result<Value, SystemException>;

pub(super) fn items(values: Vec<Value>) -> Value {
    Value::Items(Box::new(Items::Values(values)))
}

pub(super) fn text(text: &str) -> Value {
    text.into()
}

pub(super) fn record<const N: usize>(members: [Value; N]) -> Value {
    Value::Struct(Box::new(members))
}

pub(super) fn code(code: TypeCode) -> Value {
    Value::TypeCode(Box::new(code))
}

/// The maximum size of an answer in bytes. By default, peers accept messages of 16 MiB and decode up to the
/// same size.
const MOST_OCTETS: usize = 8 << 20;

/// Returns the encoded size of a value in bytes.
///
/// # Errors
/// MARSHAL: it has no encoding.
fn size(value: &Any) -> Result<usize, SystemException> {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    value.encode_value(&mut e)?;
    Ok(e.len())
}

#[cold]
fn too_large() -> SystemException {
    let text = "the answer takes more than 8 MiB: ask for less at a time (`max_returned_objs`, `limit_type`)";
    super::refused(SystemExceptionKind::ImpLimit, text)
}

fn bad_param(text: &'static str) -> SystemException {
    super::refused(SystemExceptionKind::BadParam, text)
}

pub(super) fn read_only() -> SystemException {
    let text = "this interface repository is read-only: it says what its program was given";
    super::refused(SystemExceptionKind::NoImplement, text)
}

impl<'s> Question<'s> {
    /// Returns the result of the operation.
    ///
    /// # Errors
    /// NO_IMPLEMENT: it would change the repository; BAD_PARAM.
    fn answer(&self, request: &ServerRequest) -> Answer {
        let name = request.operation();
        if name.starts_with("_set_") || matches!(name, "destroy" | "move") {
            return Err(read_only());
        }
        match name {
            "_get_def_kind" => return Ok(Value::Enum(self.object.kind() as u32)),
            "_get_type" => return Ok(code(self.object.type_code())),
            "lookup" | "contents" | "lookup_name" | "describe_contents" => return self.contained(request),
            _ => {}
        }
        match &self.object {
            Object::Repository => self.repository(request),
            Object::Primitive(number) if name == "_get_kind" => Ok(Value::Enum(*number)),
            Object::Primitive(_) => Err(read_only()),
            Object::Type(_, of) => self.nameless(name, of),
            Object::Def(at, def) => match name {
                "_get_id" => Ok(text(&def.id)),
                "_get_name" => Ok(text(&def.name)),
                "_get_version" => Ok(text(def.version())),
                "_get_absolute_name" => Ok(text(&def.absolute_name)),
                "_get_containing_repository" => self.to(&Object::Repository),
                "_get_defined_in" => match def.parent.and_then(|parent| self.of(parent)) {
                    Some(parent) => self.to(&parent),
                    None => self.to(&Object::Repository),
                },
                "describe" => Ok(record([Value::Enum(def.kind as u32), self.description(def)?.into()])),
                _ => self.definition(name, *at, def, request),
            },
        }
    }

    /// Returns the result of the operation, as a value of its result type.
    ///
    /// # Errors
    /// The errors of [`answer`](Self::answer), and IMP_LIMIT if the result exceeds the maximum size of an
    /// answer.
    pub(super) fn result(&self, request: &ServerRequest) -> Result<Any, SystemException> {
        let (code, value) = (request.info().result.clone(), self.answer(request)?);
        let result = Any::from_dynamic(&Dynamic { code, value, graph: Default::default() })?;
        if size(&result)? > MOST_OCTETS { Err(too_large()) } else { Ok(result) }
    }

    /// Returns the full description of the object's interface, as an any.
    ///
    /// # Errors
    /// IMP_LIMIT: it exceeds the maximum size of an answer.
    pub(super) fn metadata(&self) -> Result<Option<Any>, SystemException> {
        let Object::Def(at, def) = &self.object else { return Ok(None) };
        let About::Interface(interface) = &def.about else { return Ok(None) };
        let full = self.full(*at, def, interface, true)?;
        let metadata = self.any("InterfaceAttrExtension::ExtFullInterfaceDescription", full)?;
        if size(&metadata)? > MOST_OCTETS { Err(too_large()) } else { Ok(Some(metadata)) }
    }

    fn of(&self, at: usize) -> Option<Object<'s>> {
        self.store.get(at).map(|def| Object::Def(at, def))
    }

    fn to(&self, object: &Object<'_>) -> Answer {
        Ok(Value::Object(Box::new(object.reference(self.store, self.root)?)))
    }

    /// Returns the object for that type, or nil for a type that the repository does not have.
    pub(super) fn to_type(&self, of: &TypeCode) -> Answer {
        match Object::of_code(self.store, of) {
            Some(object) => self.to(&object),
            None => Ok(nil()),
        }
    }

    pub(super) fn to_all(&self, all: impl IntoIterator<Item = usize>) -> Answer {
        let objects = all.into_iter().filter_map(|at| self.of(at));
        objects.map(|object| self.to(&object)).collect::<Result<_, _>>().map(items)
    }

    fn scope(&self) -> Option<usize> {
        if let Object::Def(at, _) = self.object { Some(at) } else { None }
    }

    fn repository(&self, request: &ServerRequest) -> Answer {
        let element = || -> Result<TypeCode, SystemException> {
            let element: ObjectRef = request.get("element_type")?;
            self.own(&element)
                .map(|object| object.type_code())
                .ok_or_else(|| bad_param("the element type is no object of this repository"))
        };
        let of_type = |of: TypeCode| match Object::of_type(of) {
            Some(object) => self.to(&object),
            None => Ok(nil()),
        };
        match request.operation() {
            "lookup_id" => {
                let id: String = request.get("search_id")?;
                match self.store.find_id(&id) {
                    Some((at, def)) => self.to(&Object::Def(at, def)),
                    None => Ok(nil()),
                }
            }
            "get_canonical_typecode" => {
                let of: TypeCode = request.get("tc")?;
                let known = Object::of_code(self.store, &of).map(|object| object.type_code());
                Ok(code(known.filter(|known| known.equivalent(&of)).unwrap_or(of)))
            }
            "get_primitive" => match argument(request, "kind")? {
                Value::Enum(number) => self.to(&Object::Primitive(number)),
                _ => Err(bad_param("`kind` is no PrimitiveKind")),
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

    /// Returns an object of this repository by its reference.
    fn own(&self, reference: &ObjectRef) -> Option<Object<'s>> {
        let poa = self.root.find(super::object::POA).ok()?;
        let id = poa.children().iter().find_map(|poa| poa.reference_to_id(reference).ok())?;
        Object::of_id(self.store, id.as_slice())
    }

    fn nameless(&self, name: &str, of: &TypeCode) -> Answer {
        match name {
            "_get_bound" | "_get_length" => Ok(of.length().unwrap_or(0).into()),
            "_get_digits" => Ok(of.fixed_digits().unwrap_or(0).into()),
            "_get_scale" => Ok(of.fixed_scale().unwrap_or(0).into()),
            "_get_element_type" => Ok(code(of.content_type().unwrap_or_default())),
            "_get_element_type_def" => self.to_type(&of.content_type().unwrap_or_default()),
            _ => Err(read_only()),
        }
    }

    fn contained(&self, request: &ServerRequest) -> Answer {
        let wanted = || match argument(request, "limit_type")? {
            Value::Enum(kind) => Ok(kind),
            _ => Err(bad_param("`limit_type` is no DefinitionKind")),
        };
        let among = |at: usize, wanted: u32| self.store.get(at).is_some_and(|def| def.kind.is_among(wanted));
        let scope = self.scope();
        match request.operation() {
            "lookup" => {
                let name: String = request.get("search_name")?;
                match self.store.find_name(scope, &name).and_then(|at| self.of(at)) {
                    Some(object) => self.to(&object),
                    None => Ok(nil()),
                }
            }
            "contents" => {
                let (wanted, exclude): (u32, bool) = (wanted()?, request.get("exclude_inherited")?);
                let all = self.store.contents(scope, !exclude);
                self.to_all(all.into_iter().filter(|at| among(*at, wanted)))
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
                    let named = |at: &&usize| self.store.get(**at).is_some_and(|def| *def.name == *name);
                    found.extend(level.iter().filter(named).filter(|at| among(**at, wanted)).copied());
                    level = level.iter().flat_map(|at| self.store.contents(Some(*at), false)).collect();
                }
                self.to_all(found)
            }
            _ => {
                let (wanted, exclude): (u32, bool) = (wanted()?, request.get("exclude_inherited")?);
                let most: i32 = request.get("max_returned_objs")?;
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                let all = self.store.contents(scope, !exclude);
                let (mut described, mut octets) = (Vec::new(), 0);
                for at in all.into_iter().filter(|at| among(*at, wanted)).take(most) {
                    let Some(def) = self.store.get(at) else { continue };
                    let object = self.to(&Object::Def(at, def))?;
                    let description = self.description(def)?;
                    octets += size(&description)?;
                    if octets > MOST_OCTETS {
                        return Err(too_large());
                    }
                    described.push(record([object, Value::Enum(def.kind as u32), description.into()]));
                }
                Ok(items(described))
            }
        }
    }

    fn definition(&self, name: &str, at: usize, def: &Def, request: &ServerRequest) -> Answer {
        let of = || def.type_code().content_type().unwrap_or_default();
        match (name, &def.about) {
            ("_get_type_def", _) => self.to_type(&def.type_code()),
            ("_get_value", About::Constant(constant)) => Ok(Any::from_dynamic(constant)?.into()),
            ("_get_members", About::Type(of)) => self.members(of),
            ("_get_discriminator_type", About::Type(of)) => {
                Ok(code(of.discriminator_type().unwrap_or_default()))
            }
            ("_get_discriminator_type_def", About::Type(of)) => {
                self.to_type(&of.discriminator_type().unwrap_or_default())
            }
            ("_get_original_type_def", About::Type(_)) => self.to_type(&of()),
            ("_get_access", About::ValueMember(_, access)) => Ok((*access as i16).into()),
            ("_get_mode", About::Attribute(attribute)) => Ok(Value::Enum(attribute.readonly.into())),
            ("_get_get_exceptions", About::Attribute(attribute)) => {
                Ok(self.exceptions(&attribute.get_raises))
            }
            ("_get_set_exceptions", About::Attribute(attribute)) => {
                Ok(self.exceptions(&attribute.set_raises))
            }
            ("describe_attribute", About::Attribute(attribute)) => {
                Ok(self.ext_attribute(def.parent, attribute))
            }
            ("_get_result", About::Operation(operation)) => Ok(code(operation.result.clone())),
            ("_get_result_def", About::Operation(operation)) => self.to_type(&operation.result),
            ("_get_params", About::Operation(operation)) => self.params(operation),
            ("_get_mode", About::Operation(operation)) => Ok(Value::Enum(operation.oneway.into())),
            ("_get_contexts", About::Operation(operation)) => Ok(contexts(operation)),
            ("_get_exceptions", About::Operation(operation)) => {
                let raised =
                    operation.raises.iter().filter_map(|raised| self.store.find_id(raised.id().ok()?));
                self.to_all(raised.map(|(at, _)| at))
            }
            ("_get_base_interfaces", About::Interface(interface)) => {
                let bases = interface.bases().iter().filter_map(|base| self.store.find_id(base.id()));
                self.to_all(bases.map(|(at, _)| at))
            }
            ("is_a", About::Interface(interface)) => {
                let id: String = request.get("interface_id")?;
                Ok(interface.is_a(&id).into())
            }
            ("describe_interface", About::Interface(interface)) => self.full(at, def, interface, false),
            ("describe_ext_interface", About::Interface(interface)) => self.full(at, def, interface, true),
            (_, About::Value(value)) => self.value(name, at, def, value, request),
            _ => Err(read_only()),
        }
    }

    fn members(&self, of: &TypeCode) -> Answer {
        let mut all = Vec::new();
        for index in 0..of.member_count().unwrap_or(0) {
            let name = text(of.member_name(index).unwrap_or_default());
            if of.kind() == TcKind::Enum {
                all.push(name);
                continue;
            }
            let member = of.member_type(index).unwrap_or_default();
            let definition = self.to_type(&member)?;
            all.push(match of.kind() {
                TcKind::Union => {
                    let label = of.member_label(index).unwrap_or_default();
                    record([name, label.into(), code(member), definition])
                }
                _ => record([name, code(member), definition]),
            });
        }
        Ok(items(all))
    }

    fn params(&self, operation: &OperationInfo) -> Answer {
        let param = |param: &orb_runtime::dynamic::ParamInfo| -> Answer {
            let mode = Value::Enum(param.mode as u32);
            Ok(record([text(&param.name), code(param.code.clone()), self.to_type(&param.code)?, mode]))
        };
        operation.params.iter().map(param).collect::<Result<_, _>>().map(items)
    }

    /// Returns name, id, scope and version, with which descriptions start.
    pub(super) fn about(&self, id: &str, name: &str, parent: Option<usize>) -> [Value; 4] {
        let scope = parent.and_then(|parent| self.store.get(parent)).map_or("", |def| &*def.id);
        let version = id
            .strip_prefix("IDL:")
            .and_then(|path| path.rsplit_once(':'))
            .map_or("1.0", |(_, version)| version);
        [text(name), text(id), text(scope), text(version)]
    }

    pub(super) fn exceptions(&self, raises: &[TypeCode]) -> Value {
        let one = |raised: &TypeCode| {
            let id = raised.id().unwrap_or_default();
            let parent = self.store.find_id(id).and_then(|(_, def)| def.parent);
            let [name, id, scope, version] = self.about(id, raised.name().unwrap_or_default(), parent);
            record([name, id, scope, version, code(raised.clone())])
        };
        items(raises.iter().map(one).collect())
    }

    fn operation(&self, parent: Option<usize>, operation: &OperationInfo) -> Answer {
        let [name, id, scope, version] = self.about(&operation.id, &operation.name, parent);
        Ok(record([
            name,
            id,
            scope,
            version,
            code(operation.result.clone()),
            Value::Enum(operation.oneway.into()),
            contexts(operation),
            self.params(operation)?,
            self.exceptions(&operation.raises),
        ]))
    }

    fn attribute(&self, parent: Option<usize>, attribute: &AttributeInfo) -> Value {
        let [name, id, scope, version] = self.about(&attribute.id, &attribute.name, parent);
        let mode = Value::Enum(attribute.readonly.into());
        record([name, id, scope, version, code(attribute.code.clone()), mode])
    }

    fn ext_attribute(&self, parent: Option<usize>, attribute: &AttributeInfo) -> Value {
        let [name, id, scope, version] = self.about(&attribute.id, &attribute.name, parent);
        let mode = Value::Enum(attribute.readonly.into());
        let (get, set) = (self.exceptions(&attribute.get_raises), self.exceptions(&attribute.set_raises));
        record([name, id, scope, version, code(attribute.code.clone()), mode, get, set])
    }

    /// Returns the full description of an interface, including inherited parts.
    fn full(&self, at: usize, def: &Def, interface: &Interface, extended: bool) -> Answer {
        let (operations, attributes) = self.inherited(at, extended)?;
        let bases = interface.bases().iter().map(|base| text(base.id())).collect();
        let [name, id, scope, version] = self.about(&def.id, &def.name, def.parent);
        Ok(record([name, id, scope, version, operations, attributes, items(bases), code(def.type_code())]))
    }

    /// Returns the operations and attributes of an interface or value type, including inherited ones.
    pub(super) fn inherited(&self, at: usize, extended: bool) -> Result<(Value, Value), SystemException> {
        let (mut operations, mut attributes) = (Vec::new(), Vec::new());
        for of in std::iter::once(at).chain(self.store.bases(at)) {
            let (has, can): (&[AttributeInfo], &[Arc<OperationInfo>]) =
                match self.store.get(of).map(|def| &def.about) {
                    Some(About::Interface(interface)) => (interface.attributes(), interface.operations()),
                    Some(About::Value(value)) => (&value.attributes, &value.operations),
                    _ => continue,
                };
            for operation in can {
                operations.push(self.operation(Some(of), operation)?);
            }
            attributes.extend(has.iter().map(|attribute| match extended {
                true => self.ext_attribute(Some(of), attribute),
                false => self.attribute(Some(of), attribute),
            }));
        }
        Ok((items(operations), items(attributes)))
    }

    /// Returns the description of a definition, as an any.
    fn description(&self, def: &Def) -> Result<Any, SystemException> {
        let [name, id, scope, version] = self.about(&def.id, &def.name, def.parent);
        let value = match &def.about {
            About::Nothing => record([name, id, scope, version]),
            About::Interface(interface) => {
                let bases = interface.bases().iter().map(|base| text(base.id())).collect();
                record([name, id, scope, version, items(bases)])
            }
            About::Operation(operation) => self.operation(def.parent, operation)?,
            About::Attribute(attribute) => self.attribute(def.parent, attribute),
            About::Constant(constant) => {
                let value = Any::from_dynamic(constant)?;
                record([name, id, scope, version, code(constant.code.clone()), value.into()])
            }
            About::ValueMember(..) => self.value_member(def)?,
            About::Value(value) => self.value_description(def, value),
            About::Type(of) => record([name, id, scope, version, code(of.clone())]),
        };
        self.any(def.kind.described_by(), value)
    }

    fn any(&self, of: &str, value: Value) -> Result<Any, SystemException> {
        let code = super::own_type(of)?;
        Ok(Any::from_dynamic(&Dynamic { code, value, graph: Default::default() })?)
    }
}

pub(super) fn nil() -> Value {
    Value::Object(Box::new(Ior::nil()))
}

fn contexts(operation: &OperationInfo) -> Value {
    items(operation.contexts.iter().map(|name| text(name)).collect())
}

fn argument(request: &ServerRequest, name: &str) -> Result<Value, SystemException> {
    let argument = request.arguments().named(name).and_then(|argument| argument.value.as_ref());
    let argument = argument.ok_or_else(|| bad_param("an argument is missing"))?;
    Ok(argument.to_dynamic()?.value)
}

/// Returns a bound or length, which must not be 0.
fn bound(request: &ServerRequest, name: &str) -> Result<u32, SystemException> {
    match request.get(name)? {
        0 => Err(bad_param("a bound of 0 is none: ask for the primitive type")),
        bound => Ok(bound),
    }
}
