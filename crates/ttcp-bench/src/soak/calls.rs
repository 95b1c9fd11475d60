//! The actions of a client: calls of every kind, each with a check of the result.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::oneshot;
use zorb::dynamic::{self, DynamicException};
use zorb::prelude::*;
use zorb::{ByteSource, TypeCode};

use super::client::{LINES, OrbConnection, SharedState};
use super::contract::{
    AmiSlimHandler, Choice, DYNAMIC, MOVED, OBJECTS, Record as Item, SLIM, Shade, SlimRef, TARGET, TargetRef,
    checksum, octets, target,
};
use super::record_file::{Id, Outcome, Record};

/// How long after its deadline a call is awaited before it counts as hung.
const HUNG: Duration = Duration::from_secs(20);
/// Pause after a call that failed.
const PAUSE: Duration = Duration::from_millis(5);

/// A task that makes calls.
pub(super) struct Caller {
    /// State shared with other callers.
    pub(super) shared: Arc<SharedState>,
    /// Source of the random choice of calls.
    pub(super) rng: Rng,
}

/// The kinds of calls: their names, and their relative frequencies.
pub(super) const KINDS: [(&str, u32); 19] = [
    ("ping", 12),
    ("octets", 10),
    ("typed", 14),
    ("bulk", 4),
    ("flood", 4),
    ("consume", 4),
    ("deposit", 4),
    ("produce", 5),
    ("user exception", 5),
    ("system exception", 4),
    ("nap", 5),
    ("collocated", 4),
    ("deferred", 5),
    ("handler", 5),
    ("by name", 5),
    ("served by name", 5),
    ("made object", 3),
    ("stream of items", 3),
    (NEW_CONNECTION, 1),
];

/// Replaces the caller's connection. It is not a call.
const NEW_CONNECTION: &str = "new connection";

/// Returns whether both sides record calls of that kind.
pub(super) fn is_noted(kind: &str) -> bool {
    kind != NEW_CONNECTION
}

/// How long a caller waits for a result.
#[derive(Debug, Clone, Copy)]
enum WaitMode {
    /// As long as the server may take.
    Long,
    /// Until a deadline that expires occasionally.
    Until(Duration),
    /// Until the caller drops the call.
    Drops(Duration),
}

/// The parameters of a call.
struct CallParams {
    line: Arc<OrbConnection>,
    waits: WaitMode,
    kind: u8,
}

/// Why a call has no result.
enum Failure {
    System(SystemException),
    /// An exception of the operation.
    User,
}

impl From<SystemException> for Failure {
    fn from(exception: SystemException) -> Failure {
        Failure::System(exception)
    }
}

impl From<DynamicException> for Failure {
    fn from(exception: DynamicException) -> Failure {
        match exception {
            DynamicException::System(exception) => Failure::System(exception),
            _ => Failure::User,
        }
    }
}

