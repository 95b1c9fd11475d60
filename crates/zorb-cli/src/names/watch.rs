//! `zorb names watch`: prints changes of names, for any naming service.

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

use crate::output::{Output, escaped_json};
use crate::{Verdict, options};

/// Maximum number of names that are resolved concurrently.
const TOGETHER: usize = 16;

/// Maximum duration of a scan of all names, in call timeouts, so that a slow service cannot block it forever.
const CALLS: u32 = 12;

/// Options of `zorb names watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The context below which names are watched; without it the first one
    #[arg(value_name = "NAME")]
    pub(super) name: Option<String>,
    /// How long after a look at all names the next one begins
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = options::duration)]
    interval: Duration,
    /// Contexts within each other that are entered
    #[arg(long, value_name = "LEVELS", default_value_t = 16)]
    depth: u32,
    /// The most names that are watched
    #[arg(long, value_name = "NAMES", default_value_t = 10_000)]
    most: usize,
}

/// The object that a name is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Bound {
    Context,
    /// An object, by its reference; `None` if it is unknown or nil.
    Object(Option<String>),
    /// A group of zorb, by its members.
    Group(String),
}

/// All names at one time.
#[derive(Debug, Default)]
struct Look {
    names: BTreeMap<String, Bound>,
    /// Contexts that could not be read. Their previous content is assumed to be unchanged.
    unread: Vec<String>,
    /// There are more or deeper names than are watched.
    is_cut: bool,
}

/// A line of the output.
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
            Self::Away { error } => format!("the names can not be read, which is tried again: {error}"),
            Self::Back => "the names can be read again".to_owned(),
        }
    }
}

/// Prints changes until a signal arrives or the output is closed.
///
/// # Errors
/// The first scan fails, or output fails.
pub(super) async fn run(
    names: &Naming,
    args: &WatchArgs,
    timeout: Duration,
    output: &Output,
) -> anyhow::Result<Verdict> {
    let over = crate::client::ended()?;
    tokio::pin!(over);
    let closed = closed()?;
    tokio::pin!(closed);
    let watch = Watch {
        names: names.clone(),
        groups: names.context().narrow().await.ok(),
        depth: args.depth,
        most: args.most,
        time: timeout.saturating_mul(CALLS).max(args.interval),
    };
    let work = async {
        let mut before = watch.look(&BTreeMap::new()).await?;
        if before.is_cut {
            output.remark("there are names that are not watched (--most, --depth)");
        }
        if !tell(output, &Line::Watching { names: before.names.len() })? {
            return Ok(());
        }
        let mut away = false;
        loop {
            tokio::time::sleep(args.interval).await;
            match watch.look(&before.names).await {
                Ok(now) => {
                    let back = std::mem::take(&mut away);
                    if back && !tell(output, &Line::Back)? {
                        return Ok(());
                    }
                    let now = now.after(&before);
                    for line in differences(&before.names, &now.names) {
                        if !tell(output, &line)? {
                            return Ok(());
                        }
                    }
                    before = now;
                }
                Err(error) => {
                    if !std::mem::replace(&mut away, true)
                        && !tell(output, &Line::Away { error: &format!("{error:#}") })?
                    {
                        return Ok(());
                    }
                }
            }
        }
    };
    tokio::select! {
        done = work => done.map(|()| Verdict::Good),
        () = &mut over => Ok(Verdict::Good),
        () = &mut closed => Ok(Verdict::Good),
    }
}

/// Writes a line. Returns false if standard output is closed.
fn tell(output: &Output, line: &Line<'_>) -> anyhow::Result<bool> {
    match (output.is_json(), line) {
        (true, _) => output.write(&(escaped_json(&serde_json::to_string(line)?) + "\n")),
        // Lines that are not changes go to standard error, for people.
        (false, Line::Watching { .. } | Line::Away { .. } | Line::Back) => {
            output.remark(&line.text());
            Ok(true)
        }
        (false, _) => output.write(&format!("{}\n", OneLine::new(&line.text()).whole())),
    }
}

