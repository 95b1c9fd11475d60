//! `zorb names tree`: all names below a context, written incrementally.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use zorb::cos_naming::{BindingType, Listing, Naming, NamingContextRef};
use zorb::prelude::*;

use super::bounds::{Left, Stop};
use super::lines::Lines;
use crate::Verdict;
use crate::limits::in_options;
use crate::output::{Node, Output, Tone};

/// Maximum number of contexts of a page that are queried ahead of their turn, so that the timeouts of
/// unreachable ones overlap.
const AHEAD: usize = 32;
/// Maximum bytes of a context's names that are kept until its turn. Larger contexts are queried again.
const KEPT: usize = 64 << 10;
/// Maximum bytes of keys and addresses of visited contexts.
const MAX_SEEN: usize = 64 << 20;

const SEEN: &str = "told before: a context in a circle, or one with several names";

type Page = Vec<(String, BindingType)>;

/// A queried context, with its first page if it was kept.
struct Opened {
    names: Naming,
    listing: Listing,
    first: Option<Page>,
}

type Opening = JoinHandle<Result<Opened, String>>;

/// The state of the traversal.
struct Walk<'a, W: Write> {
    depth: u32,
    left: &'a mut Left,
    lines: &'a mut Lines<W>,
    seen: Seen,
    asking: Arc<Semaphore>,
    /// Everything was listed, except contexts that were already listed.
    whole: bool,
    /// The reason for the end was already printed.
    ended: bool,
}

/// Lists all contexts below a context, `depth` levels deep.
///
/// # Errors
/// Output fails.
pub(super) async fn run(
    names: Naming,
    depth: u32,
    mut left: Left,
    output: &Output,
) -> anyhow::Result<Verdict> {
    let mut lines = Lines::new(output);
    let mut walk = Walk {
        depth,
        left: &mut left,
        lines: &mut lines,
        seen: Seen::default(),
        asking: Arc::new(Semaphore::new(AHEAD)),
        whole: true,
        ended: false,
    };
    let listing = names.list();
    let stopped = walk.enter(Opened { names, listing, first: None }, 0).await;
    let whole = walk.whole && stopped.is_ok();
    lines.done()?;
    // A reader that closes the pipe early is not a failure.
    Ok(if whole || stopped == Err(Stop::Closed) { Verdict::Good } else { Verdict::Bad })
}

