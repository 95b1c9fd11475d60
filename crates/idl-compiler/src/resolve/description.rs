//! Words for kinds of entities in messages.

/// The description of a parameter in messages.
pub(super) const PARAMETER: &str = "parameter of a template module";

/// The description of a parameter that a scope uses and does not declare.
pub(super) const USED_PARAMETER: &str = "template parameter";

/// The description of a factory in messages. It also distinguishes factories from other members, because
/// factories are not inherited.
pub(super) const FACTORY: &str = "factory";

/// Prefixes a word with `a` or `an`.
pub(super) fn article(what: &str) -> String {
    let vowel = what.starts_with(['a', 'e', 'i', 'o', 'u']) && !what.starts_with("union");
    format!("{} {what}", if vowel { "an" } else { "a" })
}
