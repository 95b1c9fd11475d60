//! The naming service: interfaces, names as text, and a client, such as `orb.naming().await?.bind("a/b",
//! &x)`.
//!
//! IDL that includes `<CosNaming.idl>` shares these types. If a file of the user has that name, the option
//! `extern("::CosNaming" = ::zorb::cos_naming)` has the same effect. The service itself is the crate
//! `cos-naming`; any other ORB's service can be used as well.

mod client;

/// The types generated from `CosNaming.idl`.
mod stubs {
    crate::idl!("<CosNaming.idl>");
}

pub use client::{Listing, Naming, NamingError, OrbNaming};
pub use orb_runtime::wire::{NameText, NameTextError};
pub use stubs::cos_naming::*;

impl NameComponent {
    /// Creates a component with that id and kind, either of which may be empty.
    pub fn new(id: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { id: id.into(), kind: kind.into() }
    }
}

/// Parses a name from text: `a.kind/b`, with `\` before a slash, dot or backslash that belongs to a
/// component.
///
/// ```
/// use zorb::cos_naming::{NameComponent, parse_name, print_name};
///
/// let name = parse_name(r"bank/acc\.1.account")?;
/// assert_eq!(name[1], NameComponent::new("acc.1", "account"));
/// assert_eq!(print_name(&name), r"bank/acc\.1.account");
/// # Ok::<(), zorb::cos_naming::NameTextError>(())
/// ```
///
/// # Errors
/// [`NameTextError`], with the invalid character; a naming service raises `InvalidName`.
#[doc(alias = "to_name")]
pub fn parse_name(text: &str) -> Result<Name, NameTextError> {
    let NameText { components } = text.parse()?;
    Ok(components.into_iter().map(|(id, kind)| NameComponent { id, kind }).collect())
}

/// Returns a name as text that [`parse_name`] reads. Empty for a name without components.
#[must_use]
#[doc(alias = "to_string")]
pub fn print_name(name: &[NameComponent]) -> String {
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let _ = NameText::write(&mut text, name.iter().map(|part| (part.id.as_str(), part.kind.as_str())));
    text
}
