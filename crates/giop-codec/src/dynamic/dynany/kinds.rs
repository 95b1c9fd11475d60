//! The views of a [`DynAny`] for particular kinds of types, as the standard defines them.

use std::ops::Deref;

use super::super::build::{
    MAX_BYTES, default_value, discriminator_for, label_of, sized_default, unlabelled_discriminator,
};
use super::super::check::{CUSTOM_STATE_UNKNOWN, is_custom, value_members};
use super::super::part::select;
use super::super::{Decimal, DynError, DynErrorKind, Dynamic, Items, Value, ValueNode};
use super::graph::{MAX_NODES, too_many_nodes};
use super::{DynAny, mismatch};
use crate::typecode::{TcKind, TypeCode};

macro_rules! views {
    ($($(#[$doc:meta])* $view:ident $as:ident $what:literal => $kinds:pat,)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug)]
            pub struct $view(DynAny);

            impl Deref for $view {
                type Target = DynAny;

                fn deref(&self) -> &DynAny {
                    &self.0
                }
            }
        )*

        impl DynAny {
            $(
                #[doc = concat!("Returns a view of this value, which must be ", $what, ".")]
                ///
                /// # Errors
                /// [`TypeMismatch`](DynErrorKind::TypeMismatch) if the type of the value is of another kind.
                pub fn $as(&self) -> Result<$view, DynError> {
                    let code = self.type_code()?;
                    match code.unaliased().kind() {
                        $kinds => Ok($view(self.clone())),
                        _ => Err(mismatch(&code, concat!("access as ", $what))),
                    }
                }
            )*
        }
    };
}

views! {
    /// A struct or exception.
    ///
    /// Source clause: "Dynamic Management of Any Values / The DynStruct Interface".
    #[doc(alias = "DynamicAny::DynStruct")]
    DynStruct as_struct "a struct" => TcKind::Struct | TcKind::Except,
    /// A union.
    ///
    /// Source clause: "Dynamic Management of Any Values / The DynUnion Interface".
    #[doc(alias = "DynamicAny::DynUnion")]
    DynUnion as_union "a union" => TcKind::Union,
    /// A sequence or an array.
    ///
    /// Source clauses: "Dynamic Management of Any Values / The DynSequence Interface", "The DynArray
    /// Interface".
    #[doc(alias = "DynamicAny::DynSequence")]
    #[doc(alias = "DynamicAny::DynArray")]
    DynSequence as_sequence "a sequence or array" => TcKind::Sequence | TcKind::Array,
    /// An enum.
    ///
    /// Source clause: "Dynamic Management of Any Values / The DynEnum Interface".
    #[doc(alias = "DynamicAny::DynEnum")]
    DynEnum as_enum "an enum" => TcKind::Enum,
    /// A fixed-point number.
    ///
    /// Source clause: "Dynamic Management of Any Values / The DynFixed Interface".
    #[doc(alias = "DynamicAny::DynFixed")]
    DynFixed as_fixed "a fixed" => TcKind::Fixed,
    /// An instance of a value type or value box. The only component of a value box is its content.
    ///
    /// Source clauses: "Dynamic Management of Any Values / The DynValue Interface", "The DynValueBox
    /// Interface".
    #[doc(alias = "DynamicAny::DynValue")]
    #[doc(alias = "DynamicAny::DynValueBox")]
    DynValue as_value "a value of a value type" => TcKind::Value | TcKind::Event | TcKind::ValueBox,
}

fn members(parent: &DynAny, names: &[Box<str>]) -> Result<Vec<(Box<str>, Dynamic)>, DynError> {
    let all = components(parent, names.len())?;
    Ok(names.iter().cloned().zip(all).collect())
}

/// Returns all components, each with a separate graph.
fn components(parent: &DynAny, count: usize) -> Result<Vec<Dynamic>, DynError> {
    let mut nodes = 0;
    let component = |index| {
        let component = parent.component(index).dynamic()?;
        nodes += component.graph.nodes.len();
        if nodes > MAX_NODES { Err(too_many_nodes()) } else { Ok(component) }
    };
    (0..count).map(component).collect()
}

/// Sets all components. Each given name must be the name of the component or empty.
fn set_members(
    parent: &DynAny,
    names: &[Box<str>],
    members: Vec<(Box<str>, Dynamic)>,
) -> Result<(), DynError> {
    if members.len() != names.len() {
        return Err(DynErrorKind::Bounds { index: members.len(), len: names.len() }.into());
    }
    let mut named = members.iter().map(|(given, _)| given).zip(names);
    if let Some((given, _)) = named.find(|(given, name)| !given.is_empty() && given != name) {
        return Err(DynErrorKind::NoSuchMember(given.clone()).into());
    }
    let original = parent.dynamic()?;
    for (at, (_, value)) in members.into_iter().enumerate() {
        if let Err(error) = parent.component(at).assign_dynamic(value) {
            parent.assign_dynamic(original)?;
            return Err(error);
        }
    }
    if !names.is_empty() {
        parent.seek(0)?;
    }
    Ok(())
}

fn names_of(code: &TypeCode) -> Vec<Box<str>> {
    let code = code.unaliased();
    (0..code.member_count().unwrap_or(0)).filter_map(|at| code.member_name(at).ok()).map(Into::into).collect()
}

fn current_member(parent: &DynAny, names: &[Box<str>]) -> Result<(Box<str>, TcKind), DynError> {
    let no_member =
        || DynError::from(DynErrorKind::InvalidValue("there is no current member: the position is -1"));
    let at = parent.position()?.ok_or_else(no_member)?;
    let name = names.get(at).cloned().ok_or_else(no_member)?;
    Ok((name, parent.component(at).type_code()?.kind()))
}

impl DynStruct {
    fn names(&self) -> Result<Vec<Box<str>>, DynError> {
        self.type_code().map(|code| names_of(&code))
    }

    /// Returns the name of the member at the current position.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue) if the position is -1.
    pub fn current_member_name(&self) -> Result<Box<str>, DynError> {
        current_member(self, &self.names()?).map(|(name, _)| name)
    }

    /// Returns the kind of the member at the current position. Fails like
    /// [`current_member_name`](Self::current_member_name).
    pub fn current_member_kind(&self) -> Result<TcKind, DynError> {
        current_member(self, &self.names()?).map(|(_, kind)| kind)
    }

    /// Returns all members with their names.
    #[doc(alias = "get_members")]
    pub fn members(&self) -> Result<Vec<(Box<str>, Dynamic)>, DynError> {
        members(self, &self.names()?)
    }

    /// Sets all members. Each given name must be that of the member, or empty.
    ///
    /// # Errors
    /// [`NoSuchMember`](DynErrorKind::NoSuchMember), [`TypeMismatch`](DynErrorKind::TypeMismatch),
    /// [`Bounds`](DynErrorKind::Bounds). The value is unchanged after an error.
    pub fn set_members(&self, members: Vec<(Box<str>, Dynamic)>) -> Result<(), DynError> {
        set_members(self, &self.names()?, members)
    }
}

impl DynUnion {
    /// Returns the discriminator as a component of the union.
    #[doc(alias = "get_discriminator")]
    pub fn discriminator(&self) -> DynAny {
        self.component(0)
    }

    /// Sets the discriminator. If it selects another member than before, that member gets its default value.
    ///
    /// # Errors
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch) if the given value is not of the discriminator's type.
    /// [`InvalidValue`](DynErrorKind::InvalidValue) if it is not a valid discriminator.
    pub fn set_discriminator(&self, discriminator: &DynAny) -> Result<(), DynError> {
        let given = discriminator.dynamic()?;
        let wanted = self.type_code()?.unaliased().discriminator_type().unwrap_or_default();
        match label_of(&given.value) {
            Some(label) if given.code.equivalent(&wanted) => self.select(label),
            _ => Err(mismatch(&wanted, &format!("a value of type `{}`", given.code))),
        }
    }

    fn select(&self, label: i64) -> Result<(), DynError> {
        self.change(&mut |code, part, _| select(code, part, label))?;
        self.component(1).forget_positions();
        // As the standard requires, move to the member, or to the discriminator if no member is selected.
        let has_member = self.component_count()? > 1;
        self.set_position(Some(usize::from(has_member)));
        Ok(())
    }

    /// Selects the default member.
    ///
    /// # Errors
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch) if the union has no explicit default member.
    pub fn set_to_default_member(&self) -> Result<(), DynError> {
        let code = self.type_code()?.unaliased();
        let label = match code.union() {
            Ok(union) => union.default.and_then(|at| discriminator_for(&code.nodes, union, at as usize)),
            Err(_) => None,
        };
        self.select(label.ok_or_else(|| mismatch(&code, "a union with a `default` label"))?)
    }

    /// Selects no member.
    ///
    /// # Errors
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch) if every discriminator selects a member.
    pub fn set_to_no_active_member(&self) -> Result<(), DynError> {
        let code = self.type_code()?.unaliased();
        let label = match code.union() {
            Ok(union) if union.default.is_none() => unlabelled_discriminator(&code.nodes, union),
            _ => None,
        };
        self.select(label.ok_or_else(|| mismatch(&code, "a union with unused discriminators"))?)
    }

    /// Returns whether no member is selected.
    pub fn has_no_active_member(&self) -> Result<bool, DynError> {
        Ok(self.component_count()? < 2)
    }

    /// Returns the kind of the discriminator.
    pub fn discriminator_kind(&self) -> Result<TcKind, DynError> {
        self.discriminator().type_code().map(|code| code.unaliased().kind())
    }

    /// Returns the selected member as a component of the union.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue) if no member is selected.
    pub fn member(&self) -> Result<DynAny, DynError> {
        if self.has_no_active_member()? {
            return Err(DynErrorKind::InvalidValue("no member of the union is selected").into());
        }
        Ok(self.component(1))
    }

    /// Returns the name of the selected member. Fails like [`member`](Self::member).
    pub fn member_name(&self) -> Result<Box<str>, DynError> {
        self.member()?;
        let (code, value) = (self.type_code()?.unaliased(), self.dynamic()?.value);
        let (Ok(definition), Value::Union(union)) = (code.union(), value) else {
            return Err(super::removed_component());
        };
        let selected = definition.selected(union.discriminator);
        selected.map(|member| (*member.name).into()).ok_or_else(super::removed_component)
    }

    /// Returns the kind of the selected member. Fails like [`member`](Self::member).
    pub fn member_kind(&self) -> Result<TcKind, DynError> {
        self.member()?.type_code().map(|code| code.kind())
    }
}

