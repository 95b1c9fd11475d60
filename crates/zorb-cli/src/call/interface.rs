//! The interface of an object: from IDL, by asking the object which interfaces it has, or from an interface
//! repository.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use anyhow::{Context, bail};
use tokio::task::JoinSet;
use zorb::dynamic::{Idl, Interface, interface_of, look_up_interface};
use zorb::prelude::*;
use zorb::{ObjectRef, TcKind};

use crate::target;

/// Maximum number of concurrent requests to an object.
const AT_A_TIME: usize = 16;
/// Maximum number of names that a message lists.
const LISTED: usize = 20;

/// The interface and operation that a command line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted<'a> {
    /// The interface, if it is named: `Bank::Account`, or a repository id.
    pub(crate) interface: Option<&'a str>,
    /// The operation or attribute, if it is named.
    pub(crate) operation: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    /// Parses `OPERATION`, `INTERFACE.OPERATION` or `INTERFACE`.
    pub(crate) fn of(text: Option<&'a str>) -> Self {
        let Some(text) = text else { return Self { interface: None, operation: None } };
        if let Some((interface, operation)) = text.rsplit_once('.')
            && operation.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && !operation.contains([':', '/'])
        {
            return Self { interface: Some(interface), operation: Some(operation) };
        }
        // Names with these characters are not operations. A dot may belong to a version:
        // `IDL:Bank/Account:1.0`.
        match text.contains([':', '/']) {
            true => Self { interface: Some(text), operation: None },
            false => Self { interface: None, operation: Some(text) },
        }
    }
}

/// An interface, and a remark for the user about how it was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) interface: Arc<Interface>,
    pub(crate) remark: Option<String>,
}

/// Returns the repository id of a name: `IDL:Bank/Account:1.0` for `Bank::Account`. Ids are not changed.
pub(crate) fn repository_id(name: &str) -> String {
    let path = name.replace("::", "/");
    match path.contains(':') {
        true => name.to_owned(),
        false => format!("IDL:{}:1.0", path.trim_start_matches('/')),
    }
}

/// Returns the interface with which an object is called.
///
/// # Errors
/// The interface is unknown: the IDL does not have it, the object cannot be asked, or there is no interface
/// repository.
pub(crate) async fn find(
    orb: &Orb,
    object: &ObjectRef,
    wanted: Wanted<'_>,
    idl: Option<&Idl>,
    repository: Option<&str>,
) -> anyhow::Result<Found> {
    match (idl, wanted.interface) {
        (Some(idl), Some(name)) => Ok(Found { interface: named(idl, name)?, remark: None }),
        (Some(idl), None) => in_idl(idl, object, wanted.operation).await,
        (None, name) => {
            let interface = in_repository(orb, object, name, repository).await?;
            Ok(Found { interface, remark: None })
        }
    }
}

/// Returns the interface of this name: `Bank::Account`, `Bank/Account`, `IDL:Bank/Account:1.0`, or `Account`
/// if it is unique.
pub(crate) fn named(idl: &Idl, name: &str) -> anyhow::Result<Arc<Interface>> {
    if let Some(found) = idl.find_id(name).and_then(|one| one.interface().cloned()) {
        return Ok(found);
    }
    if let Some(found) = idl.interface(&name.replace('/', "::")) {
        return Ok(found);
    }
    let mut alike = idl.definitions().filter(|one| one.name() == name && one.interface().is_some());
    match (alike.next(), alike.next()) {
        (Some(one), None) => one.interface().cloned().context("it has no interface"),
        (Some(one), Some(other)) => {
            bail!("the IDL has several interfaces {name}: {} and {}", one.scoped_name(), other.scoped_name())
        }
        (None, _) => bail!("the IDL has no interface {name}; it has {}", names(idl)),
    }
}

/// Lists the interfaces of IDL, for messages.
fn names(idl: &Idl) -> String {
    let all = idl.definitions().filter(|one| one.interface().is_some() && !one.is_included());
    let all: Vec<&str> = all.map(|one| one.scoped_name()).collect();
    match all.len().checked_sub(LISTED) {
        None | Some(0) if all.is_empty() => "none".to_owned(),
        None | Some(0) => all.join(", "),
        Some(more) => format!("{} and {more} more", all.get(..LISTED).unwrap_or_default().join(", ")),
    }
}

