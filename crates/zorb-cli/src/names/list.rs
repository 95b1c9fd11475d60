//! `zorb names list`: the bindings of a context.

use serde::Serialize;
use zorb::ObjectRef;
use zorb::cos_naming::{BindingType, Naming};
use zorb::prelude::*;

use super::lines::ListWriter;
use super::list_limits::{RemainingLimits, StopReason};
use crate::failure::Verdict;
use crate::limits::replace_library_options;
use crate::output::{Node, Output, Tone, printable};

#[derive(Debug, Serialize)]
struct ListedBinding {
    name: String,
    context: bool,
    /// Only with `--long`.
    #[serde(skip_serializing_if = "Option::is_none")]
    type_id: Option<String>,
    /// Only with `--long`, and only if the address can be written as a `corbaloc:` URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Only with `--long`: the reason why the name could not be resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Lists a context page by page. The names of a page are sorted.
pub(super) async fn run(
    names: &Naming,
    long: bool,
    mut remaining: RemainingLimits,
    output: &Output,
) -> anyhow::Result<Verdict> {
    let mut lines = ListWriter::new(output);
    lines.begin_list();
    let mut listing = names.list();
    let result = print_pages(names, &mut listing, long, &mut remaining, &mut lines).await;
    lines.end_list();
    lines.finish()?;
    let reason = match result {
        Ok(result) => return Ok(result.map(|()| Verdict::Good)?),
        Err(reason) => reason,
    };
    // Let the service release its iterator. If this fails, a timeout releases it.
    let _ = remaining.within(listing.close()).await;
    let Some(message) = remaining.message(reason) else { return Ok(Verdict::Good) };
    output.print_failure(&anyhow::anyhow!(message));
    Ok(Verdict::Bad)
}

async fn print_pages<W: std::io::Write>(
    names: &Naming,
    listing: &mut zorb::cos_naming::Listing,
    long: bool,
    remaining: &mut RemainingLimits,
    lines: &mut ListWriter<W>,
) -> Result<Result<(), SystemException>, StopReason> {
    while !listing.is_done() {
        let mut page = match remaining.within(listing.page()).await? {
            Ok(page) => page,
            Err(error) => return Ok(Err(error)),
        };
        remaining.count_page(page.len())?;
        page.sort_by(|a, b| a.0.cmp(&b.0));
        let width = if long {
            page.iter().map(|(name, kind)| display_name(name, *kind).chars().count()).max()
        } else {
            None
        };
        for (name, kind) in page {
            remaining.count_binding()?;
            let binding = describe_binding(names, name, kind, long, remaining).await?;
            lines.write_item(&binding, || binding.node(width.unwrap_or(0)));
            if long {
                lines.flush()?;
            }
        }
        lines.flush()?;
    }
    Ok(Ok(()))
}

/// Describes a binding. With `long`, resolves the name.
async fn describe_binding(
    names: &Naming,
    name: String,
    kind: BindingType,
    long: bool,
    remaining: &RemainingLimits,
) -> Result<ListedBinding, StopReason> {
    let context = kind == BindingType::Ncontext;
    let mut binding = ListedBinding { name, context, type_id: None, url: None, error: None };
    if long {
        match remaining.within(names.resolve::<ObjectRef>(&binding.name)).await? {
            Ok(object) => {
                binding.type_id = Some(object.repository_id().to_owned());
                binding.url = object.to_corbaloc();
            }
            // For example, the name is bound to nil, or was unbound after the page had been read.
            Err(error) => binding.error = Some(replace_library_options(&error.to_string()).into_owned()),
        }
    }
    Ok(binding)
}

/// Returns the name, with a slash after the name of a context.
fn display_name(name: &str, kind: BindingType) -> String {
    match kind {
        BindingType::Ncontext => format!("{name}/"),
        BindingType::Nobject => name.to_owned(),
    }
}

impl ListedBinding {
    /// Returns the node. Its name is padded to `width`, the width of the longest name of the page.
    fn node(&self, width: usize) -> Node {
        let kind = if self.context { BindingType::Ncontext } else { BindingType::Nobject };
        let name = display_name(&self.name, kind);
        let padded = format!("{name:width$}");
        if let Some(error) = &self.error {
            return Node::new(padded, error).tone(Tone::Bad);
        }
        let parts = [self.type_id.as_deref(), self.url.as_deref()];
        let parts: Vec<String> = parts.into_iter().flatten().map(printable).collect();
        match parts.is_empty() {
            true => Node::new(name, ""),
            false => Node::new(padded, parts.join("  ")),
        }
    }
}
