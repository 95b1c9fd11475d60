//! Decoding of arguments and results by IDL: finds the operation of a request, and converts its bytes to
//! JSON.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use giop_codec::any::Any;
use giop_codec::cdr::{CdrDecode, Decoder};
use giop_codec::exception::SystemException;
use giop_codec::ior::Ior;
use serde_json::value::RawValue;
use zorb::TypeCode;
use zorb::dynamic::{
    DefinitionKind, Dynamic, DynamicException, Idl, Interface, Items, Mode, NVList, NamedValue,
    OperationInfo, ParamInfo, Value, ValueTypes,
};

/// Maximum number of objects whose interfaces are stored.
const MAX_OBJECTS: usize = 4096;
/// Keys of this length in bytes or longer are not stored.
const MAX_KEY: usize = 1024;
/// Maximum number of nodes of a value that are searched for references.
const MAX_NODES: usize = 10_000;

/// The known interfaces and objects.
#[derive(Default)]
pub(super) struct Types {
    idl: Option<Idl>,
    /// All known operations, by their names in messages: those of the IDL before those of naming services.
    operations: BTreeMap<Box<str>, Vec<Offered>>,
    by_id: BTreeMap<Box<str>, Arc<Interface>>,
    /// The interface of each object by its key, as learned from references and answers.
    objects: HashMap<Box<[u8]>, Arc<Interface>>,
    every: Vec<Arc<OperationInfo>>,
    /// Value types that can occur in place of a declared base.
    values: ValueTypes,
}

/// A recognized operation.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// `None` for an operation that every object has.
    pub(super) interface: Option<Arc<Interface>>,
    pub(super) operation: Arc<OperationInfo>,
}

/// An operation and the interface that declares it.
type Offered = (Arc<Interface>, Arc<OperationInfo>);

/// A decoded body.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub(super) json: Option<Box<RawValue>>,
    /// The reason why there is no JSON, or another remark.
    pub(super) remark: Option<String>,
}

impl Types {
    pub(super) fn new(idl: Option<Idl>, objects: &[(String, String)]) -> anyhow::Result<Self> {
        let text = || TypeCode::STRING;
        let object = TypeCode::OBJECT;
        let every = |name: &str, params: Vec<(&str, TypeCode)>, result| {
            let param =
                |(name, code): (&str, TypeCode)| ParamInfo { name: name.into(), mode: Mode::In, code };
            Arc::new(OperationInfo {
                id: format!("IDL:omg.org/CORBA/Object/{}:1.0", name.trim_start_matches('_')).into(),
                name: name.into(),
                oneway: false,
                result,
                params: params.into_iter().map(param).collect(),
                raises: Vec::new(),
                contexts: Vec::new(),
            })
        };
        let every = vec![
            every("_is_a", vec![("logical_type_id", text())], TypeCode::BOOLEAN),
            every("_non_existent", Vec::new(), TypeCode::BOOLEAN),
            every("_not_existent", Vec::new(), TypeCode::BOOLEAN),
            every("_repository_id", Vec::new(), text()),
            every("_interface", Vec::new(), object.clone()),
            every("_component", Vec::new(), object),
            every("_non_op", Vec::new(), TypeCode::VOID),
        ];
        let mut types = Self {
            idl: None,
            operations: BTreeMap::new(),
            by_id: BTreeMap::new(),
            objects: HashMap::new(),
            every,
            values: idl.as_ref().map(Idl::value_types).unwrap_or_default(),
        };
        if let Some(idl) = &idl {
            for interface in idl.definitions().filter_map(|one| one.interface().cloned()) {
                types.add(&interface);
            }
        }
        types.idl = idl;
        // The interfaces of naming services are known without IDL, because new users see their calls first.
        let naming = Interface::of::<zorb::cos_naming::NamingContextExtRef>();
        let iterator = Interface::of::<zorb::cos_naming::BindingIteratorRef>();
        for interface in naming.bases().iter().chain([&naming, &iterator]) {
            types.add(interface);
        }
        for (key, name) in objects {
            let found = types.named(name);
            let found =
                found.ok_or_else(|| anyhow::anyhow!("--object {key}: there is no interface {name}"))?;
            types.objects.insert(key.as_bytes().into(), found);
        }
        Ok(types)
    }

    fn add(&mut self, interface: &Arc<Interface>) {
        if self.by_id.contains_key(interface.id()) {
            return;
        }
        self.by_id.insert(interface.id().into(), Arc::clone(interface));
        let accessors = interface.attributes().iter().flat_map(|one| one.accessors()).map(Arc::new);
        for operation in interface.operations().iter().cloned().chain(accessors) {
            let all = self.operations.entry(operation.name.clone()).or_default();
            all.push((Arc::clone(interface), operation));
        }
    }