impl DynSequence {
    /// Returns the number of elements.
    #[doc(alias = "get_length")]
    pub fn length(&self) -> Result<usize, DynError> {
        self.component_count()
    }

    /// Removes elements at the end, or appends elements with default values. If the position is -1, it moves
    /// to the first new element. If the element at the position is removed, the position becomes -1.
    ///
    /// # Errors
    /// [`Bounds`](DynErrorKind::Bounds) if the length exceeds the bound of the sequence, or is not that of
    /// the array. [`Limit`](DynErrorKind::Limit) if the new elements would take more than 64 MiB.
    pub fn set_length(&self, length: usize) -> Result<(), DynError> {
        let (original, position) = (self.length()?, self.position()?);
        self.change(&mut |code, part, _| {
            let code = code.unaliased();
            let bound = code.length().unwrap_or(0) as usize;
            let is_array = code.kind() == TcKind::Array;
            if (is_array && length != bound) || (bound != 0 && length > bound) {
                return Err(DynErrorKind::Bounds { index: length, len: bound }.into());
            }
            let (Value::Items(items), Ok(element)) = (part, code.content_type()) else {
                return Err(super::removed_component());
            };
            resize(items, length, &element)
        })?;
        for at in length..original {
            self.component(at).forget_positions();
        }
        match position {
            None if length > original => self.set_position(Some(original)),
            at => self.set_position(at.filter(|at| *at < length)),
        }
        Ok(())
    }

