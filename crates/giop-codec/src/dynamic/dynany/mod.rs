//! [`DynAny`]: access to a value by its components, as in the standard ("Dynamic Management of Any Values").

mod graph;
mod kinds;
mod typed;

pub use kinds::{DynEnum, DynFixed, DynSequence, DynStruct, DynUnion, DynValue};

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::part::{count, edit, last_node, look};
use super::{DynError, DynErrorKind, Dynamic, Value, ValueGraph};
use crate::any::Any;
use crate::typecode::{TcKind, TypeCode};

/// A value that is read and changed component by component, without its type at compile time.
///
/// [`current_component`](Self::current_component) returns a part of this value, not a copy: a change of the
/// component changes the whole. Clones refer to the same value; [`copy`](Self::copy) creates another one.
/// Each component has its own current position among its components: 0 initially, or -1 if there are none. A
/// component is removed from its value when another member of a union is selected, or a sequence is
/// shortened. All methods of a removed component return [`InvalidValue`](DynErrorKind::InvalidValue). To
/// `destroy` a value, drop it.
///
/// For programs that are not ported from other languages, [`Dynamic`] and its paths are simpler.
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
    whole: Arc<Mutex<DynAnyRoot>>,
    /// The indices that lead from the whole to this part, component by component.
    way: Vec<usize>,
}

struct DynAnyRoot {
    dynamic: Dynamic,
    /// The number of nodes after the last removal of unreachable nodes.
    tidy: usize,
    /// Current positions that differ from the initial ones.
    positions: BTreeMap<Vec<usize>, Option<usize>>,
}

#[cold]
fn gone() -> DynError {
    DynErrorKind::InvalidValue("the component is no part of its value any more").into()
}

#[cold]
fn mismatch(wanted: &TypeCode, found: &str) -> DynError {
    DynErrorKind::TypeMismatch { wanted: wanted.clone(), found: found.into() }.into()
}

/// Returns whether values of the type have components.
fn has_components(code: &TypeCode) -> bool {
    use TcKind::{Array, Event, Except, Sequence, Struct, Union, Value, ValueBox};
    let code = code.unaliased();
    match code.kind() {
        // Clause "DynAny / Traversal": an exception without members has no components either.
        Except => code.member_count().is_ok_and(|members| members > 0),
        kind => matches!(kind, Struct | Union | Sequence | Array | Value | ValueBox | Event),
    }
}

impl DynAny {
    /// Creates a `DynAny` with the value of an any.
    ///
    /// # Errors
    /// [`Decode`](DynErrorKind::Decode): the any was received with data that is not a value of its type.
    #[doc(alias = "create_dyn_any")]
    pub fn from_any(any: &Any) -> Result<DynAny, DynError> {
        any.to_dynamic().map(DynAny::from)
    }

    /// Creates a `DynAny` with the default value of a type: see [`Dynamic::default_of`].
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
    /// [`Encode`](DynErrorKind::Encode), [`InvalidValue`](DynErrorKind::InvalidValue).
    /// [`Inconsistent`](DynErrorKind::Inconsistent) for a `custom` value.
    pub fn to_any(&self) -> Result<Any, DynError> {
        Any::from_dynamic(&self.dynamic()?)
    }

