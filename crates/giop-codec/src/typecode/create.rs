//! Functions that create single type codes ("TypeCodes / Creating TypeCodes", the operations of the ORB
//! interface).

use std::borrow::Cow;

use super::TypeCode;
use super::check::{self, CreateError};
use super::has_digits;
use super::kind::{TcKind, ValueModifier, Visibility};
use super::node::Node;
use super::set::{TypeRef, TypeSet, UnionLabel};

/// Each of these functions copies the given type codes. Types that are shared within one type code remain
/// shared in the new one. Equal types from two type codes do not become shared.
///
/// Names may be empty, and so may the ids of structs, unions, enums and aliases.
impl TypeCode {
    /// `struct name { members };`
    ///
    /// # Errors
    /// Those of [`TypeSet::define_struct`] and [`TypeSet::type_code`].
    #[doc(alias = "create_struct_tc")]
    pub fn create_struct(
        id: &str,
        name: &str,
        members: &[(&str, &TypeCode)],
    ) -> Result<TypeCode, CreateError> {
        let (mut set, root) = TypeSet::around(id);
        let members = added(&mut set, members);
        set.define_struct(root, id, name, &members)?;
        set.type_code(root)
    }

    /// `exception name { members };`
    ///
    /// # Errors
    /// Those of [`TypeSet::define_exception`] and [`TypeSet::type_code`]. [`CreateError::Incomplete`] also if
    /// a member contains a placeholder, because an exception cannot be part of the type that it stands for.
    #[doc(alias = "create_exception_tc")]
    pub fn create_exception(
        id: &str,
        name: &str,
        members: &[(&str, &TypeCode)],
    ) -> Result<TypeCode, CreateError> {
        let mut set = TypeSet::new();
        let root = set.declare();
        let members = added(&mut set, members);
        set.define_exception(root, id, name, &members)?;
        set.type_code(root)
    }

