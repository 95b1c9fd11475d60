//! `zorb names watch`: prints changes of the names of any naming service, by polling it.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use cos_naming::zorb_naming::BalancedContextRef;
use cos_naming::zorb_naming::balanced_context::MembersError;
use giop_codec::OneLine;
use serde::Serialize;
use tokio::task::JoinSet;
use zorb::cos_naming::{BindingType, Naming, NamingError, parse_name};
use zorb::prelude::*;

use crate::failure::Verdict;
use crate::options;
use crate::output::{Output, escaped_json};

const MAX_CONCURRENT_CALLS: usize = 16;

/// The maximum duration of a scan of all names, as a multiple of the call timeout. A longer `--interval`
/// replaces it.
const SCAN_TIMEOUT_FACTOR: u32 = 12;

/// Options of `zorb names watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The context below which names are watched (default: the root context)
    #[arg(value_name = "NAME")]
    pub(super) name: Option<String>,
    /// The pause between two scans of all names
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = options::duration)]
    interval: Duration,
    /// The maximum number of levels of nested contexts
    #[arg(long, value_name = "LEVELS", default_value_t = 16)]
    depth: u32,
    /// The maximum number of names that are watched
    #[arg(long = "most", value_name = "NAMES", default_value_t = 10_000)]
    max_names: usize,
}

/// What a name is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Binding {
    Context,
    /// The reference of an object, or `None` if it is unknown or nil.
    Object(Option<String>),
    /// A group, with the text of its members. Only the naming service of zorb has groups.
    Group(String),
}

#[derive(Debug, Default)]
struct Scan {
    names: BTreeMap<String, Binding>,
    /// Contexts that could not be read. Their previous content is assumed to be unchanged.
    unread: Vec<String>,
    /// True if names were omitted because of `--most` or `--depth`.
    is_truncated: bool,
}

/// A line of the output. The names of variants and fields are the JSON keys.
#[derive(Debug, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
enum Line<'a> {
    Watching {
        names: usize,
    },
    Bound {
        name: &'a str,
        context: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        reference: Option<&'a str>,
    },
    Unbound {
        name: &'a str,
        context: bool,
    },
    Rebound {
        name: &'a str,
        context: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        reference: Option<&'a str>,
    },
    Away {
        error: &'a str,
    },
    Back,
}

impl Line<'_> {
    fn text(&self) -> String {
        let slash = |context: &bool| if *context { "/" } else { "" };
        let to = |reference: &Option<&str>| reference.map(|text| format!("  {text}")).unwrap_or_default();
        match self {
            Self::Watching { names } => format!("watching {names} names"),
            Self::Bound { name, context, reference } => {
                format!("bound    {name}{}{}", slash(context), to(reference))
            }
            Self::Unbound { name, context } => format!("unbound  {name}{}", slash(context)),
            Self::Rebound { name, context, reference } => {
                format!("rebound  {name}{}{}", slash(context), to(reference))
            }
            Self::Away { error } => format!("cannot read the names, retrying: {error}"),
            Self::Back => "the names can be read again".to_owned(),
        }
    }
}

pub(super) async fn run(
    names: &Naming,
    args: &WatchArgs,
    timeout: Duration,
    output: &Output,
) -> anyhow::Result<Verdict> {
    let signal = crate::client::termination_signal()?;
    tokio::pin!(signal);
    let closed = output_closed()?;
    tokio::pin!(closed);
    let watch = Watch {
        names: names.clone(),
        groups: names.context().narrow().await.ok(),
        max_depth: args.depth,
        max_names: args.max_names,
        max_scan_time: timeout.saturating_mul(SCAN_TIMEOUT_FACTOR).max(args.interval),
    };
    let work = async {
        let mut before = watch.scan(&BTreeMap::new()).await?;
        if before.is_truncated {
            output.remark("some names are not watched (--most, --depth)");
        }
        if !write_line(output, &Line::Watching { names: before.names.len() })? {
            return Ok(());
        }
        let mut is_unavailable = false;
        loop {
            tokio::time::sleep(args.interval).await;
            match watch.scan(&before.names).await {
                Ok(now) => {
                    let was_unavailable = std::mem::take(&mut is_unavailable);
                    if was_unavailable && !write_line(output, &Line::Back)? {
                        return Ok(());
                    }
                    let now = now.with_unread_names(&before);
                    for line in differences(&before.names, &now.names) {
                        if !write_line(output, &line)? {
                            return Ok(());
                        }
                    }
                    before = now;
                }
                Err(error) => {
                    if !std::mem::replace(&mut is_unavailable, true)
                        && !write_line(output, &Line::Away { error: &format!("{error:#}") })?
                    {
                        return Ok(());
                    }
                }
            }
        }
    };
    tokio::select! {
        result = work => result.map(|()| Verdict::Good),
        () = &mut signal => Ok(Verdict::Good),
        () = &mut closed => Ok(Verdict::Good),
    }
}

