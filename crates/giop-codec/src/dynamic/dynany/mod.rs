//! [`DynAny`]: a value by its components, as the standard has it ("Dynamic Management of Any Values").

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

/// A value that is walked through and changed component by component, without its type at compile time.
///
/// What [`current_component`](Self::current_component) gives is a part of this value, not a copy: who changes it changes the whole. Clones are the
/// same value; [`copy`](Self::copy) is another. Each component has a current position of its own, among its components: 0 at first, or -1 where there are none. A
/// component that its value has not any more, because another member of a union was selected or a sequence was cut, has
/// [`InvalidValue`](DynErrorKind::InvalidValue) for all that is asked of it. `destroy` is to drop it.
///
/// Programs that are not ported from other languages have it simpler with [`Dynamic`] and its paths.
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
    whole: Arc<Mutex<Whole>>,
    /// The way from the whole to this part, component by component.
    way: Vec<usize>,
}

struct Whole {
    dynamic: Dynamic,
    /// Nodes that there were when those were dropped last that nothing led to.
    tidy: usize,
    /// Current positions that are not the first ones.
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

/// Whether values of the type have components.
fn has_components(code: &TypeCode) -> bool {
    use TcKind::{Array, Event, Except, Sequence, Struct, Union, Value, ValueBox};
    let code = code.unaliased();
    match code.kind() {
        // Clause "DynAny / Traversal": not an exception without members either.
        Except => code.member_count().is_ok_and(|members| members > 0),
        kind => matches!(kind, Struct | Union | Sequence | Array | Value | ValueBox | Event),
    }
}

impl DynAny {
    /// The value of an any.
    ///
    /// # Errors
    /// [`Decode`](DynErrorKind::Decode): a peer sent something else than the type that it named.
    #[doc(alias = "create_dyn_any")]
    pub fn from_any(any: &Any) -> Result<DynAny, DynError> {
        any.to_dynamic().map(DynAny::from)
    }

    /// The value that a type begins with: see [`Dynamic::default_of`].
    ///
    /// # Errors
    /// [`Inconsistent`](DynErrorKind::Inconsistent), [`Limit`](DynErrorKind::Limit).
    #[doc(alias = "create_dyn_any_from_type_code")]
    pub fn of_type(code: &TypeCode) -> Result<DynAny, DynError> {
        Dynamic::default_of(code).map(DynAny::from)
    }

    /// The value as an any.
    ///
    /// # Errors
    /// [`Encode`](DynErrorKind::Encode), [`InvalidValue`](DynErrorKind::InvalidValue); [`Inconsistent`](DynErrorKind::Inconsistent) of a `custom` value.
    pub fn to_any(&self) -> Result<Any, DynError> {
        Any::from_dynamic(&self.dynamic()?)
    }

    /// A copy of the value as a tree.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn dynamic(&self) -> Result<Dynamic, DynError> {
        let whole = self.lock();
        let (code, value) = self.part(&whole)?;
        let (value, graph) = graph::extract(value.into_owned(), &whole.dynamic.graph);
        Ok(Dynamic { code, value, graph })
    }

    /// Its type, aliases included.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    #[doc(alias = "type")]
    pub fn type_code(&self) -> Result<TypeCode, DynError> {
        self.part(&self.lock()).map(|(code, _)| code)
    }

    /// Takes the value of another, whose type is equivalent.
    ///
    /// # Errors
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch), [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn assign(&self, other: &DynAny) -> Result<(), DynError> {
        self.take(other.dynamic()?)
    }

    /// Takes the value of an any of an equivalent type.
    ///
    /// # Errors
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch), [`InvalidValue`](DynErrorKind::InvalidValue), [`Decode`](DynErrorKind::Decode).
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

    /// Whether the types are equivalent and the values the same.
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
        // Trees may differ where values do not: numbers side by side or each by itself, nodes in another order.
        Ok(Any::from_dynamic(&one)? == Any::from_dynamic(&Dynamic { code: one.code.clone(), ..other })?)
    }

    /// Another value like this one, at its first position.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn copy(&self) -> Result<DynAny, DynError> {
        self.dynamic().map(DynAny::from)
    }

    /// How many components there are: members, elements, the discriminator and the member of a union, none of other types.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn component_count(&self) -> Result<usize, DynError> {
        let whole = self.lock();
        let (_, value) = self.part(&whole)?;
        Ok(count(&value, &whole.dynamic.graph))
    }

    /// The component at the current position; `None` at -1.
    ///
    /// # Errors
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch): values of the type have no components; [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn current_component(&self) -> Result<Option<DynAny>, DynError> {
        let code = self.type_code()?;
        if !has_components(&code) {
            return Err(mismatch(&code, "a component"));
        }
        Ok(self.position()?.map(|index| self.component(index)))
    }

    /// Goes to the component of that number; `false`, and to -1, if there is none.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn seek(&self, index: i32) -> Result<bool, DynError> {
        let count = self.component_count()?;
        let found = usize::try_from(index).ok().filter(|index| *index < count);
        self.go(found);
        Ok(found.is_some())
    }

    /// Goes to the first component.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn rewind(&self) -> Result<(), DynError> {
        self.seek(0).map(drop)
    }

    /// Goes to the next component; `false`, and to -1, behind the last one.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue).
    pub fn next(&self) -> Result<bool, DynError> {
        let next = self.position()?.map_or(0, |index| i32::try_from(index + 1).unwrap_or(-1));
        self.seek(next)
    }

    fn lock(&self) -> MutexGuard<'_, Whole> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn component(&self, index: usize) -> DynAny {
        let way = self.way.iter().copied().chain([index]).collect();
        DynAny { whole: Arc::clone(&self.whole), way }
    }

    fn go(&self, to: Option<usize>) {
        self.lock().positions.insert(self.way.clone(), to);
    }

    /// The current position.
    fn position(&self) -> Result<Option<usize>, DynError> {
        let count = self.component_count()?;
        let kept = self.lock().positions.get(&self.way).copied();
        Ok(kept.unwrap_or(Some(0)).filter(|index| *index < count))
    }

    /// The positions of this and its components are the first ones again.
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

    fn part<'w>(&self, whole: &'w Whole) -> Result<(TypeCode, Cow<'w, Value>), DynError> {
        let mut code = whole.dynamic.code.clone();
        let mut value = Cow::Borrowed(&whole.dynamic.value);
        for &index in &self.way {
            (code, value) = look(&code, value, &whole.dynamic.graph, index).ok_or_else(gone)?;
        }
        Ok((code, value))
    }

    /// Changes this part.
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

    /// Drops nodes that nothing leads to, when they may be half of all.
    fn tidy(&self) {
        let mut whole = self.lock();
        let Whole { dynamic, tidy, .. } = &mut *whole;
        if dynamic.graph.nodes.len() / 2 > *tidy {
            graph::prune(&mut dynamic.value, &mut dynamic.graph);
            *tidy = dynamic.graph.nodes.len();
        }
    }

    /// What `get_..` and `insert_..` are about: the value itself, or the current component of one that has such.
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
        let whole = Whole { tidy: dynamic.graph.nodes.len(), dynamic, positions: BTreeMap::new() };
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