    /// `enum name { enumerators };`
    ///
    /// # Errors
    /// Those of [`TypeSet::define_enum`].
    #[doc(alias = "create_enum_tc")]
    pub fn create_enum(id: &str, name: &str, enumerators: &[&str]) -> Result<TypeCode, CreateError> {
        let mut set = TypeSet::new();
        let root = set.declare();
        set.define_enum(root, id, name, enumerators)?;
        set.type_code(root)
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
    ///
    /// # Errors
    /// Those of [`TypeSet::define_union`] and [`TypeSet::type_code`].
    #[doc(alias = "create_union_tc")]
    pub fn create_union(
        id: &str,
        name: &str,
        discriminator: &TypeCode,
        members: &[(UnionLabel, &str, &TypeCode)],
    ) -> Result<TypeCode, CreateError> {
        let (mut set, root) = TypeSet::around(id);
        let discriminator = set.add(discriminator);
        let one: Vec<_> = members.iter().map(|(label, name, code)| (*label, *name, set.add(code))).collect();
        let same = |one: usize, other: usize| {
            members.get(one).zip(members.get(other)).is_some_and(|(one, other)| one.2 == other.2)
        };
        set.union(root, id, name, discriminator, &one, same)?;
        set.type_code(root)
    }

    /// `typedef original name;`
    ///
    /// # Errors
    /// Those of [`TypeSet::define_alias`].
    #[doc(alias = "create_alias_tc")]
    pub fn create_alias(id: &str, name: &str, original: &TypeCode) -> Result<TypeCode, CreateError> {
        let mut set = TypeSet::new();
        let root = set.declare();
        let original = set.add(original);
        set.define_alias(root, id, name, original)?;
        set.type_code(root)
    }

    /// `valuetype name content;`
    ///
    /// # Errors
    /// Those of [`TypeSet::define_value_box`].
    #[doc(alias = "create_value_box_tc")]
    pub fn create_value_box(id: &str, name: &str, content: &TypeCode) -> Result<TypeCode, CreateError> {
        let mut set = TypeSet::new();
        let root = set.declare();
        let content = set.add(content);
        set.define_value_box(root, id, name, content)?;
        set.type_code(root)
    }

    /// `valuetype name : base { members };`
    ///
    /// # Errors
    /// Those of [`TypeSet::define_value`] and [`TypeSet::type_code`].
    #[doc(alias = "create_value_tc")]
    pub fn create_value(
        id: &str,
        name: &str,
        modifier: ValueModifier,
        base: Option<&TypeCode>,
        members: &[(&str, &TypeCode, Visibility)],
    ) -> Result<TypeCode, CreateError> {
        value(TcKind::Value, id, name, modifier, base, members)
    }

    /// `eventtype name : base { members };`
    ///
    /// # Errors
    /// Those of [`create_value`](TypeCode::create_value).
    #[doc(alias = "create_event_tc")]
    pub fn create_event(
        id: &str,
        name: &str,
        modifier: ValueModifier,
        base: Option<&TypeCode>,
        members: &[(&str, &TypeCode, Visibility)],
    ) -> Result<TypeCode, CreateError> {
        value(TcKind::Event, id, name, modifier, base, members)
    }

    /// `interface name;`
    ///
    /// # Errors
    /// [`InvalidId`](CreateError::InvalidId), [`InvalidName`](CreateError::InvalidName).
    #[doc(alias = "create_interface_tc")]
    pub fn create_interface(id: &str, name: &str) -> Result<TypeCode, CreateError> {
        opaque(TcKind::ObjRef, id, name)
    }

    /// `abstract interface name;`
    ///
    /// # Errors
    /// Those of [`create_interface`](TypeCode::create_interface).
    #[doc(alias = "create_abstract_interface_tc")]
    pub fn create_abstract_interface(id: &str, name: &str) -> Result<TypeCode, CreateError> {
        opaque(TcKind::AbstractInterface, id, name)
    }

    /// `local interface name;`
    ///
    /// # Errors
    /// Those of [`create_interface`](TypeCode::create_interface).
    #[doc(alias = "create_local_interface_tc")]
    pub fn create_local_interface(id: &str, name: &str) -> Result<TypeCode, CreateError> {
        opaque(TcKind::LocalInterface, id, name)
    }

    /// `component name;`
    ///
    /// # Errors
    /// Those of [`create_interface`](TypeCode::create_interface).
    #[doc(alias = "create_component_tc")]
    pub fn create_component(id: &str, name: &str) -> Result<TypeCode, CreateError> {
        opaque(TcKind::Component, id, name)
    }

    /// `home name;`
    ///
    /// # Errors
    /// Those of [`create_interface`](TypeCode::create_interface).
    #[doc(alias = "create_home_tc")]
    pub fn create_home(id: &str, name: &str) -> Result<TypeCode, CreateError> {
        opaque(TcKind::Home, id, name)
    }

    /// `native name;`
    ///
    /// # Errors
    /// Those of [`create_interface`](TypeCode::create_interface).
    #[doc(alias = "create_native_tc")]
    pub fn create_native(id: &str, name: &str) -> Result<TypeCode, CreateError> {
        opaque(TcKind::Native, id, name)
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
    /// members can be created first. The `create_..` call that creates the type with this id replaces the
    /// placeholders in its copies of the member types. The member type codes themselves do not change.
    ///
    /// Its kind is [`TcKind::Null`]. A type code that is or contains a placeholder cannot be sent
    /// (`BAD_TYPECODE` minor OMG 1); see [`is_complete`](TypeCode::is_complete). A [`TypeSet`] creates
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
        if !check::repository_id(id) {
            return Err(CreateError::InvalidId);
        }
        Ok(TypeCode::leaf(Node::Recursive(Cow::Owned(id.to_owned()))))
    }

    /// Returns whether the type code contains no placeholder of
    /// [`create_recursive`](TypeCode::create_recursive).
    pub fn is_complete(&self) -> bool {
        let placeholder = |node: &Node| matches!(node, Node::Recursive(_));
        if !self.nodes.all().iter().any(placeholder) {
            return true;
        }
        // The placeholder may be elsewhere in the type code that this one is a part of, so search only this
        // part.
        let mut set = TypeSet::new();
        set.add(self);
        !set.any(placeholder)
    }
}

fn added<'a>(set: &mut TypeSet, members: &[(&'a str, &TypeCode)]) -> Vec<(&'a str, TypeRef)> {
    members.iter().map(|(name, code)| (*name, set.add(code))).collect()
}

fn value(
    kind: TcKind,
    id: &str,
    name: &str,
    modifier: ValueModifier,
    base: Option<&TypeCode>,
    members: &[(&str, &TypeCode, Visibility)],
) -> Result<TypeCode, CreateError> {
    let (mut set, root) = TypeSet::around(id);
    let base = base.map(|base| set.add(base));
    let members: Vec<_> = members.iter().map(|(name, code, seen)| (*name, set.add(code), *seen)).collect();
    set.define_value(root, kind, id, name, modifier, base, &members)?;
    set.type_code(root)
}

fn opaque(kind: TcKind, id: &str, name: &str) -> Result<TypeCode, CreateError> {
    let mut set = TypeSet::new();
    let root = set.declare();
    set.define_opaque(root, kind, id, name)?;
    set.type_code(root)
}
