//! Functions that create single type codes ("TypeCodes / Creating TypeCodes").

use std::borrow::Cow;

use super::TypeCode;
use super::check::{CreateError, is_repository_id};
use super::is_valid_fixed;
use super::kind::{TcKind, ValueModifier, Visibility};
use super::node::Node;
use super::set::{TypeRef, TypeSet, UnionLabel};

/// # Functions that create type codes
///
/// The `create_...` functions copy the given type codes. Types that are shared within one given type code are
/// shared in the new one too. Types of two given type codes are shared only if both are clones or parts of
/// one type code.
///
/// Names may be empty, and so may the ids of structs, unions, enums and aliases.
///
/// Unless documented otherwise, such a function fails with the errors of the method of [`TypeSet`] that
/// defines a type of this kind, and with those of [`TypeSet::type_code`].
impl TypeCode {
    /// Creates `struct name { members };`.
    #[doc(alias = "create_struct_tc")]
    pub fn create_struct(
        id: &str,
        name: &str,
        members: &[(&str, &TypeCode)],
    ) -> Result<TypeCode, CreateError> {
        create_type(id, |set, root| {
            let members = add_members(set, members);
            set.define_struct(root, id, name, &members)
        })
    }

    /// Creates `exception name { members };`.
    ///
    /// # Errors
    /// The errors of [`TypeSet::define_exception`] and [`TypeSet::type_code`]. One of them is
    /// [`CreateError::Incomplete`] if a member contains a placeholder: no type that contains the exception
    /// could replace the placeholder later.
    #[doc(alias = "create_exception_tc")]
    pub fn create_exception(
        id: &str,
        name: &str,
        members: &[(&str, &TypeCode)],
    ) -> Result<TypeCode, CreateError> {
        create_type("", |set, root| {
            let members = add_members(set, members);
            set.define_exception(root, id, name, &members)
        })
    }

    /// Creates `enum name { enumerators };`.
    #[doc(alias = "create_enum_tc")]
    pub fn create_enum(id: &str, name: &str, enumerators: &[&str]) -> Result<TypeCode, CreateError> {
        create_type("", |set, root| set.define_enum(root, id, name, enumerators))
    }

    /// Creates `union name switch (discriminator) { members };`. `members` has an entry for each label.
    /// Entries with the same name are one member, and must have the same type.
    ///
    /// ```
    /// use giop_codec::typecode::{CreateError, TypeCode, UnionLabel::{Case, Default}};
    ///
    /// let (long, short) = (TypeCode::LONG, TypeCode::SHORT);
    /// let members = [(Case(1), "a", &long), (Case(2), "a", &long), (Default, "b", &short)];
    /// let code = TypeCode::create_union("IDL:U:1.0", "U", &TypeCode::OCTET, &members)?;
    /// assert_eq!(code.default_index(), Ok(Some(2)));
    /// let members = [(Case(256), "a", &long)];
    /// let error = TypeCode::create_union("IDL:U:1.0", "U", &TypeCode::OCTET, &members);
    /// assert_eq!(error, Err(CreateError::LabelType(0)));
    /// # Ok::<(), CreateError>(())
    /// ```
    #[doc(alias = "create_union_tc")]
    pub fn create_union(
        id: &str,
        name: &str,
        discriminator: &TypeCode,
        members: &[(UnionLabel, &str, &TypeCode)],
    ) -> Result<TypeCode, CreateError> {
        create_type(id, |set, root| {
            let discriminator = set.add(discriminator);
            let added: Vec<_> =
                members.iter().map(|(label, name, code)| (*label, *name, set.add(code))).collect();
            let is_same =
                |a: usize, b: usize| members.get(a).zip(members.get(b)).is_some_and(|(a, b)| a.2 == b.2);
            set.define_union_with(root, id, name, discriminator, &added, is_same)
        })
    }

    /// Creates `typedef original name;`.
    #[doc(alias = "create_alias_tc")]
    pub fn create_alias(id: &str, name: &str, original: &TypeCode) -> Result<TypeCode, CreateError> {
        create_type("", |set, root| {
            let original = set.add(original);
            set.define_alias(root, id, name, original)
        })
    }

    /// Creates the value box `valuetype name content;`.
    #[doc(alias = "create_value_box_tc")]
    pub fn create_value_box(id: &str, name: &str, content: &TypeCode) -> Result<TypeCode, CreateError> {
        create_type("", |set, root| {
            let content = set.add(content);
            set.define_value_box(root, id, name, content)
        })
    }

    /// Creates `valuetype name : base { members };`.
    #[doc(alias = "create_value_tc")]
    pub fn create_value(
        id: &str,
        name: &str,
        modifier: ValueModifier,
        base: Option<&TypeCode>,
        members: &[(&str, &TypeCode, Visibility)],
    ) -> Result<TypeCode, CreateError> {
        create_value_of(TcKind::Value, id, name, modifier, base, members)
    }

    /// Creates `eventtype name : base { members };`.
    #[doc(alias = "create_event_tc")]
    pub fn create_event(
        id: &str,
        name: &str,
        modifier: ValueModifier,
        base: Option<&TypeCode>,
        members: &[(&str, &TypeCode, Visibility)],
    ) -> Result<TypeCode, CreateError> {
        create_value_of(TcKind::Event, id, name, modifier, base, members)
    }