/// Returns the name of an interface in IDL, for messages and command lines.
fn scoped<'a>(idl: &'a Idl, interface: &'a Interface) -> &'a str {
    idl.find_id(interface.id()).map_or(interface.id(), |one| one.scoped_name())
}

/// Returns the interface of the reference's repository id. If the IDL does not have it, the object is asked
/// which interface of the IDL it has.
async fn in_idl(idl: &Idl, object: &ObjectRef, operation: Option<&str>) -> anyhow::Result<Found> {
    let id = object.repository_id();
    if let Some(interface) = idl.find_id(id).and_then(|one| one.interface().cloned()) {
        return Ok(Found { interface, remark: None });
    }
    let unknown = match id {
        "" => "the reference does not say which interface the object has".to_owned(),
        id => format!("the IDL has no {id}, which is the interface of the object"),
    };
    let has = most_derived(idl, object).await.with_context(|| {
        format!("{unknown}, and the object can not be asked; INTERFACE.OPERATION names one of {}", names(idl))
    })?;
    let chosen = match (&*has, operation) {
        ([], _) => {
            let having = |interface: &Interface| operation.is_none_or(|name| has_operation(interface, name));
            let example = all(idl).into_iter().find(|one| having(one));
            let spelling = example.map(|one| {
                let operation = operation.unwrap_or("OPERATION");
                format!("; {}.{operation} calls it as that all the same", scoped(idl, &one))
            });
            bail!(
                "{unknown}, and it says that it has none of those in the IDL: {}{}",
                names(idl),
                spelling.unwrap_or_default()
            )
        }
        ([one], _) => one,
        // Several interfaces, none derived from another: the operation decides.
        (several, operation) => {
            let mut having =
                several.iter().filter(|one| operation.is_some_and(|name| has_operation(one, name)));
            match (having.next(), having.next()) {
                (Some(one), None) => one,
                _ => {
                    let each: Vec<String> = several
                        .iter()
                        .map(|one| format!("{}.{}", scoped(idl, one), operation.unwrap_or("OPERATION")))
                        .collect();
                    bail!("{unknown}, and it has several of those in the IDL: {}", each.join(" or "))
                }
            }
        }
    };
    // A `corbaloc:` URL never contains the type, so this needs no remark.
    let remark = (!id.is_empty()).then(|| {
        let name = scoped(idl, chosen);
        let operation = operation.unwrap_or("OPERATION");
        format!("{unknown}; it is called as {name}, which it has too ({name}.{operation} says so)")
    });
    Ok(Found { interface: Arc::clone(chosen), remark })
}

/// Returns the operations of this name in the IDL, as `INTERFACE.OPERATION` for each interface that defines
/// one.
pub(super) fn having(idl: &Idl, operation: &str) -> Vec<String> {
    let defines = |one: &Interface| {
        one.operations().iter().any(|own| *own.name == *operation)
            || one.attributes().iter().any(|own| *own.name == *operation)
    };
    let found = all(idl).into_iter().filter(|one| defines(one));
    found.map(|one| format!("{}.{operation}", scoped(idl, &one))).take(LISTED).collect()
}

/// Returns whether the interface has an operation or attribute of this name.
fn has_operation(interface: &Interface, name: &str) -> bool {
    interface.find(name).is_some() || interface.find(&format!("_get_{name}")).is_some()
}

/// Returns all interfaces of IDL that remote objects can have, each once.
fn all(idl: &Idl) -> Vec<Arc<Interface>> {
    let mut met = HashSet::new();
    let interfaces = idl.definitions().filter_map(|one| one.interface().cloned());
    interfaces.filter(|one| one.kind() != TcKind::LocalInterface && met.insert(one.id().to_owned())).collect()
}

/// Returns the most derived interfaces of IDL that the object claims to have.
///
/// Interfaces without bases are tested first, and derived ones only if the object has all their bases.
///
/// # Errors
/// The object cannot be asked.
async fn most_derived(idl: &Idl, object: &ObjectRef) -> Result<Vec<Arc<Interface>>, SystemException> {
    let mut open = all(idl);
    let known: HashSet<String> = open.iter().map(|one| one.id().to_owned()).collect();
    let mut has: Vec<Arc<Interface>> = Vec::new();
    let mut yes: HashSet<String> = HashSet::new();
    loop {
        let may_have = |one: &Arc<Interface>| {
            one.bases().iter().all(|base| yes.contains(base.id()) || !known.contains(base.id()))
        };
        let (now, later): (Vec<_>, Vec<_>) = open.into_iter().partition(may_have);
        open = later;
        if now.is_empty() {
            break;
        }
        for one in asked(object, now).await? {
            yes.insert(one.id().to_owned());
            has.push(one);
        }
    }
    let bases: BTreeSet<String> = has
        .iter()
        .flat_map(|one| one.lineage().into_iter().skip(1).map(|base| base.id().to_owned()))
        .collect();
    has.retain(|one| !bases.contains(one.id()));
    has.sort_by(|a, b| a.id().cmp(b.id()));
    Ok(has)
}

