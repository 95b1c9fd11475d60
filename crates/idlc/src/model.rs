//! The model as JSON: an object for each definition, which refers to other definitions by scoped names.

use idl_compiler::Model;
use idl_compiler::model::{
    AnnotationValue, Annotations, ConstValue, Construct, DefId, DefKind, Docs, Flavour, Interface, Member,
    Param, Primitive, Type, TypeId, Union, ValueModifier, Visibility,
};
use serde_json::{Map, Value, json};

/// Returns the model as JSON. `format` must be incremented with each change that breaks readers of the JSON.
pub(crate) fn json(model: &Model) -> Value {
    let writer = Writer { model };
    let pragmas = model.pragmas().iter();
    let pragmas = pragmas.map(|pragma| json!({ "text": pragma.text, "place": writer.location(pragma.span) }));
    json!({
        "format": 1,
        "files": model.sources().paths().iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        "docs": model.docs().text(),
        "pragmas": pragmas.collect::<Vec<_>>(),
        "definitions": model.roots().iter().map(|id| writer.definition(*id)).collect::<Vec<_>>(),
    })
}

struct Writer<'m> {
    model: &'m Model,
}

impl Writer<'_> {
    fn location(&self, span: idl_compiler::Span) -> Value {
        let position = self.model.sources().position(span);
        json!({ "file": position.file, "line": position.line, "column": position.column })
    }

    fn names(&self, ids: &[DefId]) -> Vec<String> {
        ids.iter().map(|id| self.model.scoped_name(*id)).collect()
    }

    fn definition(&self, id: DefId) -> Value {
        let def = self.model.def(id);
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| {
            object.insert(key.to_owned(), value);
        };
        put("kind", json!(def.kind.keyword()));
        put("name", json!(def.name));
        put("scoped_name", json!(self.model.scoped_name(id)));
        put("repository_id", json!(def.repository_id));
        put("place", self.location(def.span));
        put("included", json!(self.model.is_included(id)));
        self.add_metadata(&mut put, &def.docs, &def.annotations);
        match &def.kind {
            DefKind::Module(module) => {
                if let Some(template) = &module.template {
                    put("template", json!(template));
                }
            }
            DefKind::Interface(interface) => self.interface(&mut put, interface),
            DefKind::Value(value) => self.value_type(&mut put, value),
            DefKind::ValueBox(boxed) => put("boxed", self.ty(boxed.ty)),
            DefKind::Native => {}
            DefKind::Bitset(bitset) => {
                put("base", json!(bitset.base.map(|base| self.model.scoped_name(base))));
                let fields = bitset.fields.iter().map(|field| {
                    let (name, width) = (json!(field.name), json!(field.width));
                    let entries = [("name", name), ("width", width), ("type", json!(field.ty.idl_name()))];
                    self.with_metadata(entries, &field.docs, &field.annotations)
                });
                put("fields", fields.collect());
            }
            DefKind::Bitmask(bitmask) => {
                put("bit_bound", json!(bitmask.bit_bound));
                let flags = bitmask.flags.iter().map(|flag| {
                    let entries = [("name", json!(flag.name)), ("position", json!(flag.position))];
                    self.with_metadata(entries, &flag.docs, &flag.annotations)
                });
                put("flags", flags.collect());
            }
            DefKind::Operation(operation) => {
                put("oneway", json!(operation.oneway));
                put("result", operation.result.map_or(Value::Null, |ty| self.ty(ty)));
                put("params", self.params(&operation.params));
                put("raises", json!(self.names(&operation.raises)));
                if operation.raises_any {
                    put("raises_any", json!(true));
                }
                if !operation.context.is_empty() {
                    put("context", json!(operation.context));
                }
            }
            DefKind::Attribute(attribute) => {
                put("readonly", json!(attribute.readonly));
                put("type", self.ty(attribute.ty));
                put("get_raises", json!(self.names(&attribute.get_raises)));
                put("set_raises", json!(self.names(&attribute.set_raises)));
            }
            DefKind::Struct(body) | DefKind::Exception(body) => {
                if let Some(base) = body.base {
                    put("base", json!(self.model.scoped_name(base)));
                }
                put("members", body.members.iter().map(|member| self.member(member)).collect());
            }
            DefKind::Union(union) => self.union(&mut put, union),
            DefKind::Enum(body) => {
                let enumerators = body.enumerators.iter().map(|enumerator| {
                    let entries = [("name", json!(enumerator.name))];
                    self.with_metadata(entries, &enumerator.docs, &enumerator.annotations)
                });
                put("enumerators", enumerators.collect());
            }
            DefKind::Typedef(alias) => put("type", self.ty(alias.ty)),
            DefKind::Const(constant) => {
                put("type", self.ty(constant.ty));
                put("value", self.value(&constant.value));
            }
        }
        let children = self.model.children(id);
        if !children.is_empty() {
            put("definitions", children.iter().map(|child| self.definition(*child)).collect());
        }
        Value::Object(object)
    }

    /// Adds documentation comments and annotations, if there are any.
    fn add_metadata(&self, put: &mut impl FnMut(&str, Value), docs: &Docs, annotations: &Annotations) {
        if !docs.is_empty() {
            put("docs", json!(docs.text()));
        }
        if !annotations.0.is_empty() {
            let list = annotations.0.iter().map(|annotation| {
                let args = annotation.args.iter().map(|arg| {
                    let value = match &arg.value {
                        AnnotationValue::Const(value) => self.value(value),
                        AnnotationValue::Name(name) => json!({ "name": name }),
                    };
                    json!({ "name": arg.name, "value": value })
                });
                json!({ "name": annotation.name, "args": args.collect::<Vec<_>>() })
            });
            put("annotations", list.collect());
        }
    }

    /// Returns an object with these entries, and with documentation comments and annotations, if any.
    fn with_metadata<const N: usize>(
        &self,
        entries: [(&str, Value); N],
        docs: &Docs,
        annotations: &Annotations,
    ) -> Value {
        let mut object: Map<_, _> = entries.map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
        let mut put = |key: &str, value: Value| {
            object.insert(key.to_owned(), value);
        };
        self.add_metadata(&mut put, docs, annotations);
        Value::Object(object)
    }

    fn params(&self, params: &[Param]) -> Value {
        let params = params.iter().map(|param| {
            let direction = param.direction.keyword();
            let (name, direction) = (json!(param.name), json!(direction));
            let entries = [("name", name), ("direction", direction), ("type", self.ty(param.ty))];
            self.with_metadata(entries, &param.docs, &param.annotations)
        });
        params.collect()
    }

    fn interface(&self, put: &mut impl FnMut(&str, Value), interface: &Interface) {
        match interface.flavour {
            Flavour::Plain => {}
            Flavour::Abstract => put("abstract", json!(true)),
            Flavour::Local => put("local", json!(true)),
        }
        let construct = match interface.construct {
            Construct::Interface => None,
            Construct::Component => Some("component"),
            Construct::Connector => Some("connector"),
            Construct::Home => Some("home"),
            Construct::HomeExplicit => Some("home_explicit"),
            Construct::HomeImplicit => Some("home_implicit"),
            Construct::EventConsumer => Some("event_consumer"),
        };
        if let Some(construct) = construct {
            put("construct", json!(construct));
        }
        if interface.only_declared {
            put("only_declared", json!(true));
        }
        put("bases", json!(self.names(&interface.bases)));
    }

    fn value_type(&self, put: &mut impl FnMut(&str, Value), value: &idl_compiler::model::Value) {
        match value.modifier {
            ValueModifier::Plain => {}
            ValueModifier::Abstract => put("abstract", json!(true)),
            ValueModifier::Custom => put("custom", json!(true)),
        }
        put("truncatable", json!(value.truncatable));
        put("bases", json!(self.names(&value.bases)));
        put("supports", json!(self.names(&value.supports)));
        let state = value.state.iter().map(|state| {
            let mut member = self.member(&state.member);
            if let Value::Object(object) = &mut member {
                object.insert("public".to_owned(), json!(state.visibility == Visibility::Public));
            }
            member
        });
        put("state", state.collect());
        let factories = value.factories.iter().map(|factory| {
            let entries = [
                ("name", json!(factory.name)),
                ("params", self.params(&factory.params)),
                ("raises", json!(self.names(&factory.raises))),
            ];
            self.with_metadata(entries, &factory.docs, &factory.annotations)
        });
        put("factories", factories.collect());
    }

    fn member(&self, member: &Member) -> Value {
        let entries = [("name", json!(member.name)), ("type", self.ty(member.ty))];
        self.with_metadata(entries, &member.docs, &member.annotations)
    }

    fn union(&self, put: &mut impl FnMut(&str, Value), union: &Union) {
        put("discriminator", self.ty(union.discriminator));
        if !union.discriminator_annotations.0.is_empty() {
            let object = self.with_metadata([], &Docs::default(), &union.discriminator_annotations);
            put("discriminator_annotations", object["annotations"].clone());
        }
        let cases = union.cases.iter().map(|case| {
            json!({
                "labels": case.labels.iter().map(|label| self.value(&label.value)).collect::<Vec<_>>(),
                "default": case.is_default,
                "member": self.member(&case.member),
            })
        });
        put("cases", cases.collect());
        let implicit_default = union.implicit_default.as_ref();
        put("implicit_default", implicit_default.map_or(Value::Null, |value| self.value(value)));
    }

    /// Returns a type: a basic type or unbounded string as a string, another type as an object with one key.
    fn ty(&self, id: TypeId) -> Value {
        match self.model.ty(id) {
            Type::Primitive(primitive) => json!(Primitive::idl_name(*primitive)),
            Type::String(None) => json!("string"),
            Type::WString(None) => json!("wstring"),
            Type::String(Some(bound)) => json!({ "string": { "bound": bound } }),
            Type::WString(Some(bound)) => json!({ "wstring": { "bound": bound } }),
            Type::Sequence { element, bound } => {
                json!({ "sequence": { "element": self.ty(*element), "bound": bound } })
            }
            Type::Array { element, dims } => {
                json!({ "array": { "element": self.ty(*element), "dims": dims } })
            }
            Type::Named(def) => json!({ "name": self.model.scoped_name(*def) }),
            Type::Object => json!("Object"),
            Type::Any => json!("any"),
            Type::TypeCode => json!("CORBA::TypeCode"),
            Type::ValueBase => json!("ValueBase"),
            Type::Fixed { digits, scale } => json!({ "fixed": { "digits": digits, "scale": scale } }),
            Type::Map { key, value, bound } => {
                json!({ "map": { "key": self.ty(*key), "value": self.ty(*value), "bound": bound } })
            }
        }
    }

    /// Returns a value. Integers that do not fit an `i32` are text, because JSON readers may round them.
    fn value(&self, value: &ConstValue) -> Value {
        match value {
            ConstValue::Bool(value) => json!(value),
            ConstValue::Integer(value) => match i32::try_from(*value) {
                Ok(value) => json!(value),
                Err(_) => json!({ "integer": value.to_string() }),
            },
            ConstValue::Float(value) => {
                json!({ "float": value.to_string(), "bits": format!("{:016x}", value.to_bits()) })
            }
            ConstValue::LongDouble(bits) => json!({ "long_double_bits": format!("{bits:032x}") }),
            ConstValue::Char(code) => json!({ "char": code }),
            ConstValue::WChar(unit) => json!({ "wchar": unit }),
            ConstValue::String(text) => json!({ "string": text }),
            ConstValue::WString(text) => json!({ "wstring": text }),
            ConstValue::Fixed { unscaled, scale } => {
                json!({ "fixed": { "unscaled": unscaled.to_string(), "scale": scale } })
            }
            ConstValue::Enum { def, ordinal } => {
                let body = self.model.enumeration(*def);
                let name = body.and_then(|body| body.enumerators.get(*ordinal as usize));
                json!({ "enum": self.model.scoped_name(*def), "name": name.map(|e| &e.name), "ordinal": ordinal })
            }
        }
    }
}