impl<W: Write> Walk<'_, W> {
    /// Lists a context. Open lists are closed in any case.
    fn enter(&mut self, opened: Opened, level: u32) -> Pin<Box<dyn Future<Output = Result<(), Stop>> + '_>> {
        Box::pin(async move {
            self.lines.json(r#"{"bindings":"#);
            self.lines.begin();
            let done = self.pages(opened, level).await;
            self.lines.end();
            let missing = match &done {
                Ok(None) => None,
                Ok(Some(why)) => Some(why.clone()),
                Err(stop) => self.left.text(*stop),
            };
            if let Some(why) = missing {
                self.whole &= why == SEEN;
                let text = serde_json::to_string(&why).unwrap_or_default();
                self.lines.json(&format!(r#","missing":{text}"#));
                self.missing(&why, done.is_err());
            }
            self.lines.json("}");
            done.map(drop)
        })
    }

    /// Prints in text the reason why names are missing, at their position. A reason that ends the whole
    /// output is printed once.
    fn missing(&mut self, why: &str, is_end: bool) {
        if !std::mem::replace(&mut self.ended, is_end) {
            self.lines.inside(&Node::new("...", why).tone(Tone::Doubtful));
        }
    }

    /// Lists the pages of a context. `Some` is the reason why its content is missing or incomplete.
    async fn pages(&mut self, opened: Opened, level: u32) -> Result<Option<String>, Stop> {
        let Opened { names, mut listing, mut first } = opened;
        if let Some(why) = self.refused(names.context(), level) {
            return Ok(Some(why));
        }
        let done = loop {
            let mut page = match first.take() {
                Some(page) => page,
                None if listing.is_done() => return Ok(None),
                None => match self.left.within(listing.page()).await {
                    Ok(Ok(page)) => page,
                    Ok(Err(error)) => return Ok(Some(in_options(&error.to_string()).into_owned())),
                    Err(stop) => break stop,
                },
            };
            page.sort_by(|a, b| a.0.cmp(&b.0));
            let answer = self.left.answer(page.len());
            if let Err(stop) = self.page(&names, page, level).await.and(answer) {
                break stop;
            }
        };
        // Lets the service release its iterator. If the call fails, the service releases it by itself.
        let _ = self.left.within(listing.close()).await;
        Err(done)
    }

    /// Returns the reason why a context is not listed.
    fn refused(&mut self, context: &NamingContextRef, level: u32) -> Option<String> {
        match self.seen.insert(context) {
            Some(true) if level >= self.depth => Some(format!("{level} levels are told (--depth)")),
            Some(true) => None,
            Some(false) => Some(SEEN.to_owned()),
            None => Some(format!("references of contexts take more than {} MiB", MAX_SEEN >> 20)),
        }
    }

    /// Lists a page, and the contexts in it.
    async fn page(&mut self, names: &Naming, page: Page, level: u32) -> Result<(), Stop> {
        let contexts: Vec<String> = page
            .iter()
            .filter(|(_, kind)| *kind == BindingType::Ncontext)
            .map(|(name, _)| name.clone())
            .collect();
        let mut waiting = contexts.into_iter();
        let mut opening: Ahead = Ahead::default();
        for (name, kind) in page {
            self.left.binding()?;
            while opening.0.len() < AHEAD
                && let Some(next) = waiting.next()
            {
                let lists = level + 1 < self.depth;
                opening.0.push_back(tokio::spawn(open(names.clone(), next, lists, Arc::clone(&self.asking))));
            }
            if kind == BindingType::Nobject {
                self.lines.item(&serde_json::json!({ "name": name }), || Node::new(&name, ""));
                continue;
            }
            let text = serde_json::to_string(&name).unwrap_or_default();
            self.lines
                .open_item(&format!(r#"{{"name":{text},"context":"#), || Node::new(format!("{name}/"), ""));
            self.lines.flush()?;
            let stopped = match opening.0.pop_front() {
                None => Ok(()),
                Some(mut task) => match self.left.within(&mut task).await {
                    Ok(Ok(Ok(opened))) => self.enter(opened, level + 1).await,
                    Ok(Ok(Err(error))) => {
                        self.not_entered(&error, false);
                        Ok(())
                    }
                    // A task that panicked has already printed its message.
                    Ok(Err(_)) => Ok(()),
                    Err(stop) => {
                        task.abort();
                        self.not_entered(&self.left.text(stop).unwrap_or_default(), true);
                        Err(stop)
                    }
                },
            };
            self.lines.json("}");
            stopped?;
        }
        self.lines.flush()
    }

    /// Prints that a context could not be entered.
    fn not_entered(&mut self, why: &str, is_end: bool) {
        self.whole = false;
        let text = serde_json::to_string(why).unwrap_or_default();
        self.lines.json(&format!(r#"{{"bindings":[],"missing":{text}}}"#));
        self.missing(why, is_end);
    }
}

/// Contexts that are being queried. Dropping it aborts pending queries.
#[derive(Default)]
struct Ahead(VecDeque<Opening>);

impl Drop for Ahead {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Queries a context and its first page.
async fn open(names: Naming, name: String, lists: bool, asking: Arc<Semaphore>) -> Result<Opened, String> {
    let _permit = asking.acquire().await.map_err(|error| error.to_string())?;
    let said = |error: &dyn std::fmt::Display| in_options(&error.to_string()).into_owned();
    let names = names.enter(&name).await.map_err(|error| said(&error))?;
    let mut listing = names.list();
    let mut first = None;
    if lists {
        let page = listing.page().await.map_err(|error| said(&error))?;
        if page.iter().map(|(name, _)| name.len() + size_of::<(String, BindingType)>()).sum::<usize>() <= KEPT
        {
            first = Some(page);
        } else {
            listing.close().await;
            listing = names.list();
        }
    }
    Ok(Opened { names, listing, first })
}

/// Hosts and ports.
type Addresses = Vec<(String, u16)>;

/// The visited contexts, by their keys, each with its addresses. Needed because contexts can be bound in
/// cycles.
#[derive(Default)]
struct Seen {
    contexts: HashMap<Box<[u8]>, Vec<Addresses>>,
    bytes: usize,
}

impl Seen {
    /// Adds a context. Returns whether it is new; `None` if the memory limit is exceeded.
    fn insert(&mut self, context: &NamingContextRef) -> Option<bool> {
        let ior = context.ior();
        let (key, addresses) = match ior.iiop_profile() {
            Some(profile) => (profile.object_key.as_slice().into(), profile.addresses()),
            None => (ior.to_string().into_bytes().into_boxed_slice(), vec![(String::new(), 0)]),
        };
        self.insert_at(key, addresses)
    }

    fn insert_at(&mut self, key: Box<[u8]>, addresses: Addresses) -> Option<bool> {
        let same = self.contexts.get(&key);
        if same.is_some_and(|all| all.iter().flatten().any(|one| addresses.contains(one))) {
            return Some(false);
        }
        let hosts: usize = addresses.iter().map(|(host, _)| host.len() + size_of::<(String, u16)>()).sum();
        self.bytes += key.len() + hosts + 2 * size_of::<Vec<u8>>();
        if self.bytes > MAX_SEEN {
            return None;
        }
        self.contexts.entry(key).or_default().push(addresses);
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_known_again_by_key_and_one_address() {
        let mut seen = Seen::default();
        let at = |hosts: &[&str]| hosts.iter().map(|host| ((*host).to_owned(), 1)).collect::<Vec<_>>();
        assert_eq!(seen.insert_at(b"a"[..].into(), at(&["one", "two"])), Some(true));
        assert_eq!(seen.insert_at(b"a"[..].into(), at(&["two"])), Some(false));
        assert_eq!(seen.insert_at(b"a"[..].into(), at(&["three"])), Some(true));
        assert_eq!(seen.insert_at(b"b"[..].into(), at(&["one"])), Some(true));
        seen.bytes = MAX_SEEN;
        assert_eq!(seen.insert_at(b"c"[..].into(), at(&["one"])), None);
    }
}