    /// Returns all elements.
    #[doc(alias = "get_elements")]
    pub fn elements(&self) -> Result<Vec<Dynamic>, DynError> {
        components(self, self.length()?)
    }

    /// Sets all elements, and thereby also the length of a sequence.
    ///
    /// # Errors
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch), [`Bounds`](DynErrorKind::Bounds). The value is unchanged
    /// after an error.
    pub fn set_elements(&self, elements: Vec<Dynamic>) -> Result<(), DynError> {
        let original = self.dynamic()?;
        let set = || {
            self.set_length(elements.len())?;
            elements
                .into_iter()
                .enumerate()
                .try_for_each(|(at, value)| self.component(at).assign_dynamic(value))
        };
        if let Err(error) = set() {
            self.assign_dynamic(original)?;
            return Err(error);
        }
        self.seek(0).map(drop)
    }
}

fn resize(items: &mut Items, length: usize, element: &TypeCode) -> Result<(), DynError> {
    let charge = |size: usize| match size {
        0..=MAX_BYTES => Ok(()),
        _ => Err(DynError::from(DynErrorKind::Limit("the new elements would take more than 64 MiB"))),
    };
    if items.resize_contiguous(length, charge)? {
        return Ok(());
    }
    items.edit(|values| {
        if length > values.len() {
            let (value, size) = sized_default(&element.nodes, element.root)?;
            charge((length - values.len()).saturating_mul(size))?;
            values.resize(length, value);
        }
        values.truncate(length);
        Ok(())
    })
}

