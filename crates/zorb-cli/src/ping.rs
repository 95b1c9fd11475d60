//! `zorb ping`: tests whether an object exists, what it is, and how long it takes to answer.

use std::future::Future;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use tokio::time::sleep;
use zorb::dynamic::{DynamicException, Request};
use zorb::prelude::*;
use zorb::{CompletionStatus, MinorCode, SystemExceptionKind, Typed};

use crate::call::repository_id;
use crate::client::{Client, block_on};
use crate::failure::of_exception;
use crate::limits::in_options;
use crate::login::Login;
use crate::output::{Node, Output, Tone, told};
use crate::{Verdict, options, target};

#[derive(Debug, Args)]
pub(crate) struct PingArgs {
    /// IOR:, corbaloc:, corbaname:, file:, a file that holds one, or - for standard input
    #[arg(value_name = "REFERENCE")]
    target: String,
    /// Calls to measure
    #[arg(short, long, value_name = "CALLS", default_value_t = 5)]
    count: u32,
    /// Time between them
    #[arg(short, long, value_name = "TIME", default_value = "200ms", value_parser = options::duration)]
    interval: Duration,
    /// Ask whether the object has this interface, by its repository id or as Module::Interface (default: the
    /// interface of its reference)
    #[arg(long = "type", value_name = "INTERFACE")]
    type_id: Option<String>,
    #[command(flatten)]
    login: Login,
    #[command(flatten)]
    client: Client,
}

/// The answers of an object.
#[derive(Debug, Serialize)]
struct Report {
    reference: String,
    type_id: String,
    /// The result of LocateRequest, including the time to connect.
    locate: Said<bool>,
    /// Whether the object has the requested interface; missing if none was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_a: Option<IsA>,
    non_existent: Said<bool>,
    /// The round-trip time of each answered call in microseconds.
    round_trips_us: Vec<u64>,
    lost: u32,
    /// The reason why the first of the lost calls failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct IsA {
    type_id: String,
    #[serde(flatten)]
    said: Said<bool>,
}

/// An answer, or the reason why there is none.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Said<T> {
    Answer { value: T, us: u64 },
    Error(Failed),
}

/// The reason why there is no answer.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
struct Failed {
    text: String,
    /// The verdict about the object that follows from it.
    #[serde(skip)]
    verdict: Option<Verdict>,
}

impl<T> Said<T> {
    async fn of(asked: impl Future<Output = Result<T, SystemException>>) -> Self {
        let start = Instant::now();
        match asked.await {
            Ok(value) => Self::Answer { value, us: micros(start) },
            Err(error) => Self::Error(Failed {
                text: in_options(&error.to_string()).into_owned(),
                verdict: Some(of_exception(&error)),
            }),
        }
    }

