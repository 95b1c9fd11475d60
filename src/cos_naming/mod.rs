//! The naming service: its interfaces, names as text, and a client. For example,
//! `orb.naming().await?.bind("a/b", &x)` binds an object to a name.
//!
//! IDL that includes `<CosNaming.idl>` uses these types. If the IDL instead includes a file `CosNaming.idl`
//! of its own, the option `extern("::CosNaming" = ::zorb::cos_naming)` of `zorb::idl!` has the same effect.
//!
//! The crate `cos-naming` is a naming service. The naming services of other ORBs can be used as well.

mod client;

/// The types generated from `CosNaming.idl`.
mod stubs {
    crate::idl!("<CosNaming.idl>");
}

pub use client::{Listing, Naming, NamingError, OrbNaming};
pub use orb_runtime::wire::{NameText, NameTextError};
pub use stubs::cos_naming::*;

impl NameComponent {
    /// Creates a component from an id and a kind. Each of them may be empty.
    pub fn new(id: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { id: id.into(), kind: kind.into() }
    }
}

/// Parses a name such as `a.kind/b`. A `\` escapes a slash, dot or backslash in a component.
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
/// The text is not a valid name. A naming service would raise `InvalidName` for it.
#[doc(alias = "to_name")]
pub fn parse_name(text: &str) -> Result<Name, NameTextError> {
    let NameText { components } = text.parse()?;
    Ok(components.into_iter().map(|(id, kind)| NameComponent { id, kind }).collect())
}

/// Returns a name as text that [`parse_name`] can parse. For a name without components, the text is empty.
#[must_use]
#[doc(alias = "to_string")]
pub fn print_name(name: &[NameComponent]) -> String {
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let _ = NameText::write(&mut text, name.iter().map(|part| (part.id.as_str(), part.kind.as_str())));
    text
}