/// Writes a line. Returns false if standard output is closed.
fn write_line(output: &Output, line: &Line<'_>) -> anyhow::Result<bool> {
    match (output.is_json, line) {
        (true, _) => output.write(&(escaped_json(&serde_json::to_string(line)?) + "\n")),
        // In text output, only changes go to standard output.
        (false, Line::Watching { .. } | Line::Away { .. } | Line::Back) => {
            output.remark(&line.text());
            Ok(true)
        }
        (false, _) => output.write(&format!("{}\n", OneLine::new(&line.text()).whole())),
    }
}

/// Completes when standard output is closed, even if no name changes and nothing is written.
fn output_closed() -> anyhow::Result<impl Future<Output = ()>> {
    let (close, closed) = tokio::sync::oneshot::channel::<()>();
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, poll};
        let thread = std::thread::Builder::new().name("zorb-watch".to_owned());
        let thread = thread.spawn(move || {
            let out = io::stdout();
            // poll(2) always reports errors and hang-ups. It never returns if standard output is a file.
            let mut descriptors = [PollFd::new(&out, PollFlags::empty())];
            while poll(&mut descriptors, None).is_err_and(|error| error == rustix::io::Errno::INTR) {}
            let _ = close.send(());
        });
        thread.context("cannot start the thread that observes standard output")?;
    }
    Ok(async move {
        if closed.await.is_err() {
            std::future::pending().await
        }
    })
}

fn differences<'a>(
    before: &'a BTreeMap<String, Binding>,
    now: &'a BTreeMap<String, Binding>,
) -> Vec<Line<'a>> {
    let is_context = |bound: &Binding| *bound == Binding::Context;
    let reference = |bound: &'a Binding| match bound {
        Binding::Object(reference) => reference.as_deref(),
        Binding::Context | Binding::Group(_) => None,
    };
    let unbound = before.iter().filter(|(name, _)| !now.contains_key(*name));
    let mut lines: Vec<Line<'a>> =
        unbound.map(|(name, bound)| Line::Unbound { name, context: is_context(bound) }).collect();
    for (name, bound) in now {
        let (context, reference) = (is_context(bound), reference(bound));
        match before.get(name) {
            None => lines.push(Line::Bound { name, context, reference }),
            // The first scan does not recognize groups. The name may have been bound to one before.
            Some(Binding::Object(_)) if matches!(bound, Binding::Group(_)) => {}
            Some(other) if other != bound => lines.push(Line::Rebound { name, context, reference }),
            Some(_) => {}
        }
    }
    lines
}

impl Scan {
    /// Adds the names of an earlier scan that this scan could not read. They are assumed to be unchanged.
    fn with_unread_names(mut self, before: &Self) -> Self {
        for (name, bound) in &before.names {
            let is_below = |context: &String| {
                name.strip_prefix(context.as_str()).is_some_and(|rest| rest.starts_with('/'))
            };
            if !self.names.contains_key(name) && (self.is_truncated || self.unread.iter().any(is_below)) {
                self.names.insert(name.clone(), bound.clone());
            }
        }
        self
    }
}

struct Watch {
    names: Naming,
    /// The context with the interface for groups, or `None` if the service has no groups.
    groups: Option<BalancedContextRef>,
    max_depth: u32,
    max_names: usize,
    max_scan_time: Duration,
}

impl Watch {
    async fn scan(&self, before: &BTreeMap<String, Binding>) -> anyhow::Result<Scan> {
        let scan = tokio::time::timeout(self.max_scan_time, self.scan_without_timeout(before)).await;
        scan.with_context(|| {
            format!("the service needs more than {:?} to list its names (--timeout)", self.max_scan_time)
        })?
    }

