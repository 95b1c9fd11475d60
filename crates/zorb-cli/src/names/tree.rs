//! `zorb names tree`: prints all names below a context. They are printed while they are read.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use zorb::cos_naming::{BindingType, Listing, Naming, NamingContextRef};
use zorb::prelude::*;

use super::lines::ListWriter;
use super::list_limits::{RemainingLimits, StopReason};
use crate::failure::Verdict;
use crate::limits::replace_library_options;
use crate::output::{Node, Output, Tone};

/// The maximum number of contexts that are queried concurrently. If several contexts do not
/// answer, they together take the time of one timeout.
const MAX_PREFETCHED_CONTEXTS: usize = 32;
/// The maximum size of the first page of a prefetched context. A larger page is requested again.
const MAX_PREFETCHED_BYTES: usize = 64 << 10;
/// The maximum total size of the keys and addresses of visited contexts.
const MAX_VISITED_BYTES: usize = 64 << 20;

const ALREADY_LISTED: &str = "already listed: the context is bound in a cycle, or has several names";

type Page = Vec<(String, BindingType)>;

struct OpenContext {
    naming: Naming,
    listing: Listing,
    /// The first page, if it was prefetched and was not too large.
    first_page: Option<Page>,
}

type PrefetchTask = JoinHandle<Result<OpenContext, String>>;

struct TreePrinter<'a, W: Write> {
    max_depth: u32,
    remaining: &'a mut RemainingLimits,
    lines: &'a mut ListWriter<W>,
    visited: VisitedContexts,
    prefetch_slots: Arc<Semaphore>,
    is_complete: bool,
    /// True if the reason for an early end was already printed.
    is_end_printed: bool,
}

pub(super) async fn run(
    naming: Naming,
    depth: u32,
    mut remaining: RemainingLimits,
    output: &Output,
) -> anyhow::Result<Verdict> {
    let mut lines = ListWriter::new(output);
    let mut printer = TreePrinter {
        max_depth: depth,
        remaining: &mut remaining,
        lines: &mut lines,
        visited: VisitedContexts::default(),
        prefetch_slots: Arc::new(Semaphore::new(MAX_PREFETCHED_CONTEXTS)),
        is_complete: true,
        is_end_printed: false,
    };
    let listing = naming.list();
    let result = printer.print_context(OpenContext { naming, listing, first_page: None }, 0).await;
    let is_complete = printer.is_complete && result.is_ok();
    lines.finish()?;
    // A reader that closes the pipe early is not a failure.
    Ok(if is_complete || result == Err(StopReason::Closed) { Verdict::Good } else { Verdict::Bad })
}

