//! Functions that create single type codes ("TypeCodes / Creating TypeCodes").

use std::borrow::Cow;

use super::TypeCode;
use super::check::{self, CreateError};
use super::has_digits;
use super::kind::{TcKind, ValueModifier, Visibility};
use super::node::Node;
use super::set::{TypeRef, TypeSet, UnionLabel};

/// Each of these functions copies the given type codes. Types that are shared within one type code remain
/// shared in the new one. Equal types of two type codes do not become shared.
///
/// Names may be empty, and so may the ids of structs, unions, enums and aliases.
///
/// # Errors
/// Those of the method of [`TypeSet`] that defines a type of this kind, and of [`TypeSet::type_code`].
impl TypeCode {
    /// `struct name { members };`
    #[doc(alias = "create_struct_tc")]
    pub fn create_struct(
        id: &str,
        name: &str,
        members: &[(&str, &TypeCode)],
    ) -> Result<TypeCode, CreateError> {
        created(id, |set, root| {
            let members = add_members(set, members);
            set.define_struct(root, id, name, &members)
        })
    }

    /// `exception name { members };`
    ///
    /// # Errors
    /// Those of [`TypeSet::define_exception`] and [`TypeSet::type_code`]. [`CreateError::Incomplete`] also if
    /// a member contains a placeholder, because an exception cannot be a part of the type that replaces it.
    #[doc(alias = "create_exception_tc")]
    pub fn create_exception(
        id: &str,
        name: &str,
        members: &[(&str, &TypeCode)],
    ) -> Result<TypeCode, CreateError> {
        created("", |set, root| {
            let members = add_members(set, members);
            set.define_exception(root, id, name, &members)
        })
    }

    /// `enum name { enumerators };`
    #[doc(alias = "create_enum_tc")]
    pub fn create_enum(id: &str, name: &str, enumerators: &[&str]) -> Result<TypeCode, CreateError> {
        created("", |set, root| set.define_enum(root, id, name, enumerators))
    }

    /// `union name switch (discriminator) { members };` with a member for each label, in order. Members with
    /// the same name are one member, and must have the same type.
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
        created(id, |set, root| {
            let discriminator = set.add(discriminator);
            let added: Vec<_> =
                members.iter().map(|(label, name, code)| (*label, *name, set.add(code))).collect();
            let is_same =
                |a: usize, b: usize| members.get(a).zip(members.get(b)).is_some_and(|(a, b)| a.2 == b.2);
            set.union(root, id, name, discriminator, &added, is_same)
        })
    }

    /// `typedef original name;`
    #[doc(alias = "create_alias_tc")]
    pub fn create_alias(id: &str, name: &str, original: &TypeCode) -> Result<TypeCode, CreateError> {
        created("", |set, root| {
            let original = set.add(original);
            set.define_alias(root, id, name, original)
        })
    }

    /// `valuetype name content;`
    #[doc(alias = "create_value_box_tc")]
    pub fn create_value_box(id: &str, name: &str, content: &TypeCode) -> Result<TypeCode, CreateError> {
        created("", |set, root| {
            let content = set.add(content);
            set.define_value_box(root, id, name, content)
        })
    }

    /// `valuetype name : base { members };`
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

    /// `eventtype name : base { members };`
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

    /// `fixed<digits, scale>`.
    ///
    /// # Errors
    /// [`Digits`](CreateError::Digits).
    #[doc(alias = "create_fixed_tc")]
    pub fn create_fixed(digits: u16, scale: i16) -> Result<TypeCode, CreateError> {
        if !has_digits(digits, scale) || i32::from(scale) > i32::from(digits) {
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

    /// Creates a placeholder for the struct, union or value type with this id, so that the type codes of its
    /// members can be created first. The `create_..` call that creates the type with this id copies the
    /// member types, and replaces the placeholders in the copies.
    ///
    /// The kind of a placeholder is [`TcKind::Null`]. A type code that is or contains a placeholder cannot be
    /// sent (`BAD_TYPECODE` minor OMG 1); see [`is_complete`](TypeCode::is_complete). A [`TypeSet`] creates
    /// recursive types without placeholders.
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
        if !check::is_repository_id(id) {
            return Err(CreateError::InvalidId);
        }
        Ok(TypeCode::leaf(Node::Recursive(Cow::Owned(id.to_owned()))))
    }

    /// Returns whether the type code contains no placeholder of
    /// [`create_recursive`](TypeCode::create_recursive).
    pub fn is_complete(&self) -> bool {
        let is_placeholder = |node: &Node| matches!(node, Node::Recursive(_));
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
            #[doc = concat!("`", $idl, " name;`")]
            ///
            /// # Errors
            /// [`InvalidId`](CreateError::InvalidId), [`InvalidName`](CreateError::InvalidName).
            #[doc(alias = $alias)]
            pub fn $name(id: &str, name: &str) -> Result<TypeCode, CreateError> {
                created("", |set, root| set.define_opaque(root, TcKind::$kind, id, name))
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

/// Creates the type code of one type, which replaces the placeholders with this id, if it is not empty.
fn created(
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
    created(id, |set, root| {
        let base = base.map(|base| set.add(base));
        let members: Vec<_> =
            members.iter().map(|(name, code, visibility)| (*name, set.add(code), *visibility)).collect();
        set.define_value(root, kind, id, name, modifier, base, &members)
    })
}
