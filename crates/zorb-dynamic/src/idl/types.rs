//! Conversion of IDL types to type codes. They equal the type codes of generated Rust types.

use std::collections::HashMap;

use idl_compiler::model::{
    Case, ConstValue, DefId, DefKind, Flavour, Member, Model, Primitive, Type, TypeId,
    ValueModifier as Modifier, Visibility as StateVisibility,
};
use orb_runtime::private::TypeDesc;
use orb_runtime::types::{
    CreateError, TcKind, TypeCode, TypeRef, TypeSet, UnionLabel, ValueModifier, Visibility,
};

/// The types of a model. Each is created when it is first needed.
pub(super) struct Types<'m> {
    model: &'m Model,
    set: TypeSet,
    named: HashMap<DefId, TypeRef>,
    /// Named types to define. Some may already be defined, because another type required them.
    undefined: Vec<DefId>,
    codes: HashMap<TypeRef, TypeCode>,
}

impl<'m> Types<'m> {
    pub(super) fn new(model: &'m Model) -> Types<'m> {
        let (named, undefined, codes) = (HashMap::new(), Vec::new(), HashMap::new());
        Types { model, set: TypeSet::new(), named, undefined, codes }
    }

    /// Returns the type code of a type or exception, or `None` for other definitions.
    pub(super) fn of_definition(&mut self, id: DefId) -> Result<Option<TypeCode>, CreateError> {
        match self.model.def(id).kind {
            DefKind::Module(_) | DefKind::Operation(_) | DefKind::Attribute(_) | DefKind::Const(_) => {
                Ok(None)
            }
            _ => {
                let type_ref = self.named_ref(id);
                self.code(type_ref).map(Some)
            }
        }
    }

    pub(super) fn of_type(&mut self, ty: TypeId) -> Result<TypeCode, CreateError> {
        let type_ref = self.type_ref(ty)?;
        self.code(type_ref)
    }

    fn code(&mut self, type_ref: TypeRef) -> Result<TypeCode, CreateError> {
        while let Some(id) = self.undefined.pop() {
            self.define(id)?;
        }
        if let Some(code) = self.codes.get(&type_ref) {
            return Ok(code.clone());
        }
        let code = self.set.type_code(type_ref)?;
        self.codes.insert(type_ref, code.clone());
        Ok(code)
    }

    /// Adds a type to the set. Each use of a type without a name adds another one, as in generated code.
    fn type_ref(&mut self, ty: TypeId) -> Result<TypeRef, CreateError> {
        Ok(match self.model.ty(ty) {
            Type::Primitive(primitive) => self.set.add(&basic(*primitive)),
            Type::String(bound) => self.set.add(&TypeCode::string(bound.unwrap_or(0))),
            Type::WString(bound) => self.set.add(&TypeCode::wstring(bound.unwrap_or(0))),
            Type::Fixed { digits, scale } => {
                self.set.add(&TypeCode::create_fixed((*digits).into(), (*scale).into())?)
            }
            Type::Any => self.set.add(&TypeCode::ANY),
            Type::TypeCode => self.set.add(&TypeCode::TYPE_CODE),
            Type::Object => self.set.add(&TypeCode::of_desc(TypeDesc::OBJECT)),
            Type::ValueBase => self.set.add(&TypeCode::of_desc(TypeDesc::VALUE_BASE)),
            Type::Sequence { element, bound } => {
                let element = self.type_ref(*element)?;
                self.set.sequence(element, bound.unwrap_or(0))?
            }
            Type::Array { element, dims } => {
                let mut element = self.type_ref(*element)?;
                for length in dims.iter().rev() {
                    element = self.set.array(element, *length)?;
                }
                element
            }
            Type::Map { key, value, bound } => {
                let (key, value, entry) = (self.type_ref(*key)?, self.type_ref(*value)?, self.set.declare());
                self.set.define_struct(entry, "", "", &[("key", key), ("value", value)])?;
                self.set.sequence(entry, bound.unwrap_or(0))?
            }
            Type::Named(id) if matches!(self.model.def(*id).kind, DefKind::Native) => {
                let type_ref = self.set.declare();
                self.define_as(*id, type_ref)?;
                type_ref
            }
            Type::Named(id) => self.named_ref(*id),
        })
    }

    fn named_ref(&mut self, id: DefId) -> TypeRef {
        if let Some(type_ref) = self.named.get(&id) {
            return *type_ref;
        }
        let type_ref = self.set.declare();
        self.named.insert(id, type_ref);
        self.undefined.push(id);
        type_ref
    }

    /// Defines a named type. Before it, defines the types that it requires.
    fn define(&mut self, id: DefId) -> Result<(), CreateError> {
        let mut required = vec![id];
        while let Some(next) = required.last().and_then(|last| self.required_type(*last)) {
            required.push(next);
        }
        while let Some(id) = required.pop() {
            let type_ref = self.named_ref(id);
            if !self.set.is_defined(type_ref) {
                self.define_as(id, type_ref)?;
            }
        }
        Ok(())
    }

    /// Returns the named base, discriminator or original type that must be defined before this type.
    fn required_type(&self, id: DefId) -> Option<DefId> {
        let ty = match &self.model.def(id).kind {
            DefKind::Value(_) => return self.model.concrete_base(id),
            DefKind::Union(union) => union.discriminator,
            DefKind::Typedef(alias) => alias.ty,
            _ => return None,
        };
        match self.model.ty(ty) {
            Type::Named(id) if !matches!(self.model.def(*id).kind, DefKind::Native) => Some(*id),
            _ => None,
        }
    }

    fn define_as(&mut self, id: DefId, type_ref: TypeRef) -> Result<(), CreateError> {
        let model = self.model;
        let def = model.def(id);
        let (repository_id, name) = (&*def.repository_id, &*def.name);
        match &def.kind {
            DefKind::Struct(_) => {
                let members = self.members(&model.all_struct_members(id))?;
                self.set.define_struct(type_ref, repository_id, name, &members)
            }
            DefKind::Exception(_) => {
                let members = self.members(&model.all_struct_members(id))?;
                self.set.define_exception(type_ref, repository_id, name, &members)
            }
            DefKind::Enum(body) => {
                let names: Vec<&str> = body.enumerators.iter().map(|one| &*one.name).collect();
                self.set.define_enum(type_ref, repository_id, name, &names)
            }
            DefKind::Union(body) => {
                let discriminator = self.type_ref(body.discriminator)?;
                let mut members = Vec::new();
                for case in &body.cases {
                    let member = self.type_ref(case.member.ty)?;
                    members.extend(labels(case).map(|label| (label, &*case.member.name, member)));
                }
                self.set.define_union(type_ref, repository_id, name, discriminator, &members)
            }
            DefKind::Typedef(alias) => {
                let original = self.type_ref(alias.ty)?;
                self.set.define_alias(type_ref, repository_id, name, original)
            }
            DefKind::Bitset(_) | DefKind::Bitmask(_) => {
                let integer = self.set.add(&basic(model.holder_type(id)));
                self.set.define_alias(type_ref, repository_id, name, integer)
            }
            DefKind::ValueBox(body) => {
                let content = self.type_ref(body.ty)?;
                self.set.define_value_box(type_ref, repository_id, name, content)
            }
            DefKind::Value(body) => {
                let base = model.concrete_base(id).map(|base| self.named_ref(base));
                let mut members = Vec::new();
                for state in &body.state {
                    let visibility = match state.visibility {
                        StateVisibility::Public => Visibility::Public,
                        StateVisibility::Private => Visibility::Private,
                    };
                    members.push((&*state.member.name, self.type_ref(state.member.ty)?, visibility));
                }
                let kind = if body.is_event { TcKind::Event } else { TcKind::Value };
                let modifier = match body.modifier {
                    Modifier::Abstract => ValueModifier::Abstract,
                    Modifier::Custom => ValueModifier::Custom,
                    Modifier::Plain if body.truncatable => ValueModifier::Truncatable,
                    Modifier::Plain => ValueModifier::None,
                };
                self.set.define_value(type_ref, kind, repository_id, name, modifier, base, &members)
            }
            DefKind::Interface(body) => {
                self.set.define_opaque(type_ref, interface_kind(body.flavour), repository_id, name)
            }
            DefKind::Native => self.set.define_opaque(type_ref, TcKind::Native, repository_id, name),
            // These are not types.
            DefKind::Module(_) | DefKind::Operation(_) | DefKind::Attribute(_) | DefKind::Const(_) => {
                Err(CreateError::ContentType)
            }
        }
    }

    fn members<'a>(&mut self, members: &[&'a Member]) -> Result<Vec<(&'a str, TypeRef)>, CreateError> {
        let mut found = Vec::with_capacity(members.len());
        for member in members {
            let mut kind = self.type_ref(member.ty)?;
            if member.annotations.is_optional() {
                kind = self.set.sequence(kind, 1)?;
            }
            found.push((&*member.name, kind));
        }
        Ok(found)
    }
}

