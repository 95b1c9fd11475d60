//! `zorb ping`: tests whether an object exists and which interface it has, and measures its response times.

use std::future::Future;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use tokio::time::sleep;
use zorb::dynamic::{DynamicException, Request};
use zorb::prelude::*;
use zorb::{CompletionStatus, Typed};

use crate::call::repository_id;
use crate::client::{ClientOptions, block_on};
use crate::failure::{Verdict, verdict_of_exception};
use crate::limits::replace_library_options;
use crate::login::LoginOptions;
use crate::output::{Node, Output, Tone, printable};
use crate::{options, target};

#[derive(Debug, Args)]
pub(crate) struct PingArgs {
    /// The object: IOR:, corbaloc:, corbaname: or file:, a file that contains one, or - for standard input
    #[arg(value_name = "REFERENCE")]
    target: String,
    /// The number of calls to measure
    #[arg(short, long, value_name = "CALLS", default_value_t = 5)]
    count: u32,
    /// The pause between two calls
    #[arg(short, long, value_name = "TIME", default_value = "200ms", value_parser = options::duration)]
    interval: Duration,
    /// Test for this Module::Interface or repository id (default: the interface in the reference)
    #[arg(long = "type", value_name = "INTERFACE")]
    type_id: Option<String>,
    #[command(flatten)]
    login: LoginOptions,
    #[command(flatten)]
    client: ClientOptions,
}