/// Completes when standard output is closed. Without changes nothing is written, so a failed write would not
/// reveal it.
///
/// # Errors
/// The system cannot create a thread.
fn closed() -> anyhow::Result<impl Future<Output = ()>> {
    let (close, closed) = tokio::sync::oneshot::channel::<()>();
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, poll};
        let thread = std::thread::Builder::new().name("zorb-watch".to_owned());
        let thread = thread.spawn(move || {
            let out = io::stdout();
            // poll(2) reports errors and hang-ups without being asked. Files have neither.
            let mut ends = [PollFd::new(&out, PollFlags::empty())];
            while poll(&mut ends, None).is_err_and(|error| error == rustix::io::Errno::INTR) {}
            let _ = close.send(());
        });
        thread.context("cannot start")?;
    }
    Ok(async move {
        if closed.await.is_err() {
            std::future::pending().await
        }
    })
}

fn differences<'a>(before: &'a BTreeMap<String, Bound>, now: &'a BTreeMap<String, Bound>) -> Vec<Line<'a>> {
    let is_context = |bound: &Bound| *bound == Bound::Context;
    let reference = |bound: &'a Bound| match bound {
        Bound::Object(reference) => reference.as_deref(),
        Bound::Context | Bound::Group(_) => None,
    };
    let gone = before.iter().filter(|(name, _)| !now.contains_key(*name));
    let mut lines: Vec<Line<'a>> =
        gone.map(|(name, bound)| Line::Unbound { name, context: is_context(bound) }).collect();
    for (name, bound) in now {
        let (context, reference) = (is_context(bound), reference(bound));
        match before.get(name) {
            None => lines.push(Line::Bound { name, context, reference }),
            // Only now it became known that this is a group.
            Some(Bound::Object(_)) if matches!(bound, Bound::Group(_)) => {}
            Some(other) if other != bound => lines.push(Line::Rebound { name, context, reference }),
            Some(_) => {}
        }
    }
    lines
}

impl Look {
    /// Adds the names of an earlier scan that this one did not reach.
    fn after(mut self, before: &Self) -> Self {
        for (name, bound) in &before.names {
            let below = |context: &String| {
                name.strip_prefix(context.as_str()).is_some_and(|rest| rest.starts_with('/'))
            };
            if !self.names.contains_key(name) && (self.is_cut || self.unread.iter().any(below)) {
                self.names.insert(name.clone(), bound.clone());
            }
        }
        self
    }
}

/// The watched service and its limits.
struct Watch {
    names: Naming,
    /// The same service if it is one of zorb, whose names can refer to several objects.
    groups: Option<BalancedContextRef>,
    depth: u32,
    most: usize,
    time: Duration,
}

impl Watch {
    /// Reads all names.
    ///
    /// # Errors
    /// The first context cannot be read, or the scan takes too long.
    async fn look(&self, before: &BTreeMap<String, Bound>) -> anyhow::Result<Look> {
        let look = tokio::time::timeout(self.time, self.walk(before)).await;
        look.with_context(|| {
            format!("the service needs more than {:?} to tell its names (--timeout)", self.time)
        })?
    }

