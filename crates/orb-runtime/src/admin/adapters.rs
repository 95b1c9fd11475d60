//! Describes the POAs of an ORB in JSON.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::poa::{PoaManagerState, Policies};
use crate::runtime::Shared;
use crate::servant::poa_core::PoaCore;

/// The maximum number of POAs that are listed. Peers can make adapter activators create any number of POAs.
const MAX_ADAPTERS: usize = 256;

/// Returns descriptions of the POAs, and whether there are more. Children follow their parents, sorted by
/// name.
pub(crate) fn adapters(core: &Shared) -> (Vec<Value>, bool) {
    let adapter = core.adapter();
    let (mut listed, mut remaining) = (Vec::new(), vec![(Vec::new(), Arc::clone(adapter.root()))]);
    // The objects of `Orb::activate_named` belong to an internal POA.
    if adapter.plain_poa.active_objects() > 0 {
        remaining.push((Vec::new(), Arc::clone(&adapter.plain_poa)));
    }
    while let Some((mut path, poa)) = remaining.pop() {
        if listed.len() == MAX_ADAPTERS {
            return (listed, true);
        }
        path.push(poa.node().name.to_string());
        listed.push(description(&path, &poa));
        let mut children: Vec<_> = poa.children().by_name.values().map(Arc::clone).collect();
        children.sort_by(|a, b| b.node().name.cmp(&a.node().name));
        remaining.extend(children.into_iter().map(|child| (path.clone(), child)));
    }
    (listed, false)
}

fn description(path: &[String], poa: &PoaCore) -> Value {
    let state = match poa.node().manager.state() {
        PoaManagerState::Holding => "holding",
        PoaManagerState::Active => "active",
        PoaManagerState::Discarding => "discarding",
        PoaManagerState::Inactive => "inactive",
    };
    let defaults = Policies::default().to_list();
    let policies =
        poa.node().policies.to_list().into_iter().zip(defaults).filter(|(policy, default)| policy != default);
    json!({
        "path": path,
        "manager": poa.node().manager.id(),
        "state": state,
        "objects": poa.active_objects(),
        "policies": policies.map(|(policy, _)| policy.to_string()).collect::<Vec<_>>(),
    })
}