pub(super) fn interface_kind(flavour: Flavour) -> TcKind {
    match flavour {
        Flavour::Plain => TcKind::ObjRef,
        Flavour::Abstract => TcKind::AbstractInterface,
        Flavour::Local => TcKind::LocalInterface,
    }
}

fn basic(primitive: Primitive) -> TypeCode {
    match primitive {
        Primitive::Boolean => TypeCode::BOOLEAN,
        Primitive::Octet | Primitive::Int8 | Primitive::UInt8 => TypeCode::OCTET,
        Primitive::Char => TypeCode::CHAR,
        Primitive::WChar => TypeCode::WCHAR,
        Primitive::Short => TypeCode::SHORT,
        Primitive::UShort => TypeCode::USHORT,
        Primitive::Long => TypeCode::LONG,
        Primitive::ULong => TypeCode::ULONG,
        Primitive::LongLong => TypeCode::LONGLONG,
        Primitive::ULongLong => TypeCode::ULONGLONG,
        Primitive::Float => TypeCode::FLOAT,
        Primitive::Double => TypeCode::DOUBLE,
        Primitive::LongDouble => TypeCode::LONGDOUBLE,
    }
}

/// Returns the labels of a union member. If it is the default member, the default label is last.
fn labels(case: &Case) -> impl Iterator<Item = UnionLabel> {
    let bits = |value: &ConstValue| match value {
        ConstValue::Integer(value) => *value as i64,
        ConstValue::Bool(value) => i64::from(*value),
        ConstValue::Char(octet) => i64::from(*octet),
        ConstValue::WChar(unit) => i64::from(*unit),
        ConstValue::Enum { ordinal, .. } => i64::from(*ordinal),
        // Constants of other types cannot be labels.
        _ => 0,
    };
    let default = case.is_default.then_some(UnionLabel::Default);
    case.labels.iter().map(move |label| UnionLabel::Case(bits(&label.value))).chain(default)
}
