//! Decoding of bodies: finds the operation of a request in the IDL, and converts arguments and results.

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

/// The maximum number of objects whose interfaces are stored.
const MAX_OBJECTS: usize = 4096;
/// Object keys with this many bytes or more are not stored, because pending requests have truncated keys.
const KEY_BYTES_LIMIT: usize = 1024;
/// The maximum number of nodes of a value that are searched for references.
const MAX_NODES: usize = 10_000;

#[derive(Default)]
pub(super) struct BodyDecoder {
    idl: Option<Idl>,
    /// All known operations by their names in messages, first those of the IDL, then those of naming
    /// services.
    operations: BTreeMap<Box<str>, Vec<InterfaceOperation>>,
    interfaces: BTreeMap<Box<str>, Arc<Interface>>,
    /// The interfaces of objects by object key, known from `--object`, references, and replies to `_is_a`.
    objects: HashMap<Box<[u8]>, Arc<Interface>>,
    common_operations: Vec<Arc<OperationInfo>>,
    /// The value types of the IDL, because a message can contain any of them in place of its base type.
    value_types: ValueTypes,
}

#[derive(Debug, Clone)]
pub(super) struct KnownOperation {
    /// `None` for an operation that every object has.
    pub(super) interface: Option<Arc<Interface>>,
    pub(super) operation: Arc<OperationInfo>,
}

type InterfaceOperation = (Arc<Interface>, Arc<OperationInfo>);

#[derive(Debug, Default)]
pub(super) struct DecodedBody {
    pub(super) json: Option<Box<RawValue>>,
    /// The reason why there is no JSON, or another remark.
    pub(super) remark: Option<String>,
}

