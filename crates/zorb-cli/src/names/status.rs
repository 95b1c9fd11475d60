//! `zorb names status`.

use anyhow::Context;
use cos_naming::zorb_naming::{BalancedContextRef, State};
use serde::Serialize;
use zorb::cos_naming::Naming;
use zorb::prelude::*;

use crate::output::{Node, Tone};

/// The status of a service.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    /// Whether it knows the latest state of its names.
    pub(super) current: bool,
    /// Seconds since its storage became unreachable.
    away_for: u32,
    iterators: u32,
}

impl Status {
    pub(super) async fn of(names: &Naming) -> anyhow::Result<Self> {
        let State { current, away_for, iterators } = balanced(names).await?.state().await?;
        Ok(Self { current, away_for, iterators })
    }

    pub(super) fn nodes(&self) -> Vec<Node> {
        let names = if self.current {
            Node::new("names", "current").tone(Tone::Good)
        } else {
            let away = format!("read from memory: what keeps them has been away for {} s", self.away_for);
            Node::new("names", away).tone(Tone::Bad)
        };
        vec![names, Node::new("iterators", self.iterators.to_string())]
    }
}

/// Returns the context with zorb's extensions of the OMG interface.
pub(super) async fn balanced(names: &Naming) -> anyhow::Result<BalancedContextRef> {
    names.context().narrow().await.context("the naming service is none of zorb")
}
