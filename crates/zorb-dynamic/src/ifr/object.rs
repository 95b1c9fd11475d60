//! The objects of the repository, by their object ids, and references to them.

use orb_runtime::poa::Poa;
use orb_runtime::types::{TcKind, TypeCode};
use orb_runtime::wire::Ior;
use orb_runtime::{ObjectRef, SystemException, SystemExceptionKind};

use super::kind::Kind;
use super::store::{Def, Store};

/// The name of the POA whose child POAs serve the objects, one POA for each kind.
pub(super) const POA_NAME: &str = "InterfaceRepository";

/// The kinds of type codes for the numbers of `CORBA::PrimitiveKind`. `pk_string`, `pk_objref`, `pk_wstring`
/// and `pk_value_base` share their kinds with types that are not primitive.
const PRIMITIVE_KINDS: [TcKind; 22] = [
    TcKind::Null,
    TcKind::Void,
    TcKind::Short,
    TcKind::Long,
    TcKind::UShort,
    TcKind::ULong,
    TcKind::Float,
    TcKind::Double,
    TcKind::Boolean,
    TcKind::Char,
    TcKind::Octet,
    TcKind::Any,
    TcKind::TypeCode,
    TcKind::Principal,
    TcKind::String,
    TcKind::ObjRef,
    TcKind::LongLong,
    TcKind::ULongLong,
    TcKind::LongDouble,
    TcKind::WChar,
    TcKind::WString,
    TcKind::Value,
];

pub(super) const VALUE_BASE_ID: &str = "IDL:omg.org/CORBA/ValueBase:1.0";

/// An object of the repository.
#[derive(Debug)]
pub(super) enum Object<'s> {
    Repository,
    Def(usize, &'s Def),
    /// A primitive type, by its number in `CORBA::PrimitiveKind`.
    Primitive(u32),
    /// A type without a name.
    Type(Kind, TypeCode),
}

impl<'s> Object<'s> {
    pub(super) fn of_id(store: &'s Store, id: &[u8]) -> Option<Object<'s>> {
        let id = std::str::from_utf8(id).ok()?;
        match id.strip_prefix("d:") {
            Some(id) => store.find_id(id).map(|(index, def)| Object::Def(index, def)),
            None if id == "r:" => Some(Object::Repository),
            None => Object::of_anonymous_id(store, id, 0),
        }
    }

    /// Returns a type without a name by its object id: a primitive type (`p:3`), string (`s:8`), wide string
    /// (`w:8`), `fixed` type (`f:5:2`), sequence (`q:8:p:3`) or array (`a:8:p:3`).
    fn of_anonymous_id(store: &'s Store, id: &str, depth: usize) -> Option<Object<'s>> {
        /// The maximum nesting of sequences and arrays.
        const MAX_DEPTH: usize = 32;
        let (form, rest) = id.split_once(':').filter(|_| depth < MAX_DEPTH)?;
        let element = || -> Option<(u32, TypeCode)> {
            let (number, element) = rest.split_once(':')?;
            let element = match element.strip_prefix("d:") {
                Some(id) => store.find_id(id)?.1.type_code(),
                None => Object::of_anonymous_id(store, element, depth + 1)?.type_code(),
            };
            Some((number.parse().ok()?, element))
        };
        let code = match form {
            "p" => {
                let number =
                    rest.parse().ok().filter(|number: &u32| (*number as usize) < PRIMITIVE_KINDS.len())?;
                return Some(Object::Primitive(number));
            }
            "s" => TypeCode::string(rest.parse().ok()?),
            "w" => TypeCode::wstring(rest.parse().ok()?),
            "f" => {
                let (digits, scale) = rest.split_once(':')?;
                TypeCode::create_fixed(digits.parse().ok()?, scale.parse().ok()?).ok()?
            }
            "q" => element().map(|(bound, element)| TypeCode::sequence(&element, bound))?,
            "a" => element().map(|(length, element)| TypeCode::array(&element, length))?,
            _ => return None,
        };
        Object::of_anonymous_type(code)
    }

    /// Returns the object of a type without a name that is not primitive.
    pub(super) fn of_anonymous_type(code: TypeCode) -> Option<Object<'s>> {
        let kind = match code.kind() {
            TcKind::String => Kind::String,
            TcKind::WString => Kind::WString,
            TcKind::Fixed => Kind::Fixed,
            TcKind::Sequence => Kind::Sequence,
            TcKind::Array => Kind::Array,
            _ => return None,
        };
        Some(Object::Type(kind, code))
    }

    /// Returns the object id, or `None` if the repository does not have the element type.
    fn id(&self, store: &Store) -> Option<String> {
        Some(match self {
            Object::Repository => "r:".to_owned(),
            Object::Def(_, def) => format!("d:{}", def.id),
            Object::Primitive(number) => format!("p:{number}"),
            Object::Type(kind, code) => {
                let length = code.length().unwrap_or(0);
                let element = || {
                    let element = code.content_type().ok()?;
                    Object::of_code(store, &element)?.id(store)
                };
                match kind {
                    Kind::String => format!("s:{length}"),
                    Kind::WString => format!("w:{length}"),
                    Kind::Fixed => {
                        let (digits, scale) = (code.fixed_digits().ok()?, code.fixed_scale().ok()?);
                        format!("f:{digits}:{scale}")
                    }
                    Kind::Sequence => format!("q:{length}:{}", element()?),
                    _ => format!("a:{length}:{}", element()?),
                }
            }
        })
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Object::Repository => Kind::Repository,
            Object::Def(_, def) => def.kind,
            Object::Primitive(_) => Kind::Primitive,
            Object::Type(kind, _) => *kind,
        }
    }

