//! Run-time descriptions of types: implementations of `Typed` for all definitions that are types in Rust, and
//! a constant and a function for each typedef.
//!
//! Descriptions come from the IDL, not from the Rust types, which do not distinguish typedefs. A description
//! refers to other named types by their constants.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::cx::{Cx, ModuleDepth};
use super::described;
use super::docs::doc;
use crate::model::{
    ConstValue, Def, DefKind, Docs, Member, Primitive, Type, TypeId, Union, Value, ValueModifier, Visibility,
};

impl Cx<'_> {
    pub(super) fn desc(&self, depth: ModuleDepth, ty: TypeId) -> TokenStream {
        let rt = &self.runtime_path;
        match self.model.ty(ty) {
            Type::Primitive(primitive) => basic_desc(self, *primitive),
            Type::String(None) => quote!(#rt::TypeDesc::STRING),
            Type::String(Some(bound)) => quote!(&#rt::TypeDesc::String { bound: #bound }),
            Type::WString(None) => quote!(#rt::TypeDesc::WSTRING),
            Type::WString(Some(bound)) => quote!(&#rt::TypeDesc::WString { bound: #bound }),
            Type::Sequence { element, bound } => {
                let (element, bound) = (self.desc(depth, *element), bound.unwrap_or(0));
                quote!(&#rt::TypeDesc::Sequence { element: #element, bound: #bound })
            }
            Type::Array { element, dims } => dims.iter().rev().fold(
                self.desc(depth, *element),
                |element, length| quote!(&#rt::TypeDesc::Array { element: #element, length: #length }),
            ),
            Type::Object => quote!(#rt::TypeDesc::OBJECT),
            Type::Any => quote!(#rt::TypeDesc::ANY),
            Type::TypeCode => quote!(#rt::TypeDesc::TYPE_CODE),
            Type::ValueBase => quote!(#rt::TypeDesc::VALUE_BASE),
            Type::Fixed { digits, scale } => {
                let (digits, scale) = (Literal::u8_unsuffixed(*digits), Literal::u8_unsuffixed(*scale));
                quote!(&#rt::TypeDesc::Fixed { digits: #digits, scale: #scale })
            }
            Type::Map { key, value, bound } => {
                let (key, value) = (self.desc(depth, *key), self.desc(depth, *value));
                let bound = bound.unwrap_or(0);
                quote!(&#rt::TypeDesc::Map { key: #key, value: #value, bound: #bound })
            }
            Type::Named(def) if self.model.typedef(*def).is_some() => {
                self.paths.path(depth, *def, &self.paths.alias_constant(*def))
            }
            // The Rust type of a native type is a type of the user, which has no description.
            Type::Named(def) if matches!(self.model.def(*def).kind, DefKind::Native) => {
                definition_desc(self, self.model.def(*def), &quote!(Opaque(#rt::TcKind::Native)))
            }
            Type::Named(def) => {
                let path = match self.model.interface(*def) {
                    Some(_) => self.paths.reference(depth, *def),
                    None => self.paths.item(depth, *def),
                };
                quote!(<#path as #rt::Typed>::DESC)
            }
        }
    }
}

/// Emits the description of a type: an implementation of `Typed`, or a typedef's constant and function.
pub(super) fn typed(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> TokenStream {
    let rt = &cx.runtime_path;
    if let DefKind::Typedef(alias) = &def.kind {
        return typed_alias(cx, depth, def, alias.ty);
    }
    let Some(shape) = shape(cx, depth, def) else { return TokenStream::new() };
    let path = match def.kind {
        DefKind::Interface(_) => cx.paths.reference(depth, def.id),
        _ => cx.paths.item(depth, def.id),
    };
    let desc = definition_desc(cx, def, &shape);
    quote! {
        impl #rt::Typed for #path {
            const DESC: &'static #rt::TypeDesc = #desc;
        }
    }
}

fn typed_alias(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, ty: TypeId) -> TokenStream {
    let rt = &cx.runtime_path;
    let desc = cx.desc(depth, ty);
    let desc = definition_desc(cx, def, &quote!(Alias(#desc)));
    let constant = cx.paths.alias_constant(def.id);
    let function = &cx.paths.names[def.id].type_code;
    let text = format!("The type code of `{}` (`{}`).", cx.model.scoped_name(def.id), def.repository_id);
    let docs = doc(&Docs::default(), &text);
    quote! {
        #[doc(hidden)]
        pub const #constant: &#rt::TypeDesc = #desc;

        #docs
        pub fn #function() -> #rt::TypeCode {
            #rt::TypeCode::of_desc(#constant)
        }
    }
}

fn definition_desc(cx: &Cx<'_>, def: &Def, shape: &TokenStream) -> TokenStream {
    let rt = &cx.runtime_path;
    let (id, name) = (&def.repository_id, &def.name);
    quote! {
        &#rt::TypeDesc::Defined(|| {
            static __ZORB_DEFINITION: #rt::Definition =
                #rt::Definition::new(#id, #name, #rt::Shape::#shape);
            &__ZORB_DEFINITION
        })
    }
}

fn shape(cx: &Cx<'_>, depth: ModuleDepth, def: &Def) -> Option<TokenStream> {
    let rt = &cx.runtime_path;
    Some(match &def.kind {
        DefKind::Interface(interface) => {
            let kind = described::interface_kind(cx, interface);
            quote!(Opaque(#kind))
        }
        DefKind::Struct(_) | DefKind::Exception(_) => {
            let members = members_desc(cx, depth, &cx.model.all_struct_members(def.id));
            if let DefKind::Struct(_) = def.kind {
                quote!(Struct(#members))
            } else {
                quote!(Except(#members))
            }
        }
        DefKind::Enum(body) => {
            let names = body.enumerators.iter().map(|enumerator| &enumerator.name);
            quote!(Enum(&[#(#names),*]))
        }
        DefKind::Union(body) => union_shape(cx, depth, body),
        DefKind::Value(body) => value_shape(cx, depth, def, body),
        DefKind::ValueBox(body) => {
            let content = cx.desc(depth, body.ty);
            quote!(ValueBox(#content))
        }
        DefKind::Native => quote!(Opaque(#rt::TcKind::Native)),
        // There are no type codes of bitsets and bitmasks, so they are described as aliases of integer types.
        DefKind::Bitset(_) | DefKind::Bitmask(_) => {
            let integer = basic_desc(cx, cx.model.holder_type(def.id));
            quote!(Alias(#integer))
        }
        _ => return None,
    })
}

fn basic_desc(cx: &Cx<'_>, primitive: Primitive) -> TokenStream {
    let (rt, constant) = (&cx.runtime_path, basic(primitive));
    quote!(#rt::TypeDesc::#constant)
}

fn members_desc(cx: &Cx<'_>, depth: ModuleDepth, members: &[&Member]) -> TokenStream {
    let rt = &cx.runtime_path;
    let member = |member: &&Member| {
        let (name, desc) = (&member.name, cx.desc(depth, member.ty));
        match member.annotations.is_optional() {
            true => quote!((#name, &#rt::TypeDesc::Sequence { element: #desc, bound: 1 })),
            false => quote!((#name, #desc)),
        }
    };
    let members = members.iter().map(member);
    quote!(&[#(#members),*])
}

fn union_shape(cx: &Cx<'_>, depth: ModuleDepth, body: &Union) -> TokenStream {
    let discriminator = cx.desc(depth, body.discriminator);
    let mut default = quote!(::core::option::Option::None);
    let mut members = Vec::new();
    for case in &body.cases {
        let (name, desc) = (&case.member.name, cx.desc(depth, case.member.ty));
        for value in case.labels.iter().map(|label| label_bits(&label.value)) {
            members.push(quote!((#value, #name, #desc)));
        }
        if case.is_default {
            let index = Literal::usize_unsuffixed(members.len());
            default = quote!(::core::option::Option::Some(#index));
            members.push(quote!((0, #name, #desc)));
        }
    }
    quote!(Union { discriminator: #discriminator, default: #default, members: &[#(#members),*] })
}

fn value_shape(cx: &Cx<'_>, depth: ModuleDepth, def: &Def, body: &Value) -> TokenStream {
    let rt = &cx.runtime_path;
    let kind = if body.is_event { quote!(Event) } else { quote!(Value) };
    let modifier = match body.modifier {
        ValueModifier::Abstract => quote!(Abstract),
        ValueModifier::Custom => quote!(Custom),
        ValueModifier::Plain if body.truncatable => quote!(Truncatable),
        ValueModifier::Plain => quote!(None),
    };
    let base = match cx.model.concrete_base(def.id) {
        Some(base) => {
            let base = cx.paths.item(depth, base);
            quote!(::core::option::Option::Some(<#base as #rt::Typed>::DESC))
        }
        None => quote!(::core::option::Option::None),
    };
    let members = body.state.iter().map(|state| {
        let (name, desc) = (&state.member.name, cx.desc(depth, state.member.ty));
        let visibility = match state.visibility {
            Visibility::Public => quote!(Public),
            Visibility::Private => quote!(Private),
        };
        quote!((#name, #desc, #rt::Visibility::#visibility))
    });
    quote! {
        Value {
            kind: #rt::TcKind::#kind,
            modifier: #rt::ValueModifier::#modifier,
            base: #base,
            members: &[#(#members),*],
        }
    }
}

/// Returns the constant that describes a basic type. All integers of eight bits have the same kind.
fn basic(primitive: Primitive) -> TokenStream {
    match primitive {
        Primitive::Boolean => quote!(BOOLEAN),
        Primitive::Octet | Primitive::Int8 | Primitive::UInt8 => quote!(OCTET),
        Primitive::Char => quote!(CHAR),
        Primitive::WChar => quote!(WCHAR),
        Primitive::Short => quote!(SHORT),
        Primitive::UShort => quote!(USHORT),
        Primitive::Long => quote!(LONG),
        Primitive::ULong => quote!(ULONG),
        Primitive::LongLong => quote!(LONGLONG),
        Primitive::ULongLong => quote!(ULONGLONG),
        Primitive::Float => quote!(FLOAT),
        Primitive::Double => quote!(DOUBLE),
        Primitive::LongDouble => quote!(LONGDOUBLE),
    }
}

/// Returns a label as a number. An `unsigned long long` is represented by its bits.
pub(super) fn label_bits(value: &ConstValue) -> TokenStream {
    let bits = match value {
        ConstValue::Integer(value) => *value as i64,
        ConstValue::Bool(value) => i64::from(*value),
        ConstValue::Char(byte) => i64::from(*byte),
        ConstValue::WChar(unit) => i64::from(*unit),
        ConstValue::Enum { ordinal, .. } => i64::from(*ordinal),
        // Values of other types cannot be discriminators.
        _ => 0,
    };
    let digits = Literal::u64_unsuffixed(bits.unsigned_abs());
    if bits < 0 { quote!(-#digits) } else { quote!(#digits) }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::emit::cx::Cx;
    use crate::emit::external::External;
    use crate::emit::names::Names;
    use crate::emit::paths::Paths;
    use crate::emit::{IncludePolicy, Options};
    use crate::{Compiler, Memory};

    /// Returns the description of a definition's type, without spaces. The definition need not be emitted.
    fn typed(base: &str, idl: &str, name: &str, options: &Options) -> String {
        let files = Memory::from_iter([("base.idl", base), ("test.idl", idl)]);
        let model = Compiler::default().files(files).compile_files(["test.idl"]);
        let model = model.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        let external = External::new(&model, options);
        let names = Names::new(&model, options, &external, &mut Vec::new(), &mut Vec::new());
        let mut cx = Cx::new(&model, options, Paths::new(&model, names, external));
        cx.runtime_path = quote!(v1);
        let def = model.def(model.find(name).expect("a definition"));
        super::typed(&cx, 0, def).to_string().replace(' ', "")
    }

    #[test]
    fn descriptions_of_values_contain_base_state_and_modifier() {
        let idl = "abstract valuetype A { };\n\
            valuetype B : A { public short m; };\n\
            valuetype D : truncatable B, A { private B next; public long n; };\n\
            custom valuetype C { };\n\
            valuetype Box sequence<D>;";
        for (name, shape) in [
            (
                "A",
                "Value{kind:v1::TcKind::Value,modifier:v1::ValueModifier::Abstract,base:::core::option::Option::None,members:&[],}",
            ),
            (
                "B",
                "Value{kind:v1::TcKind::Value,modifier:v1::ValueModifier::None,base:::core::option::Option::None,members:&[(\"m\",v1::TypeDesc::SHORT,v1::Visibility::Public)],}",
            ),
            (
                "D",
                "Value{kind:v1::TcKind::Value,modifier:v1::ValueModifier::Truncatable,base:::core::option::Option::Some(<self::Basv1::Typed>::DESC),members:&[(\"next\",<self::Basv1::Typed>::DESC,v1::Visibility::Private),(\"n\",v1::TypeDesc::LONG,v1::Visibility::Public)],}",
            ),
            ("C", "modifier:v1::ValueModifier::Custom"),
            ("Box", "ValueBox(&v1::TypeDesc::Sequence{element:<self::Dasv1::Typed>::DESC,bound:0u32})"),
        ] {
            let found = typed("", idl, name, &Options::default());
            assert!(found.contains(shape), "{name}: {found}");
        }
    }

    #[test]
    fn external_types_are_named_by_their_paths() {
        let options = Options {
            external: vec![("::B".to_owned(), quote!(crate::b))],
            include_policy: IncludePolicy::Extern,
            ..Options::default()
        };
        let base = "module B { typedef string<3> OneName; enum E { one }; };";
        let idl = "#include \"base.idl\"\nstruct S { B::OneName a; B::E e; };";
        let found = typed(base, idl, "S", &options);
        let members =
            "Struct(&[(\"a\",crate::b::__ZORB_ONE_NAME_TYPE_CODE),(\"e\",<crate::b::Easv1::Typed>::DESC)])";
        assert!(found.contains(members), "{found}");
    }
}