impl BodyDecoder {
    pub(super) fn new(idl: Option<Idl>, objects: &[(String, String)]) -> anyhow::Result<Self> {
        let text = || TypeCode::STRING;
        let object = TypeCode::OBJECT;
        let operation = |name: &str, params: Vec<(&str, TypeCode)>, result| {
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
        let common_operations = vec![
            operation("_is_a", vec![("logical_type_id", text())], TypeCode::BOOLEAN),
            operation("_non_existent", Vec::new(), TypeCode::BOOLEAN),
            operation("_not_existent", Vec::new(), TypeCode::BOOLEAN),
            operation("_repository_id", Vec::new(), text()),
            operation("_interface", Vec::new(), object.clone()),
            operation("_component", Vec::new(), object),
            operation("_non_op", Vec::new(), TypeCode::VOID),
        ];
        let mut types = Self {
            idl: None,
            operations: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            objects: HashMap::new(),
            common_operations,
            value_types: idl.as_ref().map(Idl::value_types).unwrap_or_default(),
        };
        if let Some(idl) = &idl {
            for interface in idl.definitions().filter_map(|one| one.interface().cloned()) {
                types.add(&interface);
            }
        }
        types.idl = idl;
        // Calls to naming services are decoded without IDL too, because most applications start with them.
        let naming = Interface::of::<zorb::cos_naming::NamingContextExtRef>();
        let iterator = Interface::of::<zorb::cos_naming::BindingIteratorRef>();
        for interface in naming.bases().iter().chain([&naming, &iterator]) {
            types.add(interface);
        }
        for (key, name) in objects {
            let found = types.interface_named(name);
            let found =
                found.ok_or_else(|| anyhow::anyhow!("--object {key}: the interface {name} is unknown"))?;
            types.objects.insert(key.as_bytes().into(), found);
        }
        Ok(types)
    }

    fn add(&mut self, interface: &Arc<Interface>) {
        if self.interfaces.contains_key(interface.id()) {
            return;
        }
        self.interfaces.insert(interface.id().into(), Arc::clone(interface));
        let accessors = interface.attributes().iter().flat_map(|one| one.accessors()).map(Arc::new);
        for operation in interface.operations().iter().cloned().chain(accessors) {
            let all = self.operations.entry(operation.name.clone()).or_default();
            all.push((Arc::clone(interface), operation));
        }
    }

    fn interface_named(&self, name: &str) -> Option<Arc<Interface>> {
        let name = name.replace('/', "::");
        self.interfaces.values().find(|one| scoped_name(one.id()) == name).cloned()
    }

    /// Stores the interface of an object, if it is known. An equal or more derived stored interface is kept.
    pub(super) fn store_interface(&mut self, key: &[u8], type_id: &str) {
        let Some(interface) = self.interfaces.get(type_id).filter(|_| key.len() < KEY_BYTES_LIMIT) else {
            return;
        };
        if let Some(before) = self.objects.get(key)
            && before.is_a(type_id)
        {
            return;
        }
        if self.objects.len() < MAX_OBJECTS || self.objects.contains_key(key) {
            self.objects.insert(key.into(), Arc::clone(interface));
        }
    }

    pub(super) fn store_reference(&mut self, ior: &Ior) {
        for profile in ior.iiop_profiles() {
            self.store_interface(profile.object_key.as_slice(), &ior.type_id);
        }
    }

    /// Returns the operation of a request, and its decoded arguments. If the interface of the object is not
    /// known, selects the first operation with this name that fits the arguments, or else the first one.
    pub(super) fn decode_request(
        &mut self,
        key: &[u8],
        name: &str,
        body: &Decoder<'_>,
    ) -> (Option<KnownOperation>, DecodedBody) {
        if let Some(known) = self.known_operation(key, name) {
            let decoded = self.decode_arguments(&known.operation, body);
            return (Some(known), decoded);
        }
        let candidates = self.operations.get(name).cloned().unwrap_or_default();
        let mut first: Option<(KnownOperation, DecodedBody)> = None;
        let mut matches: Vec<(KnownOperation, DecodedBody)> = Vec::new();
        for (interface, operation) in candidates {
            let known = KnownOperation { interface: Some(interface), operation };
            let decoded = self.decode_arguments(&known.operation, body);
            match decoded.remark {
                None => matches.push((known, decoded)),
                Some(_) if first.is_none() => first = Some((known, decoded)),
                Some(_) => {}
            }
        }
        let others: Vec<String> =
            matches.iter().skip(1).filter_map(|(known, _)| known.interface_name()).collect();
        match matches.into_iter().next().or(first) {
            Some((known, mut decoded)) => {
                if !others.is_empty() && decoded.remark.is_none() {
                    decoded.remark = Some(format!(
                        "or the operation of {}; use --object KEY=INTERFACE",
                        others.join(", ")
                    ));
                }
                (Some(known), decoded)
            }
            None => (None, DecodedBody::default()),
        }
    }

    /// Returns the operation of a request whose arguments are incomplete. Returns `None` if it is unknown or
    /// ambiguous.
    pub(super) fn find_operation(&self, key: &[u8], name: &str) -> Option<KnownOperation> {
        self.known_operation(key, name).or_else(|| match self.operations.get(name)?.as_slice() {
            [(interface, operation)] => {
                let (interface, operation) = (Some(Arc::clone(interface)), Arc::clone(operation));
                Some(KnownOperation { interface, operation })
            }
            _ => None,
        })
    }

    /// Returns an operation that every object has, or one of the object with this key if its interface is
    /// known.
    fn known_operation(&self, key: &[u8], name: &str) -> Option<KnownOperation> {
        if let Some(operation) = self.common_operations.iter().find(|one| *one.name == *name) {
            return Some(KnownOperation { interface: None, operation: Arc::clone(operation) });
        }
        let interface = self.objects.get(key)?;
        let operation = Arc::clone(interface.find(name)?);
        Some(KnownOperation { interface: Some(Arc::clone(interface)), operation })
    }

    fn decode_arguments(&mut self, operation: &OperationInfo, body: &Decoder<'_>) -> DecodedBody {
        let inputs = operation.params.iter().filter(|param| param.mode.is_input());
        let inputs: Vec<(&str, &TypeCode)> = inputs.map(|param| (&*param.name, &param.code)).collect();
        // An operation with a context clause has further data after the arguments.
        self.decode_values(&inputs, body, operation.contexts.is_empty())
    }

    pub(super) fn decode_reply(&mut self, operation: &OperationInfo, body: &Decoder<'_>) -> DecodedBody {
        let result = (!is_void(&operation.result)).then_some(("$result", &operation.result));
        let outputs = operation.params.iter().filter(|param| param.mode.is_output());
        let outputs = outputs.map(|param| (&*param.name, &param.code));
        let all: Vec<(&str, &TypeCode)> = result.into_iter().chain(outputs).collect();
        self.decode_values(&all, body, true)
    }

    /// Decodes a user exception: its repository id, and its members if the type is known.
    pub(super) fn decode_exception(
        &mut self,
        operation: Option<&OperationInfo>,
        body: &Decoder<'_>,
    ) -> (String, DecodedBody) {
        let id = match body.clone().read_unconverted_str() {
            Ok(id) => id.to_owned(),
            Err(error) => return (String::new(), DecodedBody::failed(&error.to_string())),
        };
        let has_id = |code: &&TypeCode| code.unaliased().id().is_ok_and(|other| other == id);
        let declared = operation.and_then(|operation| operation.raises.iter().find(has_id)).cloned();
        let code = declared.or_else(|| {
            let found = self.idl.as_ref()?.find_id(&id)?;
            (found.kind() == DefinitionKind::Exception).then(|| found.type_code().cloned())?
        });
        let Some(code) = code else { return (id, DecodedBody::default()) };
        let mut d = body.clone();
        let json = Any::decode_value_with_path(&code, &mut d)
            .and_then(|exception| DynamicException::User(exception).to_json())
            .map_err(|error| error.to_string());
        let decoded = match json {
            Ok(json) => DecodedBody::from_json(json),
            Err(error) => DecodedBody::failed(&error),
        };
        (id, decoded)
    }

    /// Decodes values with these names and types. If `is_complete`, only padding may follow them.
    fn decode_values(
        &mut self,
        members: &[(&str, &TypeCode)],
        body: &Decoder<'_>,
        is_complete: bool,
    ) -> DecodedBody {
        let mut d = body.clone().with_context(&self.value_types);
        let mut list = NVList::new();
        let mut references = Vec::new();
        for (name, code) in members {
            let value = Any::decode_value_with_path(code, &mut d).and_then(|any| {
                collect_references(&any.to_dynamic()?, &mut references);
                Ok(any)
            });
            match value {
                Ok(value) => list.push(NamedValue::new(name, Mode::In, value)),
                Err(error) => return DecodedBody::failed(&format!("{name}: {error}")),
            }
        }
        let json = match list.to_json() {
            Ok(json) => json,
            Err(error) => return DecodedBody::failed(&error.to_string()),
        };
        // Up to 7 bytes of padding may follow.
        if is_complete && d.remaining() >= 8 {
            return DecodedBody::failed(&format!("{} bytes follow the values", d.remaining()));
        }
        for ior in &references {
            self.store_reference(ior);
        }
        DecodedBody::from_json(json)
    }
}

impl KnownOperation {
    pub(super) fn interface_name(&self) -> Option<String> {
        Some(scoped_name(self.interface.as_ref()?.id()))
    }
}

impl DecodedBody {
    fn from_json(json: String) -> Self {
        match RawValue::from_string(json) {
            Ok(json) => Self { json: Some(json), remark: None },
            Err(error) => Self::failed(&error.to_string()),
        }
    }