    /// Returns the object of a type, or `None` for a named type that the repository does not have.
    pub(super) fn of_code(store: &'s Store, code: &TypeCode) -> Option<Object<'s>> {
        let named = code.id().ok().filter(|id| !id.is_empty()).and_then(|id| store.find_id(id));
        if let Some((index, def)) = named {
            return Some(Object::Def(index, def));
        }
        let primitive = PRIMITIVE_KINDS.iter().position(|kind| *kind == code.kind());
        let is_primitive = match code.kind() {
            TcKind::String | TcKind::WString => code.length() == Ok(0),
            TcKind::ObjRef => *code == TypeCode::OBJECT,
            TcKind::Value => code.id() == Ok(VALUE_BASE_ID),
            _ => true,
        };
        match primitive {
            Some(number) if is_primitive => u32::try_from(number).ok().map(Object::Primitive),
            _ => Object::of_anonymous_type(code.clone()),
        }
    }

    pub(super) fn type_code(&self) -> TypeCode {
        match self {
            Object::Repository => TypeCode::VOID,
            Object::Def(_, def) => def.type_code(),
            Object::Type(_, code) => code.clone(),
            Object::Primitive(number) => match PRIMITIVE_KINDS.get(*number as usize) {
                Some(TcKind::String) => TypeCode::string(0),
                Some(TcKind::WString) => TypeCode::wstring(0),
                Some(TcKind::Value) => {
                    TypeCode::create_value(VALUE_BASE_ID, "ValueBase", Default::default(), None, &[])
                        .unwrap_or_default()
                }
                Some(TcKind::ObjRef) | None => TypeCode::OBJECT,
                Some(kind) => TypeCode::basic(*kind).unwrap_or_default(),
            },
        }
    }

    /// Returns a reference, or nil if the repository does not have the element type.
    pub(super) fn reference(&self, store: &Store, root_poa: &Poa) -> Result<Ior, SystemException> {
        let interface = self.kind().interface();
        let Some(id) = self.id(store) else { return Ok(Ior::nil()) };
        let object = root_poa
            .find(POA_NAME)
            .and_then(|poa| poa.find(interface)?.create_reference_with_id::<ObjectRef>(id.as_str()))
            .map_err(|_| {
                let text = "the interface repository is no longer served, or the object key is too long";
                super::exception(SystemExceptionKind::ObjectNotExist, text)
            })?;
        let type_id = format!("IDL:omg.org/CORBA/{interface}:1.0");
        Ok(Ior { type_id, ..object.ior().clone() })
    }
}
