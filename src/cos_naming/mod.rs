//! The naming service's interfaces, its names as text, and a client: `orb.naming().await?.bind("a/b", &account)`.
//!
//! IDL that includes `<CosNaming.idl>` shares these types; where a file of its own has that name, by the option
//! `extern("::CosNaming" = ::zorb::cos_naming)`. The service itself is the crate `cos-naming`; any other ORB's will do.

mod client;

/// What `CosNaming.idl` becomes.
mod stubs {
    crate::idl!("<CosNaming.idl>");
}

pub use client::{Listing, Naming, NamingError, OrbNaming};
pub use orb_runtime::wire::{NameText, NameTextError};
pub use stubs::cos_naming::*;

impl NameComponent {
    /// A component with that id and kind, either of which may be empty.
    pub fn new(id: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { id: id.into(), kind: kind.into() }
    }
}

/// The name that a text stands for: `a.kind/b`, with `\` before a `/`, a dot or a backslash that belongs to a part.
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
/// [`NameTextError`], with the character that is wrong; a naming service raises `InvalidName`.
#[doc(alias = "to_name")]
pub fn parse_name(text: &str) -> Result<Name, NameTextError> {
    let NameText { components } = text.parse()?;
    Ok(components.into_iter().map(|(id, kind)| NameComponent { id, kind }).collect())
}

/// A name as text, of which [`parse_name`] makes the same name; of no component an empty one.
#[must_use]
#[doc(alias = "to_string")]
pub fn print_name(name: &[NameComponent]) -> String {
    let mut text = String::new();
    // A `String` takes everything.
    let _ = NameText::write(&mut text, name.iter().map(|part| (part.id.as_str(), part.kind.as_str())));
    text
}
