//! The calls of a client. They are of all kinds, and their results are checked.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::oneshot;
use zorb::dynamic::{self, DynamicException};
use zorb::prelude::*;
use zorb::{ByteSource, TypeCode};

use super::client::{ClientOrb, ORB_COUNT, SharedState};
use super::contract::{
    AmiSlimHandler, Choice, DYNAMIC, MOVED, OBJECT_COUNT, Record as Item, SLIM, Shade, SlimRef, TARGET,
    TargetRef, call_bytes, checksum, target,
};
use super::record_file::{Id, Outcome, Record};

/// Time after the ORB's timeout at which a call counts as hung, even if its own deadline is earlier.
const HUNG_AFTER: Duration = Duration::from_secs(20);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(5);

pub(super) struct Caller {
    pub(super) shared: Arc<SharedState>,
    pub(super) rng: Rng,
}

/// The kinds of calls, with their relative frequencies.
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

/// An entry that is no call: the client replaces an ORB and its connection.
const NEW_CONNECTION: &str = "new connection";

/// Returns whether client and server record this kind of calls.
pub(super) fn is_recorded(kind: &str) -> bool {
    kind != NEW_CONNECTION
}

/// How long a caller waits for the result of a call.
#[derive(Debug, Clone, Copy)]
enum WaitMode {
    /// Until the ORB's timeout, which applies to all calls. The call must be answered before.
    OrbTimeout,
    Deadline(Duration),
    /// The caller drops the call after this time.
    Drop(Duration),
}

#[derive(Clone)]
struct CallParams {
    orb: Arc<ClientOrb>,
    wait: WaitMode,
    /// An index in [`KINDS`].
    kind: u8,
}

enum Failure {
    System(SystemException),
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

pub(super) async fn call_until_stopped(mut caller: Caller) {
    while !caller.shared.is_stopped() {
        if caller.call().await.is_none() {
            tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
        }
    }
}

impl Caller {
    /// Makes one call, or several that belong together. Returns `None` if a call failed.
    async fn call(&mut self) -> Option<()> {
        let kind = self.random_kind();
        let wait = match self.rng.u32(..20) {
            0 => WaitMode::Deadline(Duration::from_micros(self.rng.u64(50..5_000))),
            1 | 2 => WaitMode::Drop(Duration::from_micros(self.rng.u64(..3_000))),
            _ => WaitMode::OrbTimeout,
        };
        let index = self.rng.usize(..ORB_COUNT);
        let orb = self.shared.orb(index)?;
        let params = CallParams { orb, wait, kind: kind as u8 };
        let (name, _) = KINDS.get(kind)?;
        match *name {
            "ping" => self.ping(&params).await,
            "octets" => self.echo_octets(&params, 16).await,
            "bulk" => self.echo_octets(&params, 21).await,
            "typed" => self.echo_typed_value(&params).await,
            "flood" => self.flood(&params).await,
            "consume" | "deposit" | "stream of items" => self.send_stream(&params, name).await,
            "produce" => self.receive_stream(&params).await,
            "user exception" => self.raise_user_exception(&params).await,
            "system exception" => self.raise_system_exception(&params).await,
            "nap" => self.call_slow_operation(&params).await,
            "collocated" => self.call_collocated(&params).await,
            "deferred" => self.call_deferred(&params).await,
            "handler" => self.call_with_handler(&params).await,
            "by name" => self.call_by_name(&params).await,
            "served by name" => self.call_dynamic_servant(&params).await,
            "made object" => self.create_and_end_object(&params).await,
            _ => self.replace_orb(index).await,
        }
    }

    fn random_kind(&mut self) -> usize {
        let frequencies = &self.shared.frequencies;
        let mut left = self.rng.u32(..frequencies.iter().sum::<u32>().max(1));
        for (kind, frequency) in frequencies.iter().enumerate() {
            match left.checked_sub(*frequency) {
                Some(rest) => left = rest,
                None => return kind,
            }
        }
        0
    }

    /// Returns a random length. All numbers of bits up to `max_bits` are equally likely, so most are short.
    fn random_len(&mut self, max_bits: u32) -> usize {
        let bits = self.rng.u32(..=max_bits);
        self.rng.usize(..1 << bits)
    }