impl DynEnum {
    /// Returns the enumerator's name.
    #[doc(alias = "get_as_string")]
    pub fn name(&self) -> Result<Box<str>, DynError> {
        let ordinal = self.ordinal()?;
        let code = self.type_code()?.unaliased();
        code.member_name(ordinal as usize).map(Into::into).map_err(|_| super::removed_component())
    }

    /// Returns the enumerator's ordinal.
    #[doc(alias = "get_as_ulong")]
    pub fn ordinal(&self) -> Result<u32, DynError> {
        match self.dynamic()?.value {
            Value::Enum(ordinal) => Ok(ordinal),
            _ => Err(super::removed_component()),
        }
    }

    /// Sets the enumerator by its name.
    ///
    /// # Errors
    /// [`NoSuchMember`](DynErrorKind::NoSuchMember) if there is no enumerator with this name.
    #[doc(alias = "set_as_string")]
    pub fn set_name(&self, name: &str) -> Result<(), DynError> {
        let at = names_of(&self.type_code()?).iter().position(|other| **other == *name);
        let at = at.and_then(|at| u32::try_from(at).ok());
        self.set_ordinal(at.ok_or_else(|| DynErrorKind::NoSuchMember(name.into()))?)
    }

    /// Sets the enumerator by its ordinal.
    ///
    /// # Errors
    /// [`Bounds`](DynErrorKind::Bounds) if there is no enumerator with this ordinal.
    #[doc(alias = "set_as_ulong")]
    pub fn set_ordinal(&self, ordinal: u32) -> Result<(), DynError> {
        self.set(Value::Enum(ordinal))
    }
}

impl DynFixed {
    /// Returns the number as text, with all digits after its decimal point.
    #[doc(alias = "get_value")]
    pub fn value(&self) -> Result<String, DynError> {
        match self.dynamic()?.value {
            Value::Fixed(number) => Ok(number.to_string()),
            _ => Err(super::removed_component()),
        }
    }

