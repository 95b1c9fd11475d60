//! [`Contents`]: the contents of values besides numbers.

/// The contents of a value, or the possible contents of values of a type, besides numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contents {
    /// A `string`, whose encoding depends on the code set. Characters of fixed layout are not included.
    pub text: bool,
    /// A `wchar` or `wstring`, whose encoding also depends on the version.
    pub wide: bool,
    /// An object reference.
    pub references: bool,
    /// A place for a value of a value type.
    pub graphs: bool,
    /// An any, which may contain anything.
    pub anys: bool,
    /// The maximum alignment: 1, 2, 4 or 8, or 0 for a value that takes no bytes.
    pub align: u8,
}

impl Contents {
    /// Returns the union of both.
    pub(crate) fn and(self, other: Contents) -> Contents {
        Contents {
            text: self.text || other.text,
            wide: self.wide || other.wide,
            references: self.references || other.references,
            graphs: self.graphs || other.graphs,
            anys: self.anys || other.anys,
            align: self.align.max(other.align),
        }
    }
}
