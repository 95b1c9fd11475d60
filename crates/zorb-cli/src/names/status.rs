//! `zorb names status`.

use anyhow::Context;
use cos_naming::zorb_naming::{BalancedContextRef, State};
use serde::Serialize;
use zorb::cos_naming::Naming;
use zorb::prelude::*;

use crate::output::{Node, Tone};

/// How a service is.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    /// It knows the latest of its names.
    pub(super) current: bool,
    /// Those that keep them have been away for so many seconds.
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

/// The context with what services of zorb have beyond the OMG's.
pub(super) async fn balanced(names: &Naming) -> anyhow::Result<BalancedContextRef> {
    names.context().narrow().await.context("the naming service is none of zorb")
}