    /// Creates `fixed<digits, scale>`.
    ///
    /// # Errors
    /// [`Digits`](CreateError::Digits).
    #[doc(alias = "create_fixed_tc")]
    pub fn create_fixed(digits: u16, scale: i16) -> Result<TypeCode, CreateError> {
        if !is_valid_fixed(digits, scale) || i32::from(scale) > i32::from(digits) {
            return Err(CreateError::Digits);
        }
        Ok(TypeCode::leaf(Node::Fixed { digits, scale }))
    }

    /// Creates a [`sequence`](TypeCode::sequence) whose element type must have values.
    ///
    /// # Errors
    /// [`ContentType`](CreateError::ContentType).
    #[doc(alias = "create_sequence_tc")]
    pub fn create_sequence(element: &TypeCode, bound: u32) -> Result<TypeCode, CreateError> {
        let mut set = TypeSet::new();
        let element = set.add(element);
        let root = set.sequence(element, bound)?;
        set.type_code(root)
    }

    /// Creates an [`array`](TypeCode::array) whose element type must have values.
    ///
    /// # Errors
    /// [`ContentType`](CreateError::ContentType).
    #[doc(alias = "create_array_tc")]
    pub fn create_array(element: &TypeCode, length: u32) -> Result<TypeCode, CreateError> {
        let mut set = TypeSet::new();
        let element = set.add(element);
        let root = set.array(element, length)?;
        set.type_code(root)
    }

    /// Creates a placeholder for the struct, union, value type or event type with this id, so that the type
    /// codes of its members can be create_type first. The `create_...` call that creates the type copies the
    /// types of the members, and replaces the placeholders in the copies.
    ///
    /// The kind of a placeholder is [`TcKind::Null`]. Sending a type code that is not
    /// [complete](TypeCode::is_complete) raises `BAD_TYPECODE` with OMG minor code 1. A [`TypeSet`] needs no
    /// placeholders.
    ///
    /// ```
    /// use giop_codec::typecode::{CreateError, TypeCode};
    ///
    /// let node = TypeCode::create_recursive("IDL:Node:1.0")?;
    /// let kids = TypeCode::create_sequence(&node, 0)?;
    /// assert!(!kids.is_complete());
    /// let node = TypeCode::create_struct("IDL:Node:1.0", "Node", &[("kids", &kids)])?;
    /// assert!(node.is_complete());
    /// assert_eq!(node.to_string(), "struct Node { sequence<Node> kids; }");
    /// # Ok::<(), CreateError>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidId`](CreateError::InvalidId).
    #[doc(alias = "create_recursive_tc")]
    pub fn create_recursive(id: &str) -> Result<TypeCode, CreateError> {
        if !is_repository_id(id) {
            return Err(CreateError::InvalidId);
        }
        Ok(TypeCode::leaf(Node::Placeholder(Cow::Owned(id.to_owned()))))
    }

    /// Returns whether the type code contains no placeholder of
    /// [`create_recursive`](TypeCode::create_recursive).
    pub fn is_complete(&self) -> bool {
        let is_placeholder = |node: &Node| matches!(node, Node::Placeholder(_));
        if !self.nodes.all().iter().any(is_placeholder) {
            return true;
        }
        // A placeholder may be in a part of the arena that this type does not refer to.
        let mut set = TypeSet::new();
        set.add(self);
        !set.has_node(is_placeholder)
    }
}

macro_rules! create_opaque {
    ($($name:ident $alias:literal $kind:ident $idl:literal;)*) => {
        impl TypeCode {$(
            #[doc = concat!("Creates `", $idl, " name;`.")]
            ///
            /// # Errors
            /// [`InvalidId`](CreateError::InvalidId), [`InvalidName`](CreateError::InvalidName).
            #[doc(alias = $alias)]
            pub fn $name(id: &str, name: &str) -> Result<TypeCode, CreateError> {
                create_type("", |set, root| set.define_opaque(root, TcKind::$kind, id, name))
            }
        )*}
    };
}

create_opaque! {
    create_interface "create_interface_tc" ObjRef "interface";
    create_abstract_interface "create_abstract_interface_tc" AbstractInterface "abstract interface";
    create_local_interface "create_local_interface_tc" LocalInterface "local interface";
    create_component "create_component_tc" Component "component";
    create_home "create_home_tc" Home "home";
    create_native "create_native_tc" Native "native";
}

/// Creates the type code of a type, which replaces the placeholders with this id unless it is empty.
fn create_type(
    placeholder_id: &str,
    define: impl FnOnce(&mut TypeSet, TypeRef) -> Result<(), CreateError>,
) -> Result<TypeCode, CreateError> {
    let (mut set, root) = TypeSet::replacing(placeholder_id);
    define(&mut set, root)?;
    set.type_code(root)
}

fn add_members<'a>(set: &mut TypeSet, members: &[(&'a str, &TypeCode)]) -> Vec<(&'a str, TypeRef)> {
    members.iter().map(|(name, code)| (*name, set.add(code))).collect()
}

fn create_value_of(
    kind: TcKind,
    id: &str,
    name: &str,
    modifier: ValueModifier,
    base: Option<&TypeCode>,
    members: &[(&str, &TypeCode, Visibility)],
) -> Result<TypeCode, CreateError> {
    create_type(id, |set, root| {
        let base = base.map(|base| set.add(base));
        let members: Vec<_> =
            members.iter().map(|(name, code, visibility)| (*name, set.add(code), *visibility)).collect();
        set.define_value(root, kind, id, name, modifier, base, &members)
    })
}
