//! Finding the interface of an object, in IDL or in an interface repository.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use anyhow::{Context, bail};
use tokio::task::JoinSet;
use zorb::dynamic::{Idl, Interface, interface_of, look_up_interface};
use zorb::prelude::*;
use zorb::{ObjectRef, TcKind};

use super::fit::name_list;
use crate::target;

const MAX_CONCURRENT_REQUESTS: usize = 16;
const MAX_LISTED: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallNames<'a> {
    /// The interface, if it is given: `Bank::Account`, or a repository id.
    pub(crate) interface: Option<&'a str>,
    pub(crate) operation: Option<&'a str>,
}

impl<'a> CallNames<'a> {
    pub(crate) fn parse(text: Option<&'a str>) -> Self {
        let Some(text) = text else { return Self { interface: None, operation: None } };
        if let Some((interface, operation)) = text.rsplit_once('.')
            && operation.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && !operation.contains([':', '/'])
        {
            return Self { interface: Some(interface), operation: Some(operation) };
        }
        // The names of operations do not contain these characters.
        match text.contains([':', '/']) {
            true => Self { interface: Some(text), operation: None },
            false => Self { interface: None, operation: Some(text) },
        }
    }
}

/// Returns the repository id for a name such as `Bank::Account`. Returns a repository id unchanged.
pub(crate) fn repository_id(name: &str) -> String {
    let path = name.replace("::", "/");
    match path.contains(':') {
        true => name.to_owned(),
        false => format!("IDL:{}:1.0", path.trim_start_matches('/')),
    }
}

/// Returns the interface with which to call an object. Also returns a remark if it is not the interface in
/// the reference.
pub(crate) async fn find(
    orb: &Orb,
    object: &ObjectRef,
    names: CallNames<'_>,
    idl: Option<&Idl>,
    repository: Option<&str>,
) -> anyhow::Result<(Arc<Interface>, Option<String>)> {
    match (idl, names.interface) {
        (Some(idl), Some(name)) => Ok((find_by_name(idl, name)?, None)),
        (Some(idl), None) => find_in_idl(idl, object, names.operation).await,
        (None, name) => Ok((find_in_repository(orb, object, name, repository).await?, None)),
    }
}

/// Returns the interface with a name such as `Bank::Account`, `Bank/Account` or `IDL:Bank/Account:1.0`. The
/// last component, such as `Account`, is sufficient if it is unique.
pub(crate) fn find_by_name(idl: &Idl, name: &str) -> anyhow::Result<Arc<Interface>> {
    if let Some(found) = idl.find_id(name).and_then(|one| one.interface().cloned()) {
        return Ok(found);
    }
    if let Some(found) = idl.interface(&name.replace('/', "::")) {
        return Ok(found);
    }
    let mut matches = idl.definitions().filter(|one| one.name() == name && one.interface().is_some());
    match (matches.next(), matches.next()) {
        (Some(one), None) => one.interface().cloned().context("the definition is not an interface"),
        (Some(one), Some(other)) => {
            bail!("the IDL has several interfaces {name}: {} and {}", one.scoped_name(), other.scoped_name())
        }
        (None, _) => bail!("the IDL has no interface {name}; it has {}", interface_list(idl)),
    }
}

fn interface_list(idl: &Idl) -> String {
    let all = idl.definitions().filter(|one| one.interface().is_some() && !one.is_included());
    name_list(all.map(|one| one.scoped_name().to_owned()).collect(), MAX_LISTED)
}

fn scoped_name<'a>(idl: &'a Idl, interface: &'a Interface) -> &'a str {
    idl.find_id(interface.id()).map_or(interface.id(), |one| one.scoped_name())
}