    fn named(&self, name: &str) -> Option<Arc<Interface>> {
        let name = name.replace('/', "::");
        self.by_id.values().find(|one| scoped(one.id()) == name).cloned()
    }

    /// Stores the interface of the object with this key, if it is known and more derived than the stored one.
    pub(super) fn learn(&mut self, key: &[u8], type_id: &str) {
        let Some(interface) = self.by_id.get(type_id).filter(|_| key.len() < MAX_KEY) else { return };
        if let Some(before) = self.objects.get(key)
            && before.is_a(type_id)
        {
            return;
        }
        if self.objects.len() < MAX_OBJECTS || self.objects.contains_key(key) {
            self.objects.insert(key.into(), Arc::clone(interface));
        }
    }

    /// Stores the interface that a reference contains.
    pub(super) fn learn_reference(&mut self, ior: &Ior) {
        for profile in ior.iiop_profiles() {
            self.learn(profile.object_key.as_slice(), &ior.type_id);
        }
    }

    /// Returns the operation that a request calls, and its arguments.
    pub(super) fn request(&mut self, key: &[u8], name: &str, body: &Decoder<'_>) -> (Option<Known>, Decoded) {
        if let Some(operation) = self.every.iter().find(|one| *one.name == *name).cloned() {
            let decoded = self.arguments(&operation, body);
            return (Some(Known { interface: None, operation }), decoded);
        }
        if let Some(interface) = self.objects.get(key).cloned()
            && let Some(operation) = interface.find(name).cloned()
        {
            let decoded = self.arguments(&operation, body);
            return (Some(Known { interface: Some(interface), operation }), decoded);
        }
        let candidates = self.operations.get(name).cloned().unwrap_or_default();
        let mut first: Option<(Known, Decoded)> = None;
        let mut fitting: Vec<(Known, Decoded)> = Vec::new();
        for (interface, operation) in candidates {
            let known = Known { interface: Some(interface), operation };
            let decoded = self.arguments(&known.operation, body);
            match decoded.remark {
                None => fitting.push((known, decoded)),
                Some(_) if first.is_none() => first = Some((known, decoded)),
                Some(_) => {}
            }
        }
        let others: Vec<String> = fitting
            .iter()
            .skip(1)
            .filter_map(|(known, _)| Some(scoped(known.interface.as_ref()?.id())))
            .collect();
        match fitting.into_iter().next().or(first) {
            Some((known, mut decoded)) => {
                if !others.is_empty() && decoded.remark.is_none() {
                    decoded.remark =
                        Some(format!("or of {}: --object KEY=INTERFACE decides", others.join(", ")));
                }
                (Some(known), decoded)
            }
            None => (None, Decoded::default()),
        }
    }

    /// Returns the operation without using arguments; `None` if several interfaces have one of this name.
    pub(super) fn operation(&self, key: &[u8], name: &str) -> Option<Known> {
        if let Some(operation) = self.every.iter().find(|one| *one.name == *name) {
            return Some(Known { interface: None, operation: Arc::clone(operation) });
        }
        if let Some((interface, operation)) =
            self.objects.get(key).and_then(|one| Some((one, one.find(name)?)))
        {
            return Some(Known { interface: Some(Arc::clone(interface)), operation: Arc::clone(operation) });
        }
        match self.operations.get(name).map(Vec::as_slice) {
            Some([(interface, operation)]) => {
                Some(Known { interface: Some(Arc::clone(interface)), operation: Arc::clone(operation) })
            }
            _ => None,
        }
    }

    fn arguments(&mut self, operation: &OperationInfo, body: &Decoder<'_>) -> Decoded {
        let inputs = operation.params.iter().filter(|param| param.mode.goes_in());
        let inputs: Vec<(&str, &TypeCode)> = inputs.map(|param| (&*param.name, &param.code)).collect();
        // The content of a context clause follows the arguments.
        self.values(&inputs, body, operation.contexts.is_empty())
    }

    /// Decodes the results of an operation.
    pub(super) fn reply(&mut self, operation: &OperationInfo, body: &Decoder<'_>) -> Decoded {
        let result = (!is_void(&operation.result)).then_some(("$result", &operation.result));
        let outputs = operation.params.iter().filter(|param| param.mode.comes_out());
        let outputs = outputs.map(|param| (&*param.name, &param.code));
        let all: Vec<(&str, &TypeCode)> = result.into_iter().chain(outputs).collect();
        self.values(&all, body, true)
    }