impl<W: Write> TreePrinter<'_, W> {
    /// Prints a context. Closes its list even after an error.
    fn print_context(
        &mut self,
        context: OpenContext,
        level: u32,
    ) -> Pin<Box<dyn Future<Output = Result<(), StopReason>> + '_>> {
        Box::pin(async move {
            self.lines.write_json(r#"{"bindings":"#);
            self.lines.begin_list();
            let result = self.print_pages(context, level).await;
            self.lines.end_list();
            let reason = match &result {
                Ok(None) => None,
                Ok(Some(reason)) => Some(reason.clone()),
                Err(stop) => self.remaining.message(*stop),
            };
            if let Some(reason) = reason {
                self.is_complete &= reason == ALREADY_LISTED;
                let text = serde_json::to_string(&reason).unwrap_or_default();
                self.lines.write_json(&format!(r#","missing":{text}"#));
                self.print_omission(&reason, result.is_err());
            }
            self.lines.write_json("}");
            result.map(drop)
        })
    }

    /// Prints the reason why names are missing at this position, if the output is text. If the reason ends
    /// the whole output (`is_end`), it is printed only once.
    fn print_omission(&mut self, reason: &str, is_end: bool) {
        if !std::mem::replace(&mut self.is_end_printed, is_end) {
            self.lines.write_nested_node(&Node::new("...", reason).tone(Tone::Doubtful));
        }
    }

    /// Prints the bindings of a context. Returns the reason if the context cannot be printed completely.
    async fn print_pages(&mut self, context: OpenContext, level: u32) -> Result<Option<String>, StopReason> {
        let OpenContext { naming, mut listing, mut first_page } = context;
        if let Some(reason) = self.omission_reason(naming.context(), level) {
            return Ok(Some(reason));
        }
        let stop = loop {
            let mut page = match first_page.take() {
                Some(page) => page,
                None if listing.is_done() => return Ok(None),
                None => match self.remaining.within(listing.page()).await {
                    Ok(Ok(page)) => page,
                    Ok(Err(error)) => {
                        return Ok(Some(replace_library_options(&error.to_string()).into_owned()));
                    }
                    Err(stop) => break stop,
                },
            };
            page.sort_by(|a, b| a.0.cmp(&b.0));
            let count = self.remaining.count_page(page.len());
            if let Err(stop) = self.print_page(&naming, page, level).await.and(count) {
                break stop;
            }
        };
        // Let the service release its iterator. If this fails, a timeout releases it.
        let _ = self.remaining.within(listing.close()).await;
        Err(stop)
    }

    /// Records a context as visited. Returns the reason if it must not be listed.
    fn omission_reason(&mut self, context: &NamingContextRef, level: u32) -> Option<String> {
        match self.visited.insert(context) {
            Some(true) if level >= self.max_depth => {
                Some(format!("only {level} levels are listed (--depth)"))
            }
            Some(true) => None,
            Some(false) => Some(ALREADY_LISTED.to_owned()),
            None => {
                Some(format!("the references of contexts take more than {} MiB", MAX_VISITED_BYTES >> 20))
            }
        }
    }

    async fn print_page(&mut self, naming: &Naming, page: Page, level: u32) -> Result<(), StopReason> {
        let context_names: Vec<String> = page
            .iter()
            .filter(|(_, kind)| *kind == BindingType::Ncontext)
            .map(|(name, _)| name.clone())
            .collect();
        let mut context_names = context_names.into_iter();
        let mut prefetched = PrefetchQueue::default();
        for (name, kind) in page {
            self.remaining.count_binding()?;
            while prefetched.0.len() < MAX_PREFETCHED_CONTEXTS
                && let Some(next) = context_names.next()
            {
                let with_page = level + 1 < self.max_depth;
                let slots = Arc::clone(&self.prefetch_slots);
                prefetched.0.push_back(tokio::spawn(prefetch(naming.clone(), next, with_page, slots)));
            }
            if kind == BindingType::Nobject {
                self.lines.write_item(&serde_json::json!({ "name": name }), || Node::new(&name, ""));
                continue;
            }
            let text = serde_json::to_string(&name).unwrap_or_default();
            self.lines.begin_nested_item(&format!(r#"{{"name":{text},"context":"#), || {
                Node::new(format!("{name}/"), "")
            });
            self.lines.flush()?;
            let result = match prefetched.0.pop_front() {
                None => Ok(()),
                Some(mut task) => match self.remaining.within(&mut task).await {
                    Ok(Ok(Ok(context))) => self.print_context(context, level + 1).await,
                    Ok(Ok(Err(error))) => {
                        self.print_unread_context(&error, false);
                        Ok(())
                    }
                    // A task that panicked has already printed its message.
                    Ok(Err(_)) => Ok(()),
                    Err(stop) => {
                        task.abort();
                        self.print_unread_context(&self.remaining.message(stop).unwrap_or_default(), true);
                        Err(stop)
                    }
                },
            };
            self.lines.write_json("}");
            result?;
        }
        self.lines.flush()
    }

    fn print_unread_context(&mut self, reason: &str, is_end: bool) {
        self.is_complete = false;
        let text = serde_json::to_string(reason).unwrap_or_default();
        self.lines.write_json(&format!(r#"{{"bindings":[],"missing":{text}}}"#));
        self.print_omission(reason, is_end);
    }
}

/// The tasks that prefetch contexts, in the order of the output. Dropping the queue aborts the tasks.
#[derive(Default)]
struct PrefetchQueue(VecDeque<PrefetchTask>);

impl Drop for PrefetchQueue {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Resolves a context. If `with_page` is true, also requests its first page.
async fn prefetch(
    naming: Naming,
    name: String,
    with_page: bool,
    slots: Arc<Semaphore>,
) -> Result<OpenContext, String> {
    let _slot = slots.acquire().await.map_err(|error| error.to_string())?;
    let message = |error: &dyn std::fmt::Display| replace_library_options(&error.to_string()).into_owned();
    let naming = naming.enter(&name).await.map_err(|error| message(&error))?;
    let mut listing = naming.list();
    let mut first_page = None;
    if with_page {
        let page = listing.page().await.map_err(|error| message(&error))?;
        let sizes = page.iter().map(|(name, _)| name.len() + size_of::<(String, BindingType)>());
        if sizes.sum::<usize>() <= MAX_PREFETCHED_BYTES {
            first_page = Some(page);
        } else {
            listing.close().await;
            listing = naming.list();
        }
    }
    Ok(OpenContext { naming, listing, first_page })
}

type Addresses = Vec<(String, u16)>;

/// The visited contexts. They are recorded because contexts can be bound in cycles.
#[derive(Default)]
struct VisitedContexts {
    /// For each object key, the addresses of the contexts with this key.
    contexts: HashMap<Box<[u8]>, Vec<Addresses>>,
    bytes: usize,
}

impl VisitedContexts {
    /// Adds a context. Returns whether it is new, or `None` if too much memory would be needed.
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
        if self.bytes > MAX_VISITED_BYTES {
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
    fn contexts_with_the_same_key_and_one_common_address_are_the_same() {
        let mut visited = VisitedContexts::default();
        let at = |hosts: &[&str]| hosts.iter().map(|host| ((*host).to_owned(), 1)).collect::<Vec<_>>();
        assert_eq!(visited.insert_at(b"a"[..].into(), at(&["one", "two"])), Some(true));
        assert_eq!(visited.insert_at(b"a"[..].into(), at(&["two"])), Some(false));
        assert_eq!(visited.insert_at(b"a"[..].into(), at(&["three"])), Some(true));
        assert_eq!(visited.insert_at(b"b"[..].into(), at(&["one"])), Some(true));
        visited.bytes = MAX_VISITED_BYTES;
        assert_eq!(visited.insert_at(b"c"[..].into(), at(&["one"])), None);
    }
}