    fn failed(reason: &str) -> Self {
        Self { json: None, remark: Some(format!("the body does not fit the IDL: {reason}")) }
    }
}

/// Returns a system exception as JSON, in the form of `zorb call`.
pub(super) fn decode_system_exception(body: &Decoder<'_>) -> DecodedBody {
    match SystemException::decode(&mut body.clone()) {
        Ok(exception) => {
            let json = serde_json::json!({
                "$exception": exception.repository_id(),
                "minor": exception.minor.0,
                "completed": exception.completed.to_string(),
            });
            let mut decoded = DecodedBody::from_json(json.to_string());
            decoded.remark = exception.minor.describe(exception.kind).map(str::to_owned);
            decoded
        }
        Err(error) => {
            DecodedBody { json: None, remark: Some(format!("the body cannot be decoded: {error}")) }
        }
    }
}

fn scoped_name(id: &str) -> String {
    crate::call::scoped_name(id).unwrap_or_else(|| id.to_owned())
}

fn is_void(code: &TypeCode) -> bool {
    code.kind() == TypeCode::VOID.kind() || code.kind() == TypeCode::NULL.kind()
}

fn collect_references(value: &Dynamic, references: &mut Vec<Ior>) {
    let mut pending = vec![&value.value];
    let mut remaining = MAX_NODES;
    while let (Some(value), Some(rest)) = (pending.pop(), remaining.checked_sub(1)) {
        remaining = rest;
        match value {
            Value::Object(ior) if !ior.is_nil() => references.push((**ior).clone()),
            Value::Struct(members) => pending.extend(members.iter().take(remaining)),
            Value::Union(union) => pending.extend(union.value.as_ref()),
            Value::Items(items) => {
                if let Items::Values(values) = &**items {
                    pending.extend(values.iter().take(remaining));
                }
            }
            _ => {}
        }
    }
}