    /// Decodes a user exception: its repository id, and its members if its type is known.
    pub(super) fn exception(
        &mut self,
        operation: Option<&OperationInfo>,
        body: &Decoder<'_>,
    ) -> (String, Decoded) {
        let id = match body.clone().read_str_ascii() {
            Ok(id) => id.to_owned(),
            Err(error) => return (String::new(), Decoded::failed(&error.to_string())),
        };
        let has_id = |code: &&TypeCode| code.unaliased().id().is_ok_and(|listed| listed == id);
        let listed = operation.and_then(|operation| operation.raises.iter().find(has_id)).cloned();
        let code = listed.or_else(|| {
            let found = self.idl.as_ref()?.find_id(&id)?;
            (found.kind() == DefinitionKind::Exception).then(|| found.type_code().cloned())?
        });
        let Some(code) = code else { return (id, Decoded::default()) };
        let mut d = body.clone();
        let json = Any::decode_value_with_path(&code, &mut d)
            .and_then(|exception| DynamicException::User(exception).to_json())
            .map_err(|error| error.to_string());
        let decoded = match json {
            Ok(json) => Decoded::of(json),
            Err(error) => Decoded::failed(&error),
        };
        (id, decoded)
    }

    fn values(&mut self, members: &[(&str, &TypeCode)], body: &Decoder<'_>, all: bool) -> Decoded {
        let mut d = body.clone().with_context(&self.values);
        let mut list = NVList::new();
        let mut found = Vec::new();
        for (name, code) in members {
            let value = Any::decode_value_with_path(code, &mut d).and_then(|any| {
                references(&any.to_dynamic()?, &mut found);
                Ok(any)
            });
            match value {
                Ok(value) => list.push(NamedValue::new(name, Mode::In, value)),
                Err(error) => return Decoded::failed(&format!("{name}: {error}")),
            }
        }
        let json = match list.to_json() {
            Ok(json) => json,
            Err(error) => return Decoded::failed(&error.to_string()),
        };
        // Padding to a multiple of 8 may follow.
        if all && d.remaining() >= 8 {
            return Decoded::failed(&format!("{} bytes more than the types take", d.remaining()));
        }
        for ior in &found {
            self.learn_reference(ior);
        }
        Decoded::of(json)
    }
}

impl Decoded {
    fn of(json: String) -> Self {
        match RawValue::from_string(json) {
            Ok(json) => Self { json: Some(json), remark: None },
            Err(error) => Self::failed(&error.to_string()),
        }
    }

    fn failed(why: &str) -> Self {
        Self { json: None, remark: Some(format!("it does not fit the IDL: {why}")) }
    }
}

/// Returns a system exception as JSON, in the form of `zorb call`.
pub(super) fn system_exception(body: &Decoder<'_>) -> Decoded {
    match SystemException::decode(&mut body.clone()) {
        Ok(exception) => {
            let json = serde_json::json!({
                "$exception": exception.repository_id(),
                "minor": exception.minor.0,
                "completed": exception.completed.to_string(),
            });
            let mut decoded = Decoded::of(json.to_string());
            decoded.remark = exception.minor.describe(exception.kind).map(str::to_owned);
            decoded
        }
        Err(error) => Decoded::failed(&error.to_string()),
    }
}

/// Returns `Bank::Account` for `IDL:Bank/Account:1.0`, without prefixes.
pub(super) fn scoped(id: &str) -> String {
    match id.strip_prefix("IDL:").and_then(|id| id.rsplit_once(':')) {
        Some((path, _)) => {
            path.split('/').filter(|scope| !scope.contains('.')).collect::<Vec<_>>().join("::")
        }
        None => id.to_owned(),
    }
}

fn is_void(code: &TypeCode) -> bool {
    code.kind() == TypeCode::VOID.kind() || code.kind() == TypeCode::NULL.kind()
}

/// Collects the references in a value, within the node limit.
fn references(value: &Dynamic, found: &mut Vec<Ior>) {
    let mut waiting = vec![&value.value];
    let mut left = MAX_NODES;
    while let (Some(value), Some(less)) = (waiting.pop(), left.checked_sub(1)) {
        left = less;
        match value {
            Value::Object(ior) if !ior.is_nil() => found.push((**ior).clone()),
            Value::Struct(members) => waiting.extend(members.iter().take(left)),
            Value::Union(union) => waiting.extend(union.value.as_ref()),
            Value::Items(items) => {
                if let Items::Values(values) = &**items {
                    waiting.extend(values.iter().take(left));
                }
            }
            _ => {}
        }
    }
}
