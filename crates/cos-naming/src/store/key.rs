//! One component of a name, as stores have it.

use std::fmt;
use std::hash::{Hash, Hasher};

use zorb::OneLine;
use zorb::cos_naming::{NameComponent, print_name};

/// Id and kind of one component in one text, a NUL between them: no string of CORBA has one.
///
/// Keys are ordered by id, then by kind, octet by octet.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Box<str>);

impl Key {
    /// The longest id and kind together, in octets of UTF-8.
    pub const MAX: usize = 16 * 1024;

    /// Of a component; `None` where it has a NUL, or more than [`MAX`](Self::MAX) octets.
    #[must_use]
    pub fn new(component: &NameComponent) -> Option<Self> {
        let NameComponent { id, kind } = component;
        let fits = id.len() + kind.len() <= Self::MAX;
        if !fits || id.contains('\0') || kind.contains('\0') {
            return None;
        }
        // Exactly as long as it becomes: each lookup makes one.
        let mut text = String::with_capacity(id.len() + 1 + kind.len());
        text.push_str(id);
        text.push('\0');
        text.push_str(kind);
        Some(Self(text.into_boxed_str()))
    }

    /// Of a text that [`text`](Self::text) gave; `None` for any other.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        (text.matches('\0').count() == 1).then(|| Self(text.into()))
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.0.split_once('\0').map_or(&self.0, |(id, _)| id)
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.0.split_once('\0').map_or("", |(_, kind)| kind)
    }

    /// Both, with a NUL between.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// As a component.
    #[must_use]
    pub fn component(&self) -> NameComponent {
        NameComponent::new(self.id(), self.kind())
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// As a stringified name, for people: what no terminal should get is escaped.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        OneLine::new(&print_name(&[self.component()])).fmt(f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}