    async fn scan_without_timeout(&self, before: &BTreeMap<String, Binding>) -> anyhow::Result<Scan> {
        let mut scan = Scan::default();
        // Visited contexts are recorded, because contexts can be bound in cycles.
        let mut visited = HashSet::from([self.names.context().as_object().to_string()]);
        let mut contexts = vec![(String::new(), self.names.clone(), 0)];
        let mut objects = Vec::new();
        while let Some((path, names, level)) = contexts.pop() {
            let mut listing = names.list();
            loop {
                let page = match listing.page().await {
                    Ok(page) => page,
                    Err(error) if path.is_empty() => return Err(error.into()),
                    // The context was destroyed during the scan.
                    Err(error) if error.kind == SystemExceptionKind::ObjectNotExist => break,
                    Err(_) => {
                        scan.unread.push(path.clone());
                        break;
                    }
                };
                if page.is_empty() {
                    break;
                }
                for (name, kind) in page {
                    if scan.names.len() >= self.max_names {
                        scan.is_truncated = true;
                        break;
                    }
                    let full_name = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
                    if kind == BindingType::Nobject {
                        scan.names.insert(full_name.clone(), Binding::Object(None));
                        objects.push(full_name);
                        continue;
                    }
                    scan.names.insert(full_name.clone(), Binding::Context);
                    if level + 1 >= self.max_depth {
                        scan.is_truncated = true;
                        continue;
                    }
                    match names.enter(&name).await {
                        Ok(context) if visited.insert(context.context().as_object().to_string()) => {
                            contexts.push((full_name, context, level + 1));
                        }
                        Ok(_) | Err(NamingError::NotFound { .. }) => {}
                        Err(_) => scan.unread.push(full_name),
                    }
                }
                if scan.names.len() >= self.max_names {
                    scan.is_truncated = true;
                    break;
                }
            }
        }
        for chunk in objects.chunks(MAX_CONCURRENT_CALLS) {
            let mut tasks = JoinSet::new();
            for name in chunk {
                let (names, groups) = (self.names.clone(), self.groups.clone());
                let (name, previous) = (name.clone(), before.get(name).cloned());
                tasks.spawn(async move {
                    (current_binding(&names, groups.as_ref(), &name, previous).await, name)
                });
            }
            while let Some(result) = tasks.join_next().await {
                match result? {
                    (Some(bound), name) => drop(scan.names.insert(name, bound)),
                    (None, name) => drop(scan.names.remove(&name)),
                }
            }
        }
        Ok(scan)
    }
}

/// Returns the current binding of a name, or `None` if it is unbound. `previous` is the last known one.
async fn current_binding(
    names: &Naming,
    groups: Option<&BalancedContextRef>,
    name: &str,
    previous: Option<Binding>,
) -> Option<Binding> {
    if matches!(previous, Some(Binding::Group(_)))
        && let Some(Ok(members)) = members(groups, name).await
    {
        return Some(Binding::Group(members));
    }
    let found = match names.resolve::<ObjectRef>(name).await {
        Ok(object) => Binding::Object(Some(object.to_string())),
        Err(NamingError::NotFound { .. }) => return None,
        Err(NamingError::Nil(_)) => Binding::Object(None),
        // The binding is unknown. Return the previous one, so that no change is reported.
        Err(_) => return Some(previous.unwrap_or(Binding::Object(None))),
    };
    // The name of a group can resolve to a different member each time. This is not a change.
    if previous.as_ref().is_some_and(|previous| *previous != found)
        && let Some(Ok(members)) = members(groups, name).await
    {
        return Some(Binding::Group(members));
    }
    Some(found)
}

/// Returns the members of a group as one text, or `None` if the service has no groups.
async fn members(groups: Option<&BalancedContextRef>, name: &str) -> Option<Result<String, MembersError>> {
    let name = parse_name(name).ok()?;
    let found = groups?.members(&name).await;
    Some(found.map(|members| {
        let target =
            |target: &Option<ObjectRef>| target.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut all: Vec<String> =
            members.iter().map(|member| format!("{}={}", member.name, target(&member.target))).collect();
        all.sort();
        all.join(" ")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[(&str, Binding)]) -> BTreeMap<String, Binding> {
        all.iter().map(|(name, bound)| ((*name).to_owned(), bound.clone())).collect()
    }

    fn object(text: &str) -> Binding {
        Binding::Object(Some(text.to_owned()))
    }

    #[test]
    fn changes_are_the_differences_between_two_scans() {
        let before =
            names(&[("a", object("1")), ("b", object("1")), ("c", Binding::Context), ("g", object("1"))]);
        let group = Binding::Group("m=1 n=2".to_owned());
        let now =
            names(&[("a", object("2")), ("c", Binding::Context), ("d", Binding::Context), ("g", group)]);
        let lines: Vec<_> = differences(&before, &now).iter().map(Line::text).collect();
        assert_eq!(lines, ["unbound  b", "rebound  a  2", "bound    d/"]);
    }

    #[test]
    fn names_that_were_not_read_are_assumed_to_be_unchanged() {
        let before = Scan {
            names: names(&[("a", object("1")), ("c/x", object("1")), ("cc/y", object("1"))]),
            ..Scan::default()
        };
        let now = Scan { unread: vec!["c".to_owned()], ..Scan::default() };
        assert_eq!(now.with_unread_names(&before).names, names(&[("c/x", object("1"))]));
        let truncated = Scan { is_truncated: true, ..Scan::default() };
        assert_eq!(truncated.with_unread_names(&before).names.len(), 3);
    }
}
