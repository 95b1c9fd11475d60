//! [`DynAny`]: standard access to a value by its components ("Dynamic Management of Any Values").

mod graph;
mod kinds;
mod typed;

pub use kinds::{DynEnum, DynFixed, DynSequence, DynStruct, DynUnion, DynValue};

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::part::{component, component_count, edit_component, last_node};
use super::{DynError, DynErrorKind, Dynamic, Value, ValueGraph};
use crate::any::Any;
use crate::typecode::{TcKind, TypeCode};

/// A value whose type is known only at run time, and which is read and changed component by component.
///
/// [`current_component`](Self::current_component) returns a part of this value, not a copy. A change of the
/// component changes the whole value. Clones refer to the same value, and [`copy`](Self::copy) to a new one.
///
/// Each value and component has a current position among its own components. The position is initially 0, or
/// -1 if there are no components. The `DynAny` of a component refers to the component's place in the value.
/// While nothing is at that place, its methods return [`InvalidValue`](DynErrorKind::InvalidValue). This is
/// so after a sequence was shortened, or while no member of a union is selected. The standard's operation
/// `destroy` is `drop`.
///
/// [`Dynamic`] and its paths are simpler to use. This type helps to port programs from other languages.
///
/// ```
/// use giop_codec::dynamic::DynAny;
/// use giop_codec::typecode::TypeCode;
///
/// let list = DynAny::of_type(&TypeCode::sequence(&TypeCode::LONG, 0))?;
/// list.as_sequence()?.set_length(2)?;
/// list.insert_long(7)?;
/// list.next()?;
/// list.insert_long(8)?;
/// assert_eq!(list.dynamic()?.at("[1]")?.1, 8.into());
/// # Ok::<(), giop_codec::dynamic::DynError>(())
/// ```
///
/// Source clause: "Dynamic Management of Any Values / The DynAny Interface".
#[doc(alias = "DynamicAny::DynAny")]
#[derive(Clone)]
pub struct DynAny {
    root: Arc<Mutex<DynAnyRoot>>,
    /// The path from the root to this part, as the index of the component at each level.
    path: Vec<usize>,
}

struct DynAnyRoot {
    dynamic: Dynamic,
    /// The number of nodes in the graph after the last removal of unreachable nodes.
    nodes_after_prune: usize,
    /// The current positions by the paths of parts. A part without an entry is at its initial position.
    positions: BTreeMap<Vec<usize>, Option<usize>>,
}

#[cold]
fn removed_component() -> DynError {
    DynErrorKind::InvalidValue("the component was removed from its value").into()
}

#[cold]
fn mismatch(wanted: &TypeCode, found: &str) -> DynError {
    DynErrorKind::TypeMismatch { wanted: wanted.clone(), found: found.into() }.into()
}

fn has_components(code: &TypeCode) -> bool {
    use TcKind::{Array, Event, Except, Sequence, Struct, Union, Value, ValueBox};
    let code = code.unaliased();
    match code.kind() {
        // As the clause "DynAny / Traversal" requires, an exception without members has no components.
        Except => code.member_count().is_ok_and(|members| members > 0),
        kind => matches!(kind, Struct | Union | Sequence | Array | Value | ValueBox | Event),
    }
}

impl DynAny {
    /// Creates a `DynAny` with the value of an any.
    ///
    /// # Errors
    /// [`Decode`](DynErrorKind::Decode) if the any was received with data that is not a value of its type.
    #[doc(alias = "create_dyn_any")]
    pub fn from_any(any: &Any) -> Result<DynAny, DynError> {
        any.to_dynamic().map(DynAny::from)
    }

    /// Creates a `DynAny` with the default value of a type, which [`Dynamic::default_of`] describes.
    ///
    /// # Errors
    /// [`Inconsistent`](DynErrorKind::Inconsistent), [`Limit`](DynErrorKind::Limit).
    #[doc(alias = "create_dyn_any_from_type_code")]
    pub fn of_type(code: &TypeCode) -> Result<DynAny, DynError> {
        Dynamic::default_of(code).map(DynAny::from)
    }