    /// Returns a reference to one of the objects. The references differ in how the server finds the object.
    async fn target(&mut self, params: &CallParams) -> Option<TargetRef> {
        let number = self.rng.usize(..OBJECT_COUNT);
        let name = match self.rng.u32(..20) {
            0..10 => TARGET.to_owned(),
            10..13 => MOVED.to_owned(),
            13..16 => format!("reactivated {number}"),
            16..19 => format!("incarnated {number}"),
            _ => "transient".to_owned(),
        };
        self.resolve_name(params, &name).await
    }

    async fn resolve_name<R: Reference>(&self, params: &CallParams, name: &str) -> Option<R> {
        let text = self.shared.reference(name)?;
        self.resolve(params, text).await
    }

    async fn resolve<R: Reference>(&self, params: &CallParams, text: &str) -> Option<R> {
        let orb = params.orb.orb()?;
        let reference: R = match orb.resolve_unchecked(text).await {
            Ok(reference) => reference,
            Err(error) => {
                self.shared.add_violation(format!("{text} cannot be resolved: {error}"));
                return None;
            }
        };
        Some(match params.wait {
            WaitMode::Deadline(deadline) => reference.with_timeout(deadline),
            WaitMode::OrbTimeout | WaitMode::Drop(_) => reference,
        })
    }

    fn record(&self, params: &CallParams, id: Id, outcome: Outcome, exception: Option<&SystemException>) {
        let must_be_answered = matches!(params.wait, WaitMode::OrbTimeout) && !params.orb.is_given_up();
        let kinds = zorb::SystemExceptionKind::ALL;
        let exception = exception
            .and_then(|exception| kinds.iter().position(|kind| *kind == exception.kind))
            .map_or(0, |index| index as u8 + 1);
        let record = Record { id, outcome, kind: params.kind, must_be_answered, exception };
        if let Err(error) = self.shared.records.append_record(record) {
            self.shared.add_violation(format!("cannot write the record file: {error}"));
        }
    }

    /// Performs a call, and records its start and its outcome. Returns the result, if it is not an exception.
    async fn perform<T, E: Into<Failure>>(
        &self,
        params: &CallParams,
        id: Id,
        call: impl Future<Output = Result<T, E>>,
    ) -> Option<T> {
        self.record(params, id, Outcome::Begun, None);
        let (timeout, is_dropped) = match params.wait {
            WaitMode::Drop(after) => (after, true),
            WaitMode::OrbTimeout | WaitMode::Deadline(_) => (self.shared.call_timeout + HUNG_AFTER, false),
        };
        let (outcome, exception, result) = match tokio::time::timeout(timeout, call).await {
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
            Err(_) if is_dropped => (Outcome::Unknown, None, None),
            Err(_) => (Outcome::Hung, None, None),
        };
        self.record(params, id, outcome, exception.as_ref());
        result
    }

    fn compare<T: PartialEq>(&self, what: &str, id: Id, received: &T, expected: &T) -> Option<()> {
        if received != expected {
            self.shared.add_violation(format!("call {:x}: {what}: the result is wrong", id.0));
        }
        Some(())
    }

    async fn ping(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.next_id());
        self.perform(params, id, target.ping(id.0)).await
    }