    /// Returns a copy of the value as a tree.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn dynamic(&self) -> Result<Dynamic, DynError> {
        let whole = self.lock();
        let (code, value) = self.part(&whole)?;
        let (value, graph) = graph::extract(value.into_owned(), &whole.dynamic.graph);
        Ok(Dynamic { code, value, graph })
    }

    /// Returns the type of the value, including aliases.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    #[doc(alias = "type")]
    pub fn type_code(&self) -> Result<TypeCode, DynError> {
        self.part(&self.lock()).map(|(code, _)| code)
    }

    /// Assigns the value of another `DynAny` of an equivalent type.
    ///
    /// # Errors
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch), [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn assign(&self, other: &DynAny) -> Result<(), DynError> {
        self.take(other.dynamic()?)
    }

    /// Assigns the value of an any of an equivalent type.
    ///
    /// # Errors
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch), [`InvalidValue`](DynErrorKind::InvalidValue),
    /// [`Decode`](DynErrorKind::Decode).
    #[doc(alias = "from_any")]
    pub fn assign_any(&self, any: &Any) -> Result<(), DynError> {
        self.take(any.to_dynamic()?)
    }

    fn take(&self, value: Dynamic) -> Result<(), DynError> {
        let Dynamic { code, value, graph } = value;
        let mut given = Some((value, graph));
        self.change(&mut |of, part, around| {
            if !of.equivalent(&code) {
                return Err(mismatch(of, &format!("a value of type `{code}`")));
            }
            if let Some((value, graph)) = given.take() {
                *part = graph::append(around, value, graph)?;
            }
            Ok(())
        })?;
        self.tidy();
        self.forget_positions();
        Ok(())
    }

    /// Returns whether the types are equivalent and the values equal.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn equal(&self, other: &DynAny) -> Result<bool, DynError> {
        let (one, other) = (self.dynamic()?, other.dynamic()?);
        if !one.code.equivalent(&other.code) {
            return Ok(false);
        }
        if one.value == other.value && one.graph == other.graph {
            return Ok(true);
        }
        // Trees of equal values may differ: numbers may be contiguous or separate, and nodes in another
        // order.
        Ok(Any::from_dynamic(&one)? == Any::from_dynamic(&Dynamic { code: one.code.clone(), ..other })?)
    }

    /// Creates a `DynAny` with a copy of the value, at its initial position.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn copy(&self) -> Result<DynAny, DynError> {
        self.dynamic().map(DynAny::from)
    }

    /// Returns the number of components: members, elements, or the discriminator and the member of a union; 0
    /// for other types.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn component_count(&self) -> Result<usize, DynError> {
        let whole = self.lock();
        let (_, value) = self.part(&whole)?;
        Ok(count(&value, &whole.dynamic.graph))
    }

    /// Returns the component at the current position; `None` at -1.
    ///
    /// # Errors
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch): values of the type have no components.
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn current_component(&self) -> Result<Option<DynAny>, DynError> {
        let code = self.type_code()?;
        if !has_components(&code) {
            return Err(mismatch(&code, "a component"));
        }
        Ok(self.position()?.map(|index| self.component(index)))
    }

    /// Moves to the component with that number. If there is none, the position becomes -1 and the result is
    /// `false`.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn seek(&self, index: i32) -> Result<bool, DynError> {
        let count = self.component_count()?;
        let found = usize::try_from(index).ok().filter(|index| *index < count);
        self.go(found);
        Ok(found.is_some())
    }

    /// Moves to the first component.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn rewind(&self) -> Result<(), DynError> {
        self.seek(0).map(drop)
    }

    /// Moves to the next component. After the last one, the position becomes -1 and the result is `false`.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn next(&self) -> Result<bool, DynError> {
        let next = self.position()?.map_or(0, |index| i32::try_from(index + 1).unwrap_or(-1));
        self.seek(next)
    }

    fn lock(&self) -> MutexGuard<'_, DynAnyRoot> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn component(&self, index: usize) -> DynAny {
        let way = self.way.iter().copied().chain([index]).collect();
        DynAny { whole: Arc::clone(&self.whole), way }
    }

    fn go(&self, to: Option<usize>) {
        self.lock().positions.insert(self.way.clone(), to);
    }

    /// Returns the current position.
    fn position(&self) -> Result<Option<usize>, DynError> {
        let count = self.component_count()?;
        let kept = self.lock().positions.get(&self.way).copied();
        Ok(kept.unwrap_or(Some(0)).filter(|index| *index < count))
    }

    /// Resets the positions of this part and its components to the initial ones.
    fn forget_positions(&self) {
        let mut whole = self.lock();
        let below: Vec<_> = whole
            .positions
            .range(self.way.clone()..)
            .map(|(way, _)| way.clone())
            .take_while(|way| way.starts_with(&self.way))
            .collect();
        for way in below {
            whole.positions.remove(&way);
        }
    }

    fn part<'w>(&self, whole: &'w DynAnyRoot) -> Result<(TypeCode, Cow<'w, Value>), DynError> {
        let mut code = whole.dynamic.code.clone();
        let mut value = Cow::Borrowed(&whole.dynamic.value);
        for &index in &self.way {
            (code, value) = look(&code, value, &whole.dynamic.graph, index).ok_or_else(gone)?;
        }
        Ok((code, value))
    }

    /// Calls `f` to change this part.
    fn change<R>(
        &self,
        f: &mut dyn FnMut(&TypeCode, &mut Value, &mut ValueGraph) -> Result<R, DynError>,
    ) -> Result<R, DynError> {
        let mut whole = self.lock();
        self.part(&whole)?;
        let Dynamic { code, value, graph } = &mut whole.dynamic;
        let index = |at: usize, _: &TypeCode, _: &Value| self.way.get(at).copied();
        match last_node(code, value, graph, self.way.len(), &index) {
            Some((at, code, node)) => {
                let further = self.way.get(at..).unwrap_or_default();
                change(&code, &mut Value::Node(Some(node)), graph, further, f)
            }
            None => change(code, value, graph, &self.way, f),
        }
    }

    /// Drops unreachable nodes once they may be half of all nodes.
    fn tidy(&self) {
        let mut whole = self.lock();
        let DynAnyRoot { dynamic, tidy, .. } = &mut *whole;
        if dynamic.graph.nodes.len() / 2 > *tidy {
            graph::prune(&mut dynamic.value, &mut dynamic.graph);
            *tidy = dynamic.graph.nodes.len();
        }
    }

    /// Returns the target of `get_..` and `insert_..`: the value itself, or its current component if its type
    /// has components.
    fn target(&self) -> Result<DynAny, DynError> {
        if !has_components(&self.type_code()?) {
            return Ok(self.clone());
        }
        let none = || DynErrorKind::InvalidValue("there is no current component: its position is -1").into();
        self.position()?.map(|index| self.component(index)).ok_or_else(none)
    }
}

fn change<R>(
    code: &TypeCode,
    value: &mut Value,
    graph: &mut ValueGraph,
    way: &[usize],
    f: &mut dyn FnMut(&TypeCode, &mut Value, &mut ValueGraph) -> Result<R, DynError>,
) -> Result<R, DynError> {
    let Some((index, further)) = way.split_first() else { return f(code, value, graph) };
    edit(code, value, graph, *index, &mut |code, part, graph| change(code, part, graph, further, f))
}

impl From<Dynamic> for DynAny {
    fn from(dynamic: Dynamic) -> DynAny {
        let whole = DynAnyRoot { tidy: dynamic.graph.nodes.len(), dynamic, positions: BTreeMap::new() };
        DynAny { whole: Arc::new(Mutex::new(whole)), way: Vec::new() }
    }
}

impl fmt::Debug for DynAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.lock();
        match self.part(&whole) {
            Ok((code, value)) => {
                f.debug_struct("DynAny").field("code", &code).field("value", &value).finish()
            }
            Err(error) => f.debug_tuple("DynAny").field(&error).finish(),
        }
    }
}