    /// Returns the value as an any.
    ///
    /// # Errors
    /// [`Encode`](DynErrorKind::Encode), [`InvalidValue`](DynErrorKind::InvalidValue), and
    /// [`Inconsistent`](DynErrorKind::Inconsistent) for a `custom` value.
    pub fn to_any(&self) -> Result<Any, DynError> {
        Any::from_dynamic(&self.dynamic()?)
    }

    /// Returns a copy of the value as a tree.
    pub fn dynamic(&self) -> Result<Dynamic, DynError> {
        let root = self.lock();
        let (code, value) = self.part(&root)?;
        let (value, graph) = graph::extract(value.into_owned(), &root.dynamic.graph);
        Ok(Dynamic { code, value, graph })
    }

    /// Returns the type of the value, including aliases.
    #[doc(alias = "type")]
    pub fn type_code(&self) -> Result<TypeCode, DynError> {
        self.part(&self.lock()).map(|(code, _)| code)
    }

    /// Assigns the value of another `DynAny` of an equivalent type.
    ///
    /// # Errors
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch), [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn assign(&self, other: &DynAny) -> Result<(), DynError> {
        self.assign_dynamic(other.dynamic()?)
    }

    /// Assigns the value of an any of an equivalent type.
    ///
    /// # Errors
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch), [`InvalidValue`](DynErrorKind::InvalidValue),
    /// [`Decode`](DynErrorKind::Decode).
    #[doc(alias = "from_any")]
    pub fn assign_any(&self, any: &Any) -> Result<(), DynError> {
        self.assign_dynamic(any.to_dynamic()?)
    }

    fn assign_dynamic(&self, value: Dynamic) -> Result<(), DynError> {
        let Dynamic { code, value, graph } = value;
        let mut given = Some((value, graph));
        self.change(&mut |expected, part, root_graph| {
            if !expected.equivalent(&code) {
                return Err(mismatch(expected, &format!("a value of type `{code}`")));
            }
            if let Some((value, graph)) = given.take() {
                *part = graph::append(root_graph, value, graph)?;
            }
            Ok(())
        })?;
        self.prune_if_needed();
        self.forget_positions();
        Ok(())
    }

    /// Returns whether the types are equivalent and the values are equal.
    pub fn equal(&self, other: &DynAny) -> Result<bool, DynError> {
        let (one, other) = (self.dynamic()?, other.dynamic()?);
        if !one.code.equivalent(&other.code) {
            return Ok(false);
        }
        if one.value == other.value && one.graph == other.graph {
            return Ok(true);
        }
        // Equal values may have different trees: numbers may be contiguous or not, and nodes in any order.
        Ok(Any::from_dynamic(&one)? == Any::from_dynamic(&Dynamic { code: one.code.clone(), ..other })?)
    }

    /// Creates a `DynAny` with a copy of the value. All its positions are the initial ones.
    pub fn copy(&self) -> Result<DynAny, DynError> {
        self.dynamic().map(DynAny::from)
    }

    /// Returns the number of components: the members, the elements, or the discriminator and the selected
    /// member of a union. Other types have no components.
    pub fn component_count(&self) -> Result<usize, DynError> {
        let root = self.lock();
        let (_, value) = self.part(&root)?;
        Ok(component_count(&value, &root.dynamic.graph))
    }

    /// Returns the component at the current position, or `None` if the position is -1.
    ///
    /// # Errors
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch) if values of the type never have components.
    pub fn current_component(&self) -> Result<Option<DynAny>, DynError> {
        let code = self.type_code()?;
        if !has_components(&code) {
            return Err(mismatch(&code, "access to components"));
        }
        Ok(self.position()?.map(|index| self.component(index)))
    }

    /// Moves to the component with this index. If there is none, the position is -1 and the result `false`.
    pub fn seek(&self, index: i32) -> Result<bool, DynError> {
        let count = self.component_count()?;
        let found = usize::try_from(index).ok().filter(|index| *index < count);
        self.set_position(found);
        Ok(found.is_some())
    }

    /// Moves to the first component.
    pub fn rewind(&self) -> Result<(), DynError> {
        self.seek(0).map(drop)
    }

    /// Moves to the next component. After the last one, the position becomes -1 and the result is `false`.
    pub fn next(&self) -> Result<bool, DynError> {
        let next = self.position()?.map_or(0, |index| i32::try_from(index + 1).unwrap_or(-1));
        self.seek(next)
    }

    fn lock(&self) -> MutexGuard<'_, DynAnyRoot> {
        self.root.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn component(&self, index: usize) -> DynAny {
        let path = self.path.iter().copied().chain([index]).collect();
        DynAny { root: Arc::clone(&self.root), path }
    }

    fn set_position(&self, to: Option<usize>) {
        self.lock().positions.insert(self.path.clone(), to);
    }

    fn position(&self) -> Result<Option<usize>, DynError> {
        let count = self.component_count()?;
        let stored = self.lock().positions.get(&self.path).copied();
        Ok(stored.unwrap_or(Some(0)).filter(|index| *index < count))
    }

    /// Resets the positions of this part and of all parts in it to the initial ones.
    fn forget_positions(&self) {
        let mut root = self.lock();
        let following = root.positions.range(self.path.clone()..).map(|(path, _)| path);
        let own: Vec<_> = following.take_while(|path| path.starts_with(&self.path)).cloned().collect();
        for path in own {
            root.positions.remove(&path);
        }
    }

    /// Returns the type and value of this part.
    fn part<'w>(&self, root: &'w DynAnyRoot) -> Result<(TypeCode, Cow<'w, Value>), DynError> {
        let mut code = root.dynamic.code.clone();
        let mut value = Cow::Borrowed(&root.dynamic.value);
        for &index in &self.path {
            (code, value) =
                component(&code, value, &root.dynamic.graph, index).ok_or_else(removed_component)?;
        }
        Ok((code, value))
    }

    /// Calls `f` with the type and value of this part, and with the graph.
    fn change<R>(
        &self,
        f: &mut dyn FnMut(&TypeCode, &mut Value, &mut ValueGraph) -> Result<R, DynError>,
    ) -> Result<R, DynError> {
        let mut root = self.lock();
        self.part(&root)?;
        let Dynamic { code, value, graph } = &mut root.dynamic;
        let index = |at: usize, _: &TypeCode, _: &Value| self.path.get(at).copied();
        match last_node(code, value, graph, self.path.len(), &index) {
            Some((at, code, node)) => {
                let rest = self.path.get(at..).unwrap_or_default();
                change(&code, &mut Value::Node(Some(node)), graph, rest, f)
            }
            None => change(code, value, graph, &self.path, f),
        }
    }

    /// Removes unreachable nodes if more than half of all nodes were added since the last removal.
    fn prune_if_needed(&self) {
        let mut root = self.lock();
        let DynAnyRoot { dynamic, nodes_after_prune, .. } = &mut *root;
        if dynamic.graph.nodes.len() / 2 > *nodes_after_prune {
            graph::prune(&mut dynamic.value, &mut dynamic.graph);
            *nodes_after_prune = dynamic.graph.nodes.len();
        }
    }

    /// Returns the part to which the methods `get_…` and `insert_…` apply: the value itself, or its current
    /// component if its type has components.
    fn target(&self) -> Result<DynAny, DynError> {
        if !has_components(&self.type_code()?) {
            return Ok(self.clone());
        }
        let error = DynErrorKind::InvalidValue("there is no current component: the position is -1");
        Ok(self.component(self.position()?.ok_or(error)?))
    }
}

fn change<R>(
    code: &TypeCode,
    value: &mut Value,
    graph: &mut ValueGraph,
    path: &[usize],
    f: &mut dyn FnMut(&TypeCode, &mut Value, &mut ValueGraph) -> Result<R, DynError>,
) -> Result<R, DynError> {
    let Some((index, rest)) = path.split_first() else { return f(code, value, graph) };
    edit_component(code, value, graph, *index, &mut |code, part, graph| change(code, part, graph, rest, f))
}

impl From<Dynamic> for DynAny {
    fn from(dynamic: Dynamic) -> DynAny {
        let root =
            DynAnyRoot { nodes_after_prune: dynamic.graph.nodes.len(), dynamic, positions: BTreeMap::new() };
        DynAny { root: Arc::new(Mutex::new(root)), path: Vec::new() }
    }
}

impl fmt::Debug for DynAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = self.lock();
        match self.part(&root) {
            Ok((code, value)) => {
                f.debug_struct("DynAny").field("code", &code).field("value", &value).finish()
            }
            Err(error) => f.debug_tuple("DynAny").field(&error).finish(),
        }
    }
}
