//! [`Key`], a component of a name in the form that stores use.

use std::fmt;

use zorb::OneLine;
use zorb::cos_naming::{NameComponent, print_name};

/// One component of a name: its id and kind.
///
/// Both are stored in one text, separated by a NUL, because no CORBA string contains a NUL. The bytes of the
/// ids determine the order of keys. If the ids are equal, the bytes of the kinds determine it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Box<str>);

impl Key {
    /// The maximum length of the id and the kind together, in bytes of UTF-8.
    pub const MAX_BYTES: usize = 16 * 1024;

    /// Creates the key of a component. Returns `None` if it contains a NUL or exceeds
    /// [`MAX_BYTES`](Self::MAX_BYTES).
    #[must_use]
    pub fn new(component: &NameComponent) -> Option<Self> {
        let NameComponent { id, kind } = component;
        let fits = id.len() + kind.len() <= Self::MAX_BYTES;
        if !fits || id.contains('\0') || kind.contains('\0') {
            return None;
        }
        // Each lookup creates a key, so allocate exactly once.
        let mut text = String::with_capacity(id.len() + 1 + kind.len());
        text.push_str(id);
        text.push('\0');
        text.push_str(kind);
        Some(Self(text.into_boxed_str()))
    }

    /// Creates a key from the result of [`text`](Self::text). Returns `None` for an invalid text.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        (text.matches('\0').count() == 1).then(|| Self(text.into()))
    }

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.0.split_once('\0').map_or(&self.0, |(id, _)| id)
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.0.split_once('\0').map_or("", |(_, kind)| kind)
    }

    /// Returns the id and the kind, separated by a NUL.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Returns the component as it is used in names.
    #[must_use]
    pub fn component(&self) -> NameComponent {
        NameComponent::new(self.id(), self.kind())
    }
}

/// Formats the component as a stringified name. Characters that are unsafe on a terminal are escaped.
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