    fn node(&self, name: &str, good: impl Fn(&T) -> (&'static str, bool)) -> Node {
        match self {
            Self::Answer { value, us } => {
                let (text, is_good) = good(value);
                let tone = if is_good { Tone::Good } else { Tone::Bad };
                Node::new(name, format!("{text} ({})", shown(*us))).tone(tone)
            }
            Self::Error(error) => Node::new(name, &error.text).tone(Tone::Bad),
        }
    }

    fn is(&self, wanted: impl Fn(&T) -> bool) -> bool {
        matches!(self, Self::Answer { value, .. } if wanted(value))
    }
}

fn micros(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
}

fn shown(us: u64) -> String {
    if us < 1_000 { format!("{us} us") } else { format!("{:.2} ms", us as f64 / 1e3) }
}

/// Tests the object, and prints the answers.
///
/// # Errors
/// The reference cannot be read or resolved, or output fails.
pub(crate) fn run(args: &PingArgs, output: &Output) -> anyhow::Result<Verdict> {
    let url = target::read(&args.target)?.to_string();
    let credentials = args.login.credentials()?;
    let report = block_on(async {
        let orb = args.client.orb_as(credentials).await?;
        let object: ObjectRef = orb.resolve_unchecked(&url).await?;
        let report = tokio::select! {
            report = ask(&object, args) => report,
            interrupt = tokio::signal::ctrl_c() => {
                interrupt?;
                anyhow::bail!("interrupted")
            }
        };
        orb.shutdown().await;
        Ok(report)
    })?;
    output.show(&report, Report::tree)?;
    Ok(report.verdict())
}

async fn ask(object: &ObjectRef, args: &PingArgs) -> Report {
    let reference = object.to_string();
    let type_id = object.repository_id().to_owned();
    let locate = Said::of(object.locate()).await;
    let wanted =
        args.type_id.as_deref().map(repository_id).or_else(|| (!type_id.is_empty()).then(|| type_id.clone()));
    let mut report = Report {
        reference,
        type_id,
        locate,
        is_a: None,
        non_existent: Said::Error(Failed { text: "not asked".to_owned(), verdict: None }),
        round_trips_us: Vec::new(),
        lost: 0,
        error: None,
    };
    if let Said::Error(error) = &report.locate {
        report.non_existent = Said::Error(error.clone());
        return report;
    }
    if let Some(wanted) = wanted {
        let said = Said::of(is_a(object, &wanted)).await;
        report.is_a = Some(IsA { type_id: wanted, said });
    }
    report.non_existent = Said::of(object.non_existent()).await;
    for call in 0..args.count {
        if call > 0 {
            sleep(args.interval).await;
        }
        match Said::of(object.non_existent()).await {
            Said::Answer { us, .. } => report.round_trips_us.push(us),
            Said::Error(error) => {
                report.lost += 1;
                report.error.get_or_insert(error.text);
            }
        }
    }
    report
}

/// Asks the object itself, because [`Reference::is_a`] trusts the type in the reference.
async fn is_a(object: &ObjectRef, type_id: &str) -> Result<bool, SystemException> {
    let request = Request::new(object, "_is_a").input("logical_type_id", type_id.to_owned())?;
    match request.returns(bool::type_code()).invoke().await {
        Ok(answered) => answered.get(),
        Err(DynamicException::System(error)) => Err(error),
        // The operation declares no user exceptions, so any is UNKNOWN.
        Err(other) => {
            Err(SystemException::new(SystemExceptionKind::Unknown, MinorCode::NONE, CompletionStatus::Yes)
                .because(other.to_string()))
        }
    }
}

impl Report {
    fn verdict(&self) -> Verdict {
        let good = self.lost == 0
            && self.locate.is(|there| *there)
            && self.non_existent.is(|gone| !gone)
            && self.is_a.as_ref().is_none_or(|is_a| is_a.said.is(|is| *is));
        match &self.locate {
            // The object was not reached, so its answer is unknown.
            Said::Error(Failed { verdict: Some(verdict), .. }) => *verdict,
            _ if good => Verdict::Good,
            _ => Verdict::Bad,
        }
    }

    fn tree(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        let id = if self.type_id.is_empty() { "not said".to_owned() } else { told(&self.type_id) };
        nodes.push(Node::new("type", id).tone(Tone::Head));
        nodes.push(self.locate.node("locate", |there| match there {
            true => ("the object is there", true),
            false => ("the server does not have the object", false),
        }));
        if let Said::Error(_) = self.locate {
            return nodes;
        }
        nodes.extend(self.is_a.as_ref().map(|is_a| {
            let name = if is_a.type_id == self.type_id {
                "is_a".to_owned()
            } else {
                format!("is_a {}", told(&is_a.type_id))
            };
            is_a.said
                .node(&name, |is| if *is { ("yes", true) } else { ("no: it has another interface", false) })
        }));
        nodes.push(self.non_existent.node("non_existent", |gone| match gone {
            true => ("yes: it is gone for good", false),
            false => ("no", true),
        }));
        let mut sorted = self.round_trips_us.clone();
        sorted.sort_unstable();
        if let (Some(least), Some(most)) = (sorted.first(), sorted.last()) {
            let median = sorted.get(sorted.len() / 2).copied().unwrap_or(*most);
            let line = format!(
                "{} answered, {} lost: min {}, median {}, max {}",
                sorted.len(),
                self.lost,
                shown(*least),
                shown(median),
                shown(*most)
            );
            let each: Vec<String> = self.round_trips_us.iter().map(|us| shown(*us)).collect();
            let tone = if self.lost == 0 { Tone::Good } else { Tone::Doubtful };
            nodes.push(Node::new("round trips", line).tone(tone).under([Node::new("each", each.join(", "))]));
        }
        nodes.extend(self.error.as_ref().map(|error| Node::new("lost", error).tone(Tone::Bad)));
        nodes
    }
}
