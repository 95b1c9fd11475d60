//! `zorb names status`: the state of a naming service of zorb.

use anyhow::Context;
use cos_naming::zorb_naming::{BalancedContextRef, State};
use serde::Serialize;
use zorb::cos_naming::Naming;
use zorb::prelude::*;

use crate::output::{Node, Tone};

#[derive(Debug, Serialize)]
pub(super) struct Status {
    pub(super) current: bool,
    /// The number of seconds for which the storage has been unavailable.
    away_for: u32,
    /// The number of iterators that the service keeps for clients that list names.
    iterators: u32,
}

impl Status {
    pub(super) async fn query(names: &Naming) -> anyhow::Result<Self> {
        let State { current, away_for, iterators } = as_balanced_context(names).await?.state().await?;
        Ok(Self { current, away_for, iterators })
    }

    pub(super) fn nodes(&self) -> Vec<Node> {
        let names = if self.current {
            Node::new("names", "current").tone(Tone::Good)
        } else {
            let outdated =
                format!("may be outdated: the storage has been unavailable for {} s", self.away_for);
            Node::new("names", outdated).tone(Tone::Bad)
        };
        vec![names, Node::new("iterators", self.iterators.to_string())]
    }
}

/// Returns the context with the additional interface of zorb's naming service.
pub(super) async fn as_balanced_context(names: &Naming) -> anyhow::Result<BalancedContextRef> {
    names.context().narrow().await.context("the naming service is not a service of zorb")
}