    async fn walk(&self, before: &BTreeMap<String, Bound>) -> anyhow::Result<Look> {
        let mut look = Look::default();
        // Contexts can be bound in cycles.
        let mut seen = HashSet::from([self.names.context().as_object().to_string()]);
        let mut contexts = vec![(String::new(), self.names.clone(), 0)];
        let mut objects = Vec::new();
        while let Some((path, names, level)) = contexts.pop() {
            let mut listing = names.list();
            loop {
                let page = match listing.page().await {
                    Ok(page) => page,
                    Err(error) if path.is_empty() => return Err(error.into()),
                    // The context was destroyed between two calls.
                    Err(error) if error.kind == SystemExceptionKind::ObjectNotExist => break,
                    Err(_) => {
                        look.unread.push(path.clone());
                        break;
                    }
                };
                if page.is_empty() {
                    break;
                }
                for (name, kind) in page {
                    if look.names.len() >= self.most {
                        look.is_cut = true;
                        break;
                    }
                    let whole = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
                    if kind == BindingType::Nobject {
                        look.names.insert(whole.clone(), Bound::Object(None));
                        objects.push(whole);
                        continue;
                    }
                    look.names.insert(whole.clone(), Bound::Context);
                    if level + 1 >= self.depth {
                        look.is_cut = true;
                        continue;
                    }
                    match names.enter(&name).await {
                        Ok(inside) if seen.insert(inside.context().as_object().to_string()) => {
                            contexts.push((whole, inside, level + 1));
                        }
                        Ok(_) | Err(NamingError::NotFound { .. }) => {}
                        Err(_) => look.unread.push(whole),
                    }
                }
                if look.names.len() >= self.most {
                    look.is_cut = true;
                    break;
                }
            }
        }
        for some in objects.chunks(TOGETHER) {
            let mut asked = JoinSet::new();
            for name in some {
                let (names, groups) = (self.names.clone(), self.groups.clone());
                let (name, known) = (name.clone(), before.get(name).cloned());
                asked.spawn(async move { (bound(&names, groups.as_ref(), &name, known).await, name) });
            }
            while let Some(done) = asked.join_next().await {
                match done? {
                    (Some(bound), name) => drop(look.names.insert(name, bound)),
                    (None, name) => drop(look.names.remove(&name)),
                }
            }
        }
        Ok(look)
    }
}

/// Returns the current binding of a name; `None` if it is unbound. `known` is the previous binding.
async fn bound(
    names: &Naming,
    groups: Option<&BalancedContextRef>,
    name: &str,
    known: Option<Bound>,
) -> Option<Bound> {
    if matches!(known, Some(Bound::Group(_)))
        && let Some(Ok(members)) = members(groups, name).await
    {
        return Some(Bound::Group(members));
    }
    let found = match names.resolve::<ObjectRef>(name).await {
        Ok(object) => Bound::Object(Some(object.to_string())),
        Err(NamingError::NotFound { .. }) => return None,
        Err(NamingError::Nil(_)) => Bound::Object(None),
        // Keep the previous binding instead of reporting a change that may not exist.
        Err(_) => return Some(known.unwrap_or(Bound::Object(None))),
    };
    // A name that resolves to different objects may be a group.
    if known.as_ref().is_some_and(|known| *known != found)
        && let Some(Ok(members)) = members(groups, name).await
    {
        return Some(Bound::Group(members));
    }
    Some(found)
}

/// Returns the members of a group as one text; `None` if the service is not one of zorb.
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

    fn names(all: &[(&str, Bound)]) -> BTreeMap<String, Bound> {
        all.iter().map(|(name, bound)| ((*name).to_owned(), bound.clone())).collect()
    }

    fn object(text: &str) -> Bound {
        Bound::Object(Some(text.to_owned()))
    }

    #[test]
    fn changes_are_what_differs_between_two_looks() {
        let before =
            names(&[("a", object("1")), ("b", object("1")), ("c", Bound::Context), ("g", object("1"))]);
        let group = Bound::Group("m=1 n=2".to_owned());
        let now = names(&[("a", object("2")), ("c", Bound::Context), ("d", Bound::Context), ("g", group)]);
        let lines: Vec<_> = differences(&before, &now).iter().map(Line::text).collect();
        assert_eq!(lines, ["unbound  b", "rebound  a  2", "bound    d/"]);
    }

    #[test]
    fn what_was_not_read_is_taken_to_be_as_before() {
        let before = Look {
            names: names(&[("a", object("1")), ("c/x", object("1")), ("cc/y", object("1"))]),
            ..Look::default()
        };
        let now = Look { unread: vec!["c".to_owned()], ..Look::default() };
        assert_eq!(now.after(&before).names, names(&[("c/x", object("1"))]));
        let cut = Look { is_cut: true, ..Look::default() };
        assert_eq!(cut.after(&before).names.len(), 3);
    }
}