/// Returns the interface of the reference, or else an interface of the IDL that the object supports.
async fn find_in_idl(
    idl: &Idl,
    object: &ObjectRef,
    operation: Option<&str>,
) -> anyhow::Result<(Arc<Interface>, Option<String>)> {
    let id = object.repository_id();
    if let Some(interface) = idl.find_id(id).and_then(|one| one.interface().cloned()) {
        return Ok((interface, None));
    }
    let unknown = match id {
        "" => "the reference does not state the interface of the object".to_owned(),
        id => format!("the interface of the object, {id}, is not in the IDL"),
    };
    let supported = most_derived(idl, object).await.with_context(|| {
        format!("{unknown}, and the object cannot be queried; use INTERFACE.OPERATION with one of the interfaces {}", interface_list(idl))
    })?;
    let chosen = match (&*supported, operation) {
        ([], _) => {
            let is_candidate =
                |interface: &Interface| operation.is_none_or(|name| has_operation(interface, name));
            let example = remote_interfaces(idl).into_iter().find(|one| is_candidate(one));
            let hint = example.map(|one| {
                let operation = operation.unwrap_or("OPERATION");
                format!("; use {}.{operation} to call it with this interface anyway", scoped_name(idl, &one))
            });
            bail!(
                "{unknown}, and the object reports that it has no interface of the IDL: {}{}",
                interface_list(idl),
                hint.unwrap_or_default()
            )
        }
        ([one], _) => one,
        // There are several interfaces, and none is derived from another one. Select by the operation.
        (several, operation) => {
            let mut matches =
                several.iter().filter(|one| operation.is_some_and(|name| has_operation(one, name)));
            match (matches.next(), matches.next()) {
                (Some(one), None) => one,
                _ => {
                    let each: Vec<String> = several
                        .iter()
                        .map(|one| format!("{}.{}", scoped_name(idl, one), operation.unwrap_or("OPERATION")))
                        .collect();
                    bail!(
                        "{unknown}, and the object has several interfaces of the IDL; use {}",
                        each.join(" or ")
                    )
                }
            }
        }
    };
    // There is no remark if the reference has no repository id, because `corbaloc:` URLs never have one.
    let remark = (!id.is_empty()).then(|| {
        let name = scoped_name(idl, chosen);
        let operation = operation.unwrap_or("OPERATION");
        format!("{unknown}; calling it as {name}, which it also supports (use {name}.{operation} to avoid this remark)")
    });
    Ok((Arc::clone(chosen), remark))
}

/// Returns the operations and attributes with this name in the IDL, in the form `INTERFACE.OPERATION`.
pub(super) fn operations_named(idl: &Idl, operation: &str) -> Vec<String> {
    let defines = |one: &Interface| {
        one.operations().iter().any(|own| *own.name == *operation)
            || one.attributes().iter().any(|own| *own.name == *operation)
    };
    let found = remote_interfaces(idl).into_iter().filter(|one| defines(one));
    found.map(|one| format!("{}.{operation}", scoped_name(idl, &one))).take(MAX_LISTED).collect()
}

fn has_operation(interface: &Interface, name: &str) -> bool {
    interface.find(name).is_some() || interface.find(&format!("_get_{name}")).is_some()
}

/// Returns all interfaces of the IDL that remote objects can have, each once.
fn remote_interfaces(idl: &Idl) -> Vec<Arc<Interface>> {
    let mut seen = HashSet::new();
    let interfaces = idl.definitions().filter_map(|one| one.interface().cloned());
    interfaces
        .filter(|one| one.kind() != TcKind::LocalInterface && seen.insert(one.id().to_owned()))
        .collect()
}