    async fn echo_octets(&mut self, params: &CallParams, max_bits: u32) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.next_id());
        let sent = call_bytes(id.0, self.random_len(max_bits));
        let received = self.perform(params, id, target.echo_octets(id.0, sent.clone())).await?;
        self.compare("octets", id, &received, &sent)
    }

    async fn echo_typed_value(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.next_id());
        let len = self.random_len(10);
        let seed = id.0 as i32;
        macro_rules! echo {
            ($what:literal, $call:ident, $sent:expr, $borrow:expr) => {{
                let sent = $sent;
                let received = self.perform(params, id, target.$call(id.0, $borrow(&sent))).await?;
                self.compare($what, id, &received, &sent)
            }};
        }
        let text = |index: usize| format!("{seed} \u{e4} {index}");
        match self.rng.u32(..7) {
            0 => {
                let sent: Seq<_> = (0..len as i32).map(|i| i.wrapping_mul(seed)).collect();
                echo!("longs", echo_longs, sent, Seq::clone)
            }
            1 => {
                let sent: Seq<_> = (0..len).map(|i| i as f64 * 0.5).collect();
                echo!("doubles", echo_doubles, sent, Seq::clone)
            }
            2 => echo!("texts", echo_texts, (0..len / 8).map(ascii).collect::<Vec<_>>(), Vec::as_slice),
            3 => {
                let item = |index: usize| Item {
                    name: ascii(index),
                    shade: Shade::Grey,
                    number: i64::from(seed) << 20,
                    share: index as f64,
                    flag: index.is_multiple_of(3),
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
            // With GIOP 1.0, which has no wide characters, the ORB rejects this call before it is sent.
            _ => echo!("wide text", echo_wide, WString::from(text(len)), WString::as_wstr),
        }
    }

    /// Makes oneway calls, and then a call that returns how many of them arrived. All must have arrived if
    /// this call used the same connection.
    async fn flood(&mut self, params: &CallParams) -> Option<()> {
        // A oneway has no result for which the caller could stop waiting.
        let params = CallParams { wait: WaitMode::OrbTimeout, ..params.clone() };
        let target: TargetRef = self.resolve_name(&params, TARGET).await?;
        let flood = self.shared.next_id();
        let before = target.connection().await.ok()?;
        let mut ids = Vec::new();
        for _ in 0..self.rng.usize(1..200) {
            let id = self.shared.next_id();
            self.record(&params, id, Outcome::Begun, None);
            ids.push(id);
            if let Err(exception) = target.hint(id.0, flood.0).await {
                let outcome =
                    if exception.completed == CompletionStatus::No { Outcome::No } else { Outcome::Maybe };
                self.record(&params, id, outcome, Some(&exception));
                ids.pop();
                break;
            }
        }
        let sent = ids.len();
        let hinted = target.hinted(flood.0).await;
        let after = target.connection().await;
        let is_same_connection = after.is_ok_and(|after| after == before) && hinted.is_ok();
        let outcome = if is_same_connection { Outcome::Answered } else { Outcome::Unknown };
        for id in ids {
            self.record(&params, id, outcome, None);
        }
        match hinted {
            Ok(hinted) if is_same_connection && hinted as usize != sent => {
                let text = format!("{hinted} of {sent} oneways arrived over an intact connection");
                self.shared.add_violation(text);
                None
            }
            hinted => hinted.ok().map(drop),
        }
    }

    async fn send_stream(&mut self, params: &CallParams, name: &str) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.next_id());
        let sent = call_bytes(id.0, self.random_len(20));
        let expected = checksum(0, &sent);
        let sum = match name {
            "consume" => self.perform(params, id, target.consume(id.0, sent)).await?,
            "deposit" => self.perform(params, id, target.deposit(id.0, sent)).await?,
            _ => {
                let (len, item_bytes) = (sent.len(), self.rng.usize(1..40_000));
                let items = (0..len).step_by(item_bytes).map(move |start| {
                    Ok::<_, SystemException>(sent.slice(start..len.min(start + item_bytes)))
                });
                let source = ByteSource::stream(len as u64, futures_util::stream::iter(items));
                self.perform(params, id, target.consume(id.0, source)).await?
            }
        };
        self.compare("the sum of a stream", id, &sum, &expected)
    }

    async fn receive_stream(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.next_id());
        let len = self.random_len(20);
        let call = async { target.produce(id.0, len as u32).await?.collect(len).await };
        let received = self.perform(params, id, call).await?;
        self.compare("a streamed result", id, &received, &call_bytes(id.0, len))
    }

    async fn raise_user_exception(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.next_id());
        let call = async {
            match target.refuse(id.0).await {
                Ok(()) => Ok(None),
                Err(target::RefuseError::Refused(refused)) => Ok(Some(refused.id)),
                Err(target::RefuseError::System(exception)) => Err(exception),
            }
        };
        let received = self.perform(params, id, call).await?;
        self.compare("the user exception", id, &received, &Some(id.0))
    }

    async fn raise_system_exception(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.next_id());
        // If the servant panics, the call ends with COMPLETED_MAYBE. Only calls with a deadline may end so.
        let how = self.rng.u8(..3);
        let wait = if matches!(params.wait, WaitMode::OrbTimeout) {
            WaitMode::Deadline(self.shared.call_timeout)
        } else {
            params.wait
        };
        let params = CallParams { wait, ..params.clone() };
        let answered = self.perform(&params, id, target.fail(id.0, how)).await;
        if answered.is_some() {
            self.shared.add_violation(format!("call {:x} should have failed, but succeeded", id.0));
        }
        Some(())
    }

    async fn call_slow_operation(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.next_id());
        let milliseconds = self.rng.u32(..20);
        self.perform(params, id, target.nap(id.0, milliseconds)).await
    }

    async fn call_collocated(&mut self, params: &CallParams) -> Option<()> {
        let (target, id, inner) = (self.target(params).await?, self.shared.next_id(), self.shared.next_id());
        self.record(params, inner, Outcome::Begun, None);
        let answered = self.perform(params, id, target.inward(id.0, inner.0)).await;
        let outcome = if answered.is_some() { Outcome::Answered } else { Outcome::Unknown };
        self.record(params, inner, outcome, None);
        answered
    }

    async fn call_deferred(&mut self, params: &CallParams) -> Option<()> {
        let target = self.target(params).await?;
        let ids: Vec<Id> = (0..self.rng.usize(1..6)).map(|_| self.shared.next_id()).collect();
        let calls: Vec<_> = ids
            .iter()
            .map(|id| {
                self.record(params, *id, Outcome::Begun, None);
                (*id, target.ping(id.0).deferred())
            })
            .collect();
        let mut all = Some(());
        for (id, call) in calls.into_iter().rev() {
            all = self.perform(params, id, call).await.and(all);
        }
        all
    }

    async fn call_with_handler(&mut self, params: &CallParams) -> Option<()> {
        // A call with a reply handler cannot be dropped.
        let wait = if matches!(params.wait, WaitMode::Drop(_)) { WaitMode::OrbTimeout } else { params.wait };
        let params = CallParams { wait, ..params.clone() };
        let slim: SlimRef = self.resolve_name(&params, SLIM).await?;
        let id = self.shared.next_id();
        let (handler, answer) = Handler::new();
        let call = async {
            slim.sendc_bump(&handler, id.0)?;
            drop(handler);
            // A call that ends with COMPLETED_MAYBE counts as not answered.
            let dropped = || {
                SystemException::internal()
                    .completed(CompletionStatus::Maybe)
                    .with_reason("a reply handler was dropped without a reply")
            };
            answer.await.unwrap_or_else(|_| Err(dropped()))
        };
        let received = self.perform(&params, id, call).await?;
        self.compare("the reply of a handler", id, &received, &id.0.wrapping_add(1))
    }

    async fn call_by_name(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.next_id());
        let longs = TypeCode::sequence(&TypeCode::LONG, 0);
        let sent: Vec<i32> = (0..self.random_len(8) as i32).collect();
        let request = dynamic::Request::new(&target, "echo_longs")
            .input("id", id.0)
            .and_then(|request| request.input("value", sent.clone()))
            .ok()?
            .returns(longs);
        let answered = self.perform(params, id, request.invoke()).await?;
        self.compare("a call by name", id, &answered.get::<Vec<i32>>().ok(), &Some(sent))
    }

    async fn call_dynamic_servant(&mut self, params: &CallParams) -> Option<()> {
        let slim: SlimRef = self.resolve_name(params, DYNAMIC).await?;
        let id = self.shared.next_id();
        let received = self.perform(params, id, slim.bump(id.0)).await?;
        self.compare("an object served by name", id, &received, &id.0.wrapping_add(1))
    }

    /// Creates an object, calls it, deactivates it, and checks that a further call fails.
    async fn create_and_end_object(&mut self, params: &CallParams) -> Option<()> {
        let (target, id) = (self.target(params).await?, self.shared.next_id());
        let text = self.perform(params, id, target.make(id.0)).await?;
        let created: TargetRef = self.resolve(params, &text).await?;
        let id = self.shared.next_id();
        self.perform(params, id, created.ping(id.0)).await?;
        let id = self.shared.next_id();
        self.perform(params, id, created.unmake(id.0)).await?;
        let id = self.shared.next_id();
        if self.perform(params, id, created.ping(id.0)).await.is_some() {
            self.shared.add_violation(format!("call {:x} was answered by a deactivated object", id.0));
        }
        Some(())
    }

    async fn replace_orb(&mut self, index: usize) -> Option<()> {
        match self.shared.replace_orb(index).await {
            Ok(Some(orb)) => self.shared.give_up(&orb, self.rng.bool()).await,
            Ok(None) => {}
            Err(error) => self.shared.add_violation(format!("an ORB cannot be built: {error}")),
        }
        Some(())
    }
}

fn ascii(number: usize) -> String {
    format!("text {number}")
}

type BumpResult = Result<u64, SystemException>;

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