/// Makes calls until the client has to become quiet.
pub(super) async fn call_until_the_end(mut caller: Caller) {
    while !caller.shared.is_ending() {
        if caller.call().await.is_none() {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Caller {
    /// Makes a call, or several that belong together; `None` if one failed.
    async fn call(&mut self) -> Option<()> {
        let kind = self.kind();
        let waits = match self.rng.u32(..20) {
            0 => WaitMode::Until(Duration::from_micros(self.rng.u64(50..5_000))),
            1 | 2 => WaitMode::Drops(Duration::from_micros(self.rng.u64(..3_000))),
            _ => WaitMode::Long,
        };
        let place = self.rng.usize(..LINES);
        let line = self.shared.line(place)?;
        let params = CallParams { line, waits, kind: kind as u8 };
        let (name, _) = KINDS.get(kind)?;
        match *name {
            "ping" => self.ping(&params).await,
            "octets" => self.octets(&params, 16).await,
            "bulk" => self.octets(&params, 21).await,
            "typed" => self.typed(&params).await,
            "flood" => self.flood(&params).await,
            "consume" | "deposit" | "stream of items" => self.stream(&params, name).await,
            "produce" => self.produce(&params).await,
            "user exception" => self.refuse(&params).await,
            "system exception" => self.fail(&params).await,
            "nap" => self.nap(&params).await,
            "collocated" => self.inward(&params).await,
            "deferred" => self.deferred(&params).await,
            "handler" => self.handler(&params).await,
            "by name" => self.by_name(&params).await,
            "served by name" => self.served_by_name(&params).await,
            "made object" => self.made(&params).await,
            _ => self.renew(place).await,
        }
    }

    fn kind(&mut self) -> usize {
        let kinds = self.shared.kinds();
        let mut left = self.rng.u32(..kinds.iter().sum::<u32>().max(1));
        for (kind, often) in kinds.iter().enumerate() {
            match left.checked_sub(*often) {
                Some(rest) => left = rest,
                None => return kind,
            }
        }
        0
    }

    /// Returns a random length, more often short than long.
    fn len(&mut self, log: u32) -> usize {
        let bits = self.rng.u32(..=log);
        self.rng.usize(..1 << bits)
    }

    /// Returns one of the objects, reached in one of several ways.
    async fn target(&mut self, params: &CallParams) -> Option<TargetRef> {
        let number = self.rng.usize(..OBJECTS);
        let name = match self.rng.u32(..20) {
            0..10 => TARGET.to_owned(),
            10..13 => MOVED.to_owned(),
            13..16 => format!("coming {number}"),
            16..19 => format!("incarnated {number}"),
            _ => "passing".to_owned(),
        };
        self.named(params, &name).await
    }

    async fn named<R: Reference>(&self, params: &CallParams, name: &str) -> Option<R> {
        let text = self.shared.reference(name)?;
        self.resolved(params, text).await
    }

    async fn resolved<R: Reference>(&self, params: &CallParams, text: &str) -> Option<R> {
        let orb = params.line.orb()?;
        let reference: R = match orb.resolve_unchecked(text).await {
            Ok(reference) => reference,
            Err(error) => {
                self.shared.violation(format!("{text} is no reference: {error}"));
                return None;
            }
        };
        Some(match params.waits {
            WaitMode::Until(deadline) => reference.with_timeout(deadline),
            WaitMode::Long | WaitMode::Drops(_) => reference,
        })
    }

    fn note(&self, params: &CallParams, id: Id, outcome: Outcome, exception: Option<&SystemException>) {
        let owed = matches!(params.waits, WaitMode::Long) && !params.line.is_given_up();
        let kinds = zorb::SystemExceptionKind::ALL;
        let exception = exception
            .and_then(|exception| kinds.iter().position(|kind| *kind == exception.kind))
            .map_or(0, |place| place as u8 + 1);
        let record = Record { id, outcome, kind: params.kind, owed, exception };
        if let Err(error) = self.shared.notes().note(record) {
            self.shared.violation(format!("the soak can not note what happens: {error}"));
        }
    }

    /// Makes the call with a timeout, and records its outcome.
    async fn judge<T, E: Into<Failure>>(
        &self,
        params: &CallParams,
        id: Id,
        call: impl Future<Output = Result<T, E>>,
    ) -> Option<T> {
        self.note(params, id, Outcome::Begun, None);
        let (limit, drops) = match params.waits {
            WaitMode::Drops(after) => (after, true),
            WaitMode::Long | WaitMode::Until(_) => (self.shared.patience() + HUNG, false),
        };
        let (outcome, exception, result) = match tokio::time::timeout(limit, call).await {
            Ok(Ok(result)) => (Outcome::Answered, None, Some(result)),
            Ok(Err(failure)) => match failure.into() {
                Failure::User => (Outcome::Answered, None, None),
                Failure::System(exception) => {
                    let outcome = match exception.completed {
                        CompletionStatus::Yes => Outcome::Yes,
                        CompletionStatus::No => Outcome::No,
                        CompletionStatus::Maybe => Outcome::Maybe,
                    };
                    (outcome, Some(exception), None)
                }
            },
            Err(_) if drops => (Outcome::Unknown, None, None),
            Err(_) => (Outcome::Hung, None, None),
        };
        self.note(params, id, outcome, exception.as_ref());
        result
    }

    /// Reports a violation if the result differs from what was sent.
    fn compare<T: PartialEq>(&self, what: &str, id: Id, came: &T, sent: &T) -> Option<()> {
        if came != sent {
            self.shared
                .violation(format!("call {:x}: {what}: what came back differs from what was sent", id.0));
        }
        Some(())
    }

    async fn ping(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.id());
        self.judge(params, id, target.ping(id.0)).await
    }

    async fn octets(&mut self, params: &CallParams, log: u32) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.id());
        let sent = octets(id.0, self.len(log));
        let came = self.judge(params, id, target.echo_octets(id.0, sent.clone())).await?;
        self.compare("octets", id, &came, &sent)
    }

    async fn typed(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.id());
        let len = self.len(10);
        let seed = id.0 as i32;
        macro_rules! echo {
            ($what:literal, $call:ident, $sent:expr, $lent:expr) => {{
                let sent = $sent;
                let came = self.judge(params, id, target.$call(id.0, $lent(&sent))).await?;
                self.compare($what, id, &came, &sent)
            }};
        }
        let text = |place: usize| format!("{seed} \u{e4} {place}");
        match self.rng.u32(..7) {
            0 => echo!(
                "longs",
                echo_longs,
                (0..len as i32).map(|i| i.wrapping_mul(seed)).collect::<Seq<_>>(),
                Seq::clone
            ),
            1 => echo!(
                "doubles",
                echo_doubles,
                (0..len).map(|i| i as f64 * 0.5).collect::<Seq<_>>(),
                Seq::clone
            ),
            2 => echo!("texts", echo_texts, (0..len / 8).map(ascii).collect::<Vec<_>>(), Vec::as_slice),
            3 => {
                let item = |place: usize| Item {
                    name: ascii(place),
                    shade: Shade::Grey,
                    number: i64::from(seed) << 20,
                    share: place as f64,
                    flag: place.is_multiple_of(3),
                };
                echo!("records", echo_records, (0..len / 8).map(item).collect::<Vec<_>>(), Vec::as_slice)
            }
            4 => {
                let choice =
                    if len.is_multiple_of(2) { Choice::Number(seed) } else { Choice::Text(ascii(len)) };
                echo!("union", echo_choice, choice, std::convert::identity)
            }
            5 => {
                let any = Any::new((0..len as i32).collect::<Vec<i32>>()).ok()?;
                echo!("any", echo_any, any, std::convert::identity)
            }
            // GIOP 1.0 does not support wide characters: the call is rejected before it is sent.
            _ => echo!("wide text", echo_wide, WString::from(text(len)), WString::as_wstr),
        }
    }

    /// Makes oneways, and a call that returns how many arrived: all of them, if it used the same connection.
    async fn flood(&mut self, params: &CallParams) -> Option<()> {
        // Only the caller waits here, so no call can be dropped.
        let params = CallParams { line: Arc::clone(&params.line), waits: WaitMode::Long, kind: params.kind };
        let target: TargetRef = self.named(&params, TARGET).await?;
        let flood = self.shared.id();
        let before = target.connection().await.ok()?;
        let mut ids = Vec::new();
        for _ in 0..self.rng.usize(1..200) {
            let id = self.shared.id();
            self.note(&params, id, Outcome::Begun, None);
            ids.push(id);
            if let Err(exception) = target.hint(id.0, flood.0).await {
                let told =
                    if exception.completed == CompletionStatus::No { Outcome::No } else { Outcome::Maybe };
                self.note(&params, id, told, Some(&exception));
                ids.pop();
                break;
            }
        }
        let sent = ids.len();
        let hinted = target.hinted(flood.0).await;
        let after = target.connection().await;
        let same = after.is_ok_and(|after| after == before) && hinted.is_ok();
        let outcome = if same { Outcome::Answered } else { Outcome::Unknown };
        for id in ids {
            self.note(&params, id, outcome, None);
        }
        match hinted {
            Ok(hinted) if same && hinted as usize != sent => {
                self.shared
                    .violation(format!("{hinted} of {sent} oneways came by a connection that is whole"));
                None
            }
            hinted => hinted.ok().map(drop),
        }
    }

    async fn stream(&mut self, params: &CallParams, name: &str) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.id());
        let sent = octets(id.0, self.len(20));
        let expected = checksum(0, &sent);
        let sum = match name {
            "consume" => self.judge(params, id, target.consume(id.0, sent)).await?,
            "deposit" => self.judge(params, id, target.deposit(id.0, sent)).await?,
            _ => {
                let (len, item) = (sent.len(), self.rng.usize(1..40_000));
                let items = (0..len)
                    .step_by(item)
                    .map(move |start| Ok::<_, SystemException>(sent.slice(start..len.min(start + item))));
                let source = ByteSource::stream(len as u64, futures_util::stream::iter(items));
                self.judge(params, id, target.consume(id.0, source)).await?
            }
        };
        self.compare("the sum of a stream", id, &sum, &expected)
    }

    async fn produce(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.id());
        let len = self.len(20);
        let call = async { target.produce(id.0, len as u32).await?.collect(len).await };
        let came = self.judge(params, id, call).await?;
        self.compare("a streamed result", id, &came, &octets(id.0, len))
    }

    async fn refuse(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.id());
        let call = async {
            match target.refuse(id.0).await {
                Ok(()) => Ok(None),
                Err(target::RefuseError::Refused(refused)) => Ok(Some(refused.id)),
                Err(target::RefuseError::System(exception)) => Err(exception),
            }
        };
        let came = self.judge(params, id, call).await?;
        self.compare("the user exception", id, &came, &Some(id.0))
    }

    async fn fail(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.id());
        // After a panic it is unknown how far the call got.
        let how = self.rng.u8(..3);
        let waits = if matches!(params.waits, WaitMode::Long) {
            WaitMode::Until(self.shared.patience())
        } else {
            params.waits
        };
        let params = CallParams { line: Arc::clone(&params.line), waits, kind: params.kind };
        let answered = self.judge(&params, id, target.fail(id.0, how)).await;
        if answered.is_some() {
            self.shared.violation(format!("call {:x} was to fail and did not", id.0));
        }
        Some(())
    }

    async fn nap(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.id());
        let long = self.rng.u32(..20);
        self.judge(params, id, target.nap(id.0, long)).await
    }

    async fn inward(&mut self, params: &CallParams) -> Option<()> {
        let (target, id, inner) = (self.target(params).await?, self.shared.id(), self.shared.id());
        self.note(params, inner, Outcome::Begun, None);
        let answered = self.judge(params, id, target.inward(id.0, inner.0)).await;
        let outcome = if answered.is_some() { Outcome::Answered } else { Outcome::Unknown };
        self.note(params, inner, outcome, None);
        answered
    }

    /// Makes several calls before the first is awaited.
    async fn deferred(&mut self, params: &CallParams) -> Option<()> {
        let target = self.target(params).await?;
        let ids: Vec<Id> = (0..self.rng.usize(1..6)).map(|_| self.shared.id()).collect();
        let calls: Vec<_> = ids
            .iter()
            .map(|id| {
                self.note(params, *id, Outcome::Begun, None);
                (*id, target.ping(id.0).deferred())
            })
            .collect();
        let mut all = Some(());
        // In reverse order.
        for (id, call) in calls.into_iter().rev() {
            all = self.judge(params, id, call).await.and(all);
        }
        all
    }

    async fn handler(&mut self, params: &CallParams) -> Option<()> {
        // A handler's call cannot be dropped.
        let waits = if matches!(params.waits, WaitMode::Drops(_)) { WaitMode::Long } else { params.waits };
        let params = CallParams { line: Arc::clone(&params.line), waits, kind: params.kind };
        let slim: SlimRef = self.named(&params, SLIM).await?;
        let id = self.shared.id();
        let (handler, answer) = Handler::new();
        let call = async {
            slim.sendc_bump(&handler, id.0)?;
            drop(handler);
            // Reported with COMPLETED_MAYBE, as a call without an answer.
            let gone = || {
                let maybe = CompletionStatus::Maybe;
                SystemException::new(SystemExceptionKind::Internal, zorb::MinorCode::NONE, maybe)
                    .because("a handler was dropped")
            };
            answer.await.unwrap_or_else(|_| Err(gone()))
        };
        let came = self.judge(&params, id, call).await?;
        self.compare("the reply of a handler", id, &came, &id.0.wrapping_add(1))
    }

    async fn by_name(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.id());
        let longs = TypeCode::sequence(&TypeCode::LONG, 0);
        let sent: Vec<i32> = (0..self.len(8) as i32).collect();
        let request = dynamic::Request::new(&target, "echo_longs")
            .input("id", id.0)
            .and_then(|request| request.input("value", sent.clone()))
            .ok()?
            .returns(longs);
        let answered = self.judge(params, id, request.invoke()).await?;
        self.compare("a call by name", id, &answered.get::<Vec<i32>>().ok(), &Some(sent))
    }

    async fn served_by_name(&mut self, params: &CallParams) -> Option<()> {
        let slim: SlimRef = self.named(params, DYNAMIC).await?;
        let id = self.shared.id();
        let came = self.judge(params, id, slim.bump(id.0)).await?;
        self.compare("an object served by name", id, &came, &id.0.wrapping_add(1))
    }

    /// Makes calls to an object that is created, called, deactivated, and called again.
    async fn made(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.id());
        let text = self.judge(params, id, target.make(id.0)).await?;
        let made: TargetRef = self.resolved(params, &text).await?;
        let id = self.shared.id();
        self.judge(params, id, made.ping(id.0)).await?;
        let id = self.shared.id();
        self.judge(params, id, made.unmake(id.0)).await?;
        let id = self.shared.id();
        if self.judge(params, id, made.ping(id.0)).await.is_some() {
            self.shared.violation(format!("call {:x} was answered by an object that had ended", id.0));
        }
        Some(())
    }

    async fn renew(&mut self, place: usize) -> Option<()> {
        match self.shared.renew(place).await {
            Ok(Some(line)) => self.shared.give_up(&line, self.rng.bool()).await,
            Ok(None) => {}
            Err(error) => self.shared.violation(format!("an ORB can not be built: {error}")),
        }
        Some(())
    }
}

fn ascii(place: usize) -> String {
    format!("text {place}")
}

type BumpResult = Result<u64, SystemException>;

/// Receives the outcome of one call.
struct Handler(Mutex<Option<oneshot::Sender<BumpResult>>>);

impl Handler {
    fn new() -> (Arc<Handler>, oneshot::Receiver<BumpResult>) {
        let (sender, receiver) = oneshot::channel();
        (Arc::new(Handler(Mutex::new(Some(sender)))), receiver)
    }

    fn complete(&self, outcome: BumpResult) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            let _ = sender.send(outcome);
        }
    }
}

impl AmiSlimHandler for Handler {
    async fn bump(&self, result: u64) {
        self.complete(Ok(result));
    }

    async fn bump_excep(&self, exception: SystemException) {
        self.complete(Err(exception));
    }
}
