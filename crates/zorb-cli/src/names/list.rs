//! `zorb names list`: the bindings of a context.

use serde::Serialize;
use zorb::ObjectRef;
use zorb::cos_naming::{BindingType, Naming};
use zorb::prelude::*;

use super::bounds::{Left, Stop};
use super::lines::Lines;
use crate::Verdict;
use crate::limits::in_options;
use crate::output::{Node, Output, Tone, told};

/// A binding.
#[derive(Debug, Serialize)]
struct Bound {
    name: String,
    context: bool,
    /// Set by `--long`.
    #[serde(skip_serializing_if = "Option::is_none")]
    type_id: Option<String>,
    /// Set by `--long`, if the reference has an address that a URL can express.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The reason why it could not be determined.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Lists a context page by page. The names of a page are sorted.
///
/// # Errors
/// The service does not answer, or output fails.
pub(super) async fn run(
    names: &Naming,
    long: bool,
    mut left: Left,
    output: &Output,
) -> anyhow::Result<Verdict> {
    let mut lines = Lines::new(output);
    lines.begin();
    let mut listing = names.list();
    let done = pages(names, &mut listing, long, &mut left, &mut lines).await;
    lines.end();
    lines.done()?;
    let stop = match done {
        Ok(()) => return Ok(Verdict::Good),
        Err(Ended::Call(error)) => return Err(error.into()),
        Err(Ended::Stop(stop)) => stop,
    };
    // Lets the service release its iterator. If the call fails, the service releases it by itself.
    let _ = left.within(listing.close()).await;
    let Some(text) = left.text(stop) else { return Ok(Verdict::Good) };
    output.failure(&anyhow::anyhow!(text));
    Ok(Verdict::Bad)
}

/// The reason why the list is incomplete.
enum Ended {
    Call(SystemException),
    Stop(Stop),
}

impl From<Stop> for Ended {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

async fn pages<W: std::io::Write>(
    names: &Naming,
    listing: &mut zorb::cos_naming::Listing,
    long: bool,
    left: &mut Left,
    lines: &mut Lines<W>,
) -> Result<(), Ended> {
    while !listing.is_done() {
        let mut page = left.within(listing.page()).await?.map_err(Ended::Call)?;
        left.answer(page.len())?;
        page.sort_by(|a, b| a.0.cmp(&b.0));
        let width = if long {
            page.iter().map(|(name, kind)| shown(name, *kind).chars().count()).max()
        } else {
            None
        };
        for (name, kind) in page {
            left.binding()?;
            let bound = bound(names, name, kind, long, left).await?;
            lines.item(&bound, || bound.node(width.unwrap_or(0)));
            if long {
                lines.flush()?;
            }
        }
        lines.flush()?;
    }
    Ok(())
}

async fn bound(
    names: &Naming,
    name: String,
    kind: BindingType,
    long: bool,
    left: &Left,
) -> Result<Bound, Stop> {
    let context = kind == BindingType::Ncontext;
    let mut bound = Bound { name, context, type_id: None, url: None, error: None };
    if long {
        match left.within(names.resolve::<ObjectRef>(&bound.name)).await? {
            Ok(object) => {
                bound.type_id = Some(object.repository_id().to_owned());
                bound.url = object.to_corbaloc();
            }
            // Bound to nil, or unbound concurrently.
            Err(error) => bound.error = Some(in_options(&error.to_string()).into_owned()),
        }
    }
    Ok(bound)
}

/// Appends a slash to the name of a context.
fn shown(name: &str, kind: BindingType) -> String {
    match kind {
        BindingType::Ncontext => format!("{name}/"),
        BindingType::Nobject => name.to_owned(),
    }
}

impl Bound {
    /// Returns the node, with the name padded to the width of its page.
    fn node(&self, width: usize) -> Node {
        let name = if self.context { format!("{}/", self.name) } else { self.name.clone() };
        let padded = format!("{name:width$}");
        if let Some(error) = &self.error {
            return Node::new(padded, error).tone(Tone::Bad);
        }
        let parts = [self.type_id.as_deref(), self.url.as_deref()];
        let parts: Vec<String> = parts.into_iter().flatten().map(told).collect();
        match parts.is_empty() {
            true => Node::new(name, ""),
            false => Node::new(padded, parts.join("  ")),
        }
    }
}