/// Returns the interfaces that the object claims to have.
///
/// # Errors
/// The object cannot be asked.
async fn asked(
    object: &ObjectRef,
    interfaces: Vec<Arc<Interface>>,
) -> Result<Vec<Arc<Interface>>, SystemException> {
    let (mut waiting, mut running, mut has) = (interfaces.into_iter(), JoinSet::new(), Vec::new());
    loop {
        while running.len() < AT_A_TIME
            && let Some(one) = waiting.next()
        {
            let object = object.clone();
            running.spawn(async move { (object.is_a(one.id()).await, one) });
        }
        match running.join_next().await {
            Some(Ok((said, one))) => {
                if said? {
                    has.push(one);
                }
            }
            // A task that panicked has already printed its message.
            Some(Err(_)) => {}
            None => return Ok(has),
        }
    }
}

/// Returns the interface from an interface repository.
async fn in_repository(
    orb: &Orb,
    object: &ObjectRef,
    name: Option<&str>,
    repository: Option<&str>,
) -> anyhow::Result<Arc<Interface>> {
    let found = match repository {
        None => interface_of(object).await,
        Some(url) => {
            let url = target::read(url)?.to_string();
            let repository: ObjectRef = orb.resolve_unchecked(&url).await?;
            let id = name.map_or_else(|| object.repository_id().to_owned(), repository_id);
            look_up_interface(&repository, &id).await
        }
    };
    found.context("no interface repository told of the object's interface: name the IDL, --idl FILE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_named_by_scope_or_by_repository_id() {
        let of = |text| {
            let wanted = Wanted::of(Some(text));
            (wanted.interface, wanted.operation)
        };
        assert_eq!(of("deposit"), (None, Some("deposit")));
        assert_eq!(of("_get_owner"), (None, Some("_get_owner")));
        assert_eq!(of("Bank::Account.deposit"), (Some("Bank::Account"), Some("deposit")));
        assert_eq!(of("Account.deposit"), (Some("Account"), Some("deposit")));
        assert_eq!(of("Bank::Account"), (Some("Bank::Account"), None));
        assert_eq!(of("IDL:Bank/Account:1.0"), (Some("IDL:Bank/Account:1.0"), None));
        assert_eq!(of("IDL:omg.org/A:1.0"), (Some("IDL:omg.org/A:1.0"), None));
        assert_eq!(of("IDL:Bank/Account:1.0.deposit"), (Some("IDL:Bank/Account:1.0"), Some("deposit")));
        assert_eq!(Wanted::of(None), Wanted { interface: None, operation: None });
        assert_eq!(repository_id("Bank::Account"), "IDL:Bank/Account:1.0");
        assert_eq!(repository_id("::Bank::Account"), "IDL:Bank/Account:1.0");
        assert_eq!(repository_id("IDL:omg.org/A:2.3"), "IDL:omg.org/A:2.3");
        assert_eq!(repository_id("RMI:a.B:0000"), "RMI:a.B:0000");
    }

    #[test]
    fn idl_is_searched_by_every_spelling() {
        let idl = Idl::parse(
            "module A { interface One {}; interface Twice {}; }; module B { interface Twice {}; };",
        )
        .unwrap();
        for spelling in ["A::One", "::A::One", "A/One", "IDL:A/One:1.0", "One"] {
            assert_eq!(named(&idl, spelling).unwrap().id(), "IDL:A/One:1.0", "{spelling}");
        }
        let several = named(&idl, "Twice").unwrap_err().to_string();
        assert!(several.contains("A::Twice and B::Twice"), "{several}");
        let none = named(&idl, "Three").unwrap_err().to_string();
        assert!(none.contains("no interface Three; it has A::One, A::Twice, B::Twice"), "{none}");
    }
}