/// Returns the most derived interfaces of the IDL that the object reports.
///
/// Queries interfaces without bases first, and a derived interface only if the object has all of its bases.
async fn most_derived(idl: &Idl, object: &ObjectRef) -> Result<Vec<Arc<Interface>>, SystemException> {
    let mut remaining = remote_interfaces(idl);
    let known: HashSet<String> = remaining.iter().map(|one| one.id().to_owned()).collect();
    let mut supported: Vec<Arc<Interface>> = Vec::new();
    let mut supported_ids: HashSet<String> = HashSet::new();
    loop {
        let is_possible = |one: &Arc<Interface>| {
            one.bases().iter().all(|base| supported_ids.contains(base.id()) || !known.contains(base.id()))
        };
        let (now, later): (Vec<_>, Vec<_>) = remaining.into_iter().partition(is_possible);
        remaining = later;
        if now.is_empty() {
            break;
        }
        for one in query_supported(object, now).await? {
            supported_ids.insert(one.id().to_owned());
            supported.push(one);
        }
    }
    let bases: BTreeSet<String> = supported
        .iter()
        .flat_map(|one| one.lineage().into_iter().skip(1).map(|base| base.id().to_owned()))
        .collect();
    supported.retain(|one| !bases.contains(one.id()));
    supported.sort_by(|a, b| a.id().cmp(b.id()));
    Ok(supported)
}

/// Returns the interfaces that the object reports to have.
async fn query_supported(
    object: &ObjectRef,
    interfaces: Vec<Arc<Interface>>,
) -> Result<Vec<Arc<Interface>>, SystemException> {
    let (mut pending, mut running, mut supported) = (interfaces.into_iter(), JoinSet::new(), Vec::new());
    loop {
        while running.len() < MAX_CONCURRENT_REQUESTS
            && let Some(one) = pending.next()
        {
            let object = object.clone();
            running.spawn(async move { (object.is_a(one.id()).await, one) });
        }
        match running.join_next().await {
            Some(Ok((result, one))) => {
                if result? {
                    supported.push(one);
                }
            }
            // A task that panicked has already printed its message.
            Some(Err(_)) => {}
            None => return Ok(supported),
        }
    }
}

async fn find_in_repository(
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
    found.context("cannot get the interface of the object from an interface repository; use --idl FILE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_given_by_scoped_name_or_repository_id() {
        let of = |text| {
            let names = CallNames::parse(Some(text));
            (names.interface, names.operation)
        };
        assert_eq!(of("deposit"), (None, Some("deposit")));
        assert_eq!(of("_get_owner"), (None, Some("_get_owner")));
        assert_eq!(of("Bank::Account.deposit"), (Some("Bank::Account"), Some("deposit")));
        assert_eq!(of("Account.deposit"), (Some("Account"), Some("deposit")));
        assert_eq!(of("Bank::Account"), (Some("Bank::Account"), None));
        assert_eq!(of("IDL:Bank/Account:1.0"), (Some("IDL:Bank/Account:1.0"), None));
        assert_eq!(of("IDL:omg.org/A:1.0"), (Some("IDL:omg.org/A:1.0"), None));
        assert_eq!(of("IDL:Bank/Account:1.0.deposit"), (Some("IDL:Bank/Account:1.0"), Some("deposit")));
        assert_eq!(CallNames::parse(None), CallNames { interface: None, operation: None });
        assert_eq!(repository_id("Bank::Account"), "IDL:Bank/Account:1.0");
        assert_eq!(repository_id("::Bank::Account"), "IDL:Bank/Account:1.0");
        assert_eq!(repository_id("IDL:omg.org/A:2.3"), "IDL:omg.org/A:2.3");
        assert_eq!(repository_id("RMI:a.B:0000"), "RMI:a.B:0000");
    }

    #[test]
    fn interfaces_are_found_by_each_form_of_their_name() {
        let idl = Idl::parse(
            "module A { interface One {}; interface Twice {}; }; module B { interface Twice {}; };",
        )
        .unwrap();
        for spelling in ["A::One", "::A::One", "A/One", "IDL:A/One:1.0", "One"] {
            assert_eq!(find_by_name(&idl, spelling).unwrap().id(), "IDL:A/One:1.0", "{spelling}");
        }
        let several = find_by_name(&idl, "Twice").unwrap_err().to_string();
        assert!(several.contains("A::Twice and B::Twice"), "{several}");
        let none = find_by_name(&idl, "Three").unwrap_err().to_string();
        assert!(none.contains("no interface Three; it has A::One, A::Twice, B::Twice"), "{none}");
    }
}