#[derive(Debug, Serialize)]
struct Report {
    reference: String,
    type_id: String,
    /// The result of a LocateRequest. Its time includes the time to connect.
    locate: TestResult<bool>,
    /// Whether the object has the interface. `None` if it is not known which interface to test.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_a: Option<IsA>,
    non_existent: TestResult<bool>,
    /// The round-trip time of each answered call in microseconds.
    round_trips_us: Vec<u64>,
    /// The number of measured calls that failed.
    lost: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct IsA {
    type_id: String,
    #[serde(flatten)]
    result: TestResult<bool>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum TestResult<T> {
    Answer { value: T, us: u64 },
    Error(TestError),
}

#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
struct TestError {
    text: String,
    /// The verdict of the command because of this error. `None` if the call was not made.
    #[serde(skip)]
    verdict: Option<Verdict>,
}

impl<T> TestResult<T> {
    async fn measure(call: impl Future<Output = Result<T, SystemException>>) -> Self {
        let start = Instant::now();
        match call.await {
            Ok(value) => Self::Answer { value, us: micros(start) },
            Err(error) => Self::Error(TestError {
                text: replace_library_options(&error.to_string()).into_owned(),
                verdict: Some(verdict_of_exception(&error)),
            }),
        }
    }

    /// Returns a node. `describe` returns the text and the tone of a value.
    fn node(&self, name: &str, describe: impl Fn(&T) -> (&'static str, Tone)) -> Node {
        match self {
            Self::Answer { value, us } => {
                let (text, tone) = describe(value);
                Node::new(name, format!("{text} ({})", time_text(*us))).tone(tone)
            }
            Self::Error(error) => Node::new(name, &error.text).tone(Tone::Bad),
        }
    }

    fn is_answer(&self, condition: impl Fn(&T) -> bool) -> bool {
        matches!(self, Self::Answer { value, .. } if condition(value))
    }
}

fn micros(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
}

fn time_text(us: u64) -> String {
    if us < 1_000 { format!("{us} us") } else { format!("{:.2} ms", us as f64 / 1e3) }
}

pub(crate) fn run(args: &PingArgs, output: &Output) -> anyhow::Result<Verdict> {
    let url = target::read(&args.target)?.to_string();
    let credentials = args.login.credentials()?;
    let report = block_on(async {
        let orb = args.client.orb(credentials).await?;
        let object: ObjectRef = orb.resolve_unchecked(&url).await?;
        let report = tokio::select! {
            report = test_object(&object, args) => report,
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

async fn test_object(object: &ObjectRef, args: &PingArgs) -> Report {
    let reference = object.to_string();
    let type_id = object.repository_id().to_owned();
    let locate = TestResult::measure(object.locate()).await;
    let tested_id =
        args.type_id.as_deref().map(repository_id).or_else(|| (!type_id.is_empty()).then(|| type_id.clone()));
    let mut report = Report {
        reference,
        type_id,
        locate,
        is_a: None,
        non_existent: TestResult::Error(TestError { text: "not called".to_owned(), verdict: None }),
        round_trips_us: Vec::new(),
        lost: 0,
        error: None,
    };
    if let TestResult::Error(error) = &report.locate {
        report.non_existent = TestResult::Error(error.clone());
        return report;
    }
    if let Some(type_id) = tested_id {
        let result = TestResult::measure(is_a(object, &type_id)).await;
        report.is_a = Some(IsA { type_id, result });
    }
    report.non_existent = TestResult::measure(object.non_existent()).await;
    for call in 0..args.count {
        if call > 0 {
            sleep(args.interval).await;
        }
        match TestResult::measure(object.non_existent()).await {
            TestResult::Answer { us, .. } => report.round_trips_us.push(us),
            TestResult::Error(error) => {
                report.lost += 1;
                report.error.get_or_insert(error.text);
            }
        }
    }
    report
}

/// Calls `_is_a` of the object. [`Reference::is_a`] would trust the type in the reference.
async fn is_a(object: &ObjectRef, type_id: &str) -> Result<bool, SystemException> {
    let request = Request::new(object, "_is_a").input("logical_type_id", type_id.to_owned())?;
    match request.returns(bool::type_code()).invoke().await {
        Ok(results) => results.get(),
        Err(DynamicException::System(error)) => Err(error),
        // `_is_a` declares no user exceptions. Therefore this is unexpected.
        Err(other) => {
            Err(SystemException::unknown().completed(CompletionStatus::Yes).with_reason(other.to_string()))
        }
    }
}

impl Report {
    fn verdict(&self) -> Verdict {
        let good = self.lost == 0
            && self.locate.is_answer(|exists| *exists)
            && self.non_existent.is_answer(|is_non_existent| !is_non_existent)
            && self.is_a.as_ref().is_none_or(|is_a| is_a.result.is_answer(|value| *value));
        match &self.locate {
            // The object was not reached.
            TestResult::Error(TestError { verdict: Some(verdict), .. }) => *verdict,
            _ if good => Verdict::Good,
            _ => Verdict::Bad,
        }
    }

    fn tree(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        let id = if self.type_id.is_empty() { "unknown".to_owned() } else { printable(&self.type_id) };
        nodes.push(Node::new("type", id).tone(Tone::Head));
        nodes.push(self.locate.node("locate", |exists| match exists {
            true => ("the object exists", Tone::Good),
            false => ("the server does not have the object", Tone::Bad),
        }));
        if let TestResult::Error(_) = self.locate {
            return nodes;
        }
        nodes.extend(self.is_a.as_ref().map(|is_a| {
            let name = if is_a.type_id == self.type_id {
                "is_a".to_owned()
            } else {
                format!("is_a {}", printable(&is_a.type_id))
            };
            is_a.result.node(&name, |value| match value {
                true => ("yes", Tone::Good),
                false => ("no: the object has another interface", Tone::Bad),
            })
        }));
        nodes.push(self.non_existent.node("non_existent", |is_non_existent| match is_non_existent {
            true => ("yes: the object no longer exists", Tone::Bad),
            false => ("no", Tone::Good),
        }));
        let mut sorted = self.round_trips_us.clone();
        sorted.sort_unstable();
        if let (Some(min), Some(max)) = (sorted.first(), sorted.last()) {
            let median = sorted.get(sorted.len() / 2).copied().unwrap_or(*max);
            let line = format!(
                "{} answered, {} lost: min {}, median {}, max {}",
                sorted.len(),
                self.lost,
                time_text(*min),
                time_text(median),
                time_text(*max)
            );
            let each: Vec<String> = self.round_trips_us.iter().map(|us| time_text(*us)).collect();
            let tone = if self.lost == 0 { Tone::Good } else { Tone::Doubtful };
            nodes.push(
                Node::new("round trips", line).tone(tone).children([Node::new("each", each.join(", "))]),
            );
        }
        nodes.extend(self.error.as_ref().map(|error| Node::new("lost", error).tone(Tone::Bad)));
        nodes
    }
}