    /// Sets the number from a text with or without a point. As in IDL, the text may end with `d` or `D`.
    /// Returns `false` if digits other than zero were cut off because they exceed the scale of the type.
    ///
    /// # Errors
    /// [`Syntax`](DynErrorKind::Syntax) if the text is not a number, and
    /// [`InvalidValue`](DynErrorKind::InvalidValue) if there are too many digits before the point.
    pub fn set_value(&self, text: &str) -> Result<bool, DynError> {
        let code = self.type_code()?.unaliased();
        let (digits, scale) = (code.fixed_digits().unwrap_or(1), code.fixed_scale().unwrap_or(0));
        let text = text.trim().trim_end_matches(['d', 'D']);
        if !is_number(text) {
            return Err(DynErrorKind::Syntax(format!("`{text}` is not a decimal number").into()).into());
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let fraction = fraction.get(..usize::try_from(scale).unwrap_or(0)).unwrap_or(fraction);
        let exact = Decimal::parse(text, digits, scale);
        let number = exact.or_else(|| Decimal::parse(&format!("{whole}.{fraction}"), digits, scale));
        let number =
            number.ok_or(DynErrorKind::InvalidValue("the number has too many digits for its type"))?;
        self.set(Value::Fixed(Box::new(number)))?;
        Ok(exact.is_some())
    }
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all = whole.len() + fraction.len();
    all > 0 && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
}

impl DynValue {
    fn names(&self) -> Result<Vec<Box<str>>, DynError> {
        let root = self.lock();
        let node = match *self.part(&root)?.1 {
            Value::Node(Some(node)) => root.dynamic.graph.nodes.get(node as usize),
            _ => None,
        };
        let code = node.ok_or(DynErrorKind::InvalidValue("the value is null"))?.code.clone();
        drop(root);
        Ok(value_members(&code)?.into_iter().map(|(_, name)| name).collect())
    }

    /// Returns whether the value is null.
    pub fn is_null(&self) -> Result<bool, DynError> {
        Ok(*self.part(&self.lock())?.1 == Value::Node(None))
    }

    /// Sets the value to null.
    pub fn set_to_null(&self) -> Result<(), DynError> {
        self.set(Value::Node(None))?;
        self.forget_positions();
        Ok(())
    }

    /// Replaces null by a value with default members. Does nothing if the value is not null.
    ///
    /// # Errors
    /// [`Inconsistent`](DynErrorKind::Inconsistent) if the type is abstract or `custom`.
    pub fn set_to_value(&self) -> Result<(), DynError> {
        if !self.is_null()? {
            return Ok(());
        }
        self.change(&mut |code, part, graph| {
            let code = code.unaliased();
            let members = value_members(&code)?;
            if is_custom(&members) {
                return Err(DynErrorKind::Inconsistent(CUSTOM_STATE_UNKNOWN).into());
            }
            let members = members.iter().map(|(code, _)| default_value(&code.nodes, code.root));
            let node = ValueNode { members: members.collect::<Result<_, _>>()?, code };
            let index = u32::try_from(graph.nodes.len()).ok().filter(|index| (*index as usize) < MAX_NODES);
            *part = Value::Node(Some(index.ok_or_else(too_many_nodes)?));
            graph.nodes.push(node);
            Ok(())
        })?;
        self.forget_positions();
        Ok(())
    }

    /// Returns the name of the member at the current position.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue) if the position is -1 or the value is null.
    pub fn current_member_name(&self) -> Result<Box<str>, DynError> {
        current_member(self, &self.names()?).map(|(name, _)| name)
    }

    /// Returns the kind of the member at the current position. Fails like
    /// [`current_member_name`](Self::current_member_name).
    pub fn current_member_kind(&self) -> Result<TcKind, DynError> {
        current_member(self, &self.names()?).map(|(_, kind)| kind)
    }

    /// Returns the members with their names, those of bases first. A value box has one member named `value`.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue) if the value is null.
    #[doc(alias = "get_members")]
    #[doc(alias = "get_boxed_value")]
    pub fn members(&self) -> Result<Vec<(Box<str>, Dynamic)>, DynError> {
        members(self, &self.names()?)
    }

    /// Sets all members. If the value is null, it is first set to a value with default members.
    ///
    /// # Errors
    /// The errors of [`set_to_value`](Self::set_to_value) and [`DynStruct::set_members`].
    #[doc(alias = "set_boxed_value")]
    pub fn set_members(&self, members: Vec<(Box<str>, Dynamic)>) -> Result<(), DynError> {
        self.set_to_value()?;
        set_members(self, &self.names()?, members)
    }
}
