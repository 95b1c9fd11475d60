//! All names below a context.

use serde::Serialize;
use zorb::cos_naming::{BindingType, Naming, NamingContextRef};
use zorb::prelude::*;

use crate::output::{Node, Tone};

/// A context with what is in it.
#[derive(Debug, Serialize)]
pub(super) struct Tree {
    bindings: Vec<Branch>,
    /// Why what is in it is not told, or not whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

#[derive(Debug, Serialize)]
struct Branch {
    name: String,
    /// Of a context.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Tree>,
}

/// What goes through the tree.
struct Walk {
    depth: u32,
    left: usize,
    /// Contexts that were entered: contexts may be bound in each other in circles.
    seen: Vec<NamingContextRef>,
}

impl Tree {
    /// Goes through all contexts, `depth` deep, until `most` bindings were seen.
    pub(super) async fn of(names: Naming, depth: u32, most: usize) -> Self {
        let mut walk = Walk { depth, left: most, seen: Vec::new() };
        walk.enter(names, 0).await
    }

    /// Whether all was told but what was told before.
    pub(super) fn is_whole(&self) -> bool {
        self.missing.as_deref().is_none_or(|why| why == SEEN)
            && self.bindings.iter().filter_map(|branch| branch.context.as_ref()).all(Self::is_whole)
    }

    pub(super) fn nodes(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> = self.bindings.iter().map(Branch::node).collect();
        nodes.extend(self.missing.as_ref().map(|why| Node::new("...", why).tone(Tone::Doubtful)));
        nodes
    }
}

impl Branch {
    fn node(&self) -> Node {
        match &self.context {
            None => Node::new(&self.name, ""),
            Some(tree) => Node::new(format!("{}/", self.name), "").under(tree.nodes()),
        }
    }
}

const SEEN: &str = "told before: a context in a circle, or one with several names";

impl Walk {
    async fn enter(&mut self, names: Naming, level: u32) -> Tree {
        let mut tree = Tree { bindings: Vec::new(), missing: None };
        if self.seen.iter().any(|seen| seen.is_equivalent(names.context())) {
            tree.missing = Some(SEEN.to_owned());
            return tree;
        }
        if level >= self.depth {
            tree.missing = Some(format!("{level} levels are told (--depth)"));
            return tree;
        }
        self.seen.push(names.context().clone());
        let mut listing = names.list();
        let mut all = Vec::new();
        loop {
            match listing.page().await {
                Ok(page) if page.is_empty() => break,
                Ok(page) => all.extend(page),
                Err(error) => {
                    tree.missing = Some(error.to_string());
                    break;
                }
            }
            if all.len() > self.left {
                all.truncate(self.left);
                tree.missing = Some("there is more (--most)".to_owned());
                break;
            }
        }
        self.left -= all.len();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, kind) in all {
            let context = match kind {
                BindingType::Nobject => None,
                BindingType::Ncontext => Some(match names.enter(&name).await {
                    Ok(below) => Box::pin(self.enter(below, level + 1)).await,
                    Err(error) => Tree { bindings: Vec::new(), missing: Some(error.to_string()) },
                }),
            };
            tree.bindings.push(Branch { name, context });
        }
        tree
    }
}
