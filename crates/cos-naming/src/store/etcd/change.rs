//! Changes: transactions that are repeated until they are made once.

use std::time::Duration;

use tokio::time::Instant;
use zorb::CompletionStatus;

use super::super::memory::{may_bind, may_destroy, regroup};
use super::super::{Over, Refused};
use super::api::{
    Compare, GrantRequest, KeepAliveRequest, KeptAlive, Lease, Long, Octets, Op, OpResponse, RangeRequest,
    RangeResponse, TxnRequest, TxnResponse, behind,
};
use super::cache::{Entry, same_object};
use super::http::Failure;
use super::keys::seal;
use super::{Change, ChangeError, ContextId, Key, Shared, StoreError, Target, away};

/// The number of context numbers that a server reserves at a time. Unused ones are never used by another
/// server.
const BLOCK: u64 = 1000;

impl Shared {
    pub(super) async fn change(&self, change: Change) -> Result<Option<ContextId>, ChangeError> {
        if self.away_since().is_some() {
            let failure = Failure::NotSent("no majority of etcd's members answers".to_owned());
            return Err(away(&failure, CompletionStatus::No).into());
        }
        let until = Instant::now() + self.timeout;
        let mut making = Making {
            shared: self,
            change,
            until,
            mark: self.mark(),
            since: Long(*self.applied.borrow()),
            made: None,
            lease: None,
            doubt: false,
        };
        making.make().await
    }

    /// Returns a number for a context that no context has had.
    async fn fresh_id(&self, until: Instant) -> Result<ContextId, Failure> {
        let mut ids = self.ids.lock().await;
        loop {
            if let Some(id) = ids.next() {
                return Ok(ContextId(id));
            }
            let key = self.keys.next();
            let get = RangeRequest { key: key.clone().into(), ..RangeRequest::default() };
            let found: RangeResponse = self.cluster.ask_any("/v3/kv/range", &get, until).await?;
            let kv = found.kvs.into_iter().next().unwrap_or_default();
            let first: Option<u64> = std::str::from_utf8(&kv.value.0).ok().and_then(|text| text.parse().ok());
            let first = first.ok_or_else(|| Failure::Refused(format!("{key} in etcd is no number")))?;
            let take = TxnRequest {
                compare: vec![Compare::last_changed(key.clone(), kv.mod_revision)],
                success: vec![Op::put(key, (first + BLOCK).to_string().into_bytes())],
                failure: Vec::new(),
            };
            // If it is unknown whether they were reserved, others are.
            let taken: TxnResponse = self.cluster.ask_any("/v3/kv/txn", &take, until).await?;
            if taken.succeeded {
                *ids = first..first + BLOCK;
            }
        }
    }
}

/// A change that is being made.
struct Making<'s> {
    shared: &'s Shared,
    change: Change,
    until: Instant,
    /// The mark that identifies the change in the value that it bound.
    mark: u128,
    /// The last known revision before the change.
    since: Long,
    /// The number of its new context.
    made: Option<ContextId>,
    lease: Option<Long>,
    /// True if it was sent and the outcome is unknown.
    doubt: bool,
}

/// The part of etcd's contents that concerns the change.
struct View {
    /// True if the context exists in which the change is made, or which it creates or destroys.
    context: bool,
    /// For the destruction of a context: true if it has bindings.
    filled: bool,
    /// The binding of the name.
    found: Option<Entry>,
    /// True if it was read from etcd, false if from the cache.
    fresh: bool,
}

/// The next step of a change.
enum Step {
    Ask(TxnRequest),
    Nothing,
}

/// The reason why there is no step.
enum Stop {
    Refused(Refused),
    Store(StoreError),
    Failure(Failure),
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl Making<'_> {
    /// Makes the change. The cache determines what is tried. A change is refused only because of what etcd
    /// returns.
    async fn make(&mut self) -> Result<Option<ContextId>, ChangeError> {
        let mut view = self.cached();
        loop {
            // A lease can be renewed only if etcd still has it.
            if !view.fresh && matches!(self.change, Change::BindFor { .. }) {
                view = self.look().await?;
            }
            if self.doubt && view.fresh && self.is_made(&view) {
                return Ok(self.made);
            }
            let txn = match self.plan(&view).await {
                Ok(Step::Ask(txn)) => txn,
                Ok(Step::Nothing) => return Ok(None),
                Err(Stop::Failure(failure)) => return Err(self.failed(&failure)),
                Err(_) if !view.fresh => {
                    view = self.look().await?;
                    continue;
                }
                Err(Stop::Refused(_)) if self.is_open(&view) => {
                    let failure = Failure::Unknown("etcd did not say whether it was done".to_owned());
                    return Err(self.failed(&failure));
                }
                Err(Stop::Refused(refused)) => return Err(refused.into()),
                Err(Stop::Store(error)) => return Err(error.into()),
            };
            match self.shared.cluster.ask::<_, TxnResponse>("/v3/kv/txn", &txn).await {
                Ok(answer) if answer.succeeded => {
                    // It must not be acknowledged before this server shows it. The change is made in any
                    // case, even if that fails.
                    if let Err(error) = self.shared.reached(answer.header.revision.0, self.until).await {
                        self.shared.set_away(&error);
                    }
                    return Ok(self.made);
                }
                Ok(answer) => {
                    if Instant::now() > self.until {
                        return Err(
                            self.failed(&Failure::NotSent("others change it all the time".to_owned()))
                        );
                    }
                    view = self.view(answer.responses);
                }
                Err(failure) => {
                    self.doubt |= matches!(failure, Failure::Unknown(_));
                    if !self.shared.cluster.goes_on(&failure, self.until).await {
                        return Err(self.failed(&failure));
                    }
                }
            }
        }
    }

    fn failed(&self, failure: &Failure) -> ChangeError {
        let unknown = self.doubt || matches!(failure, Failure::Unknown(_));
        if let Failure::Refused(what) = failure
            && !unknown
        {
            return StoreError::new(what).into();
        }
        if matches!(failure, Failure::NotSent(_) | Failure::Unknown(_)) && Instant::now() > self.until {
            self.shared.set_away(failure);
        }
        away(failure, if unknown { CompletionStatus::Maybe } else { CompletionStatus::No }).into()
    }

    /// Returns the context and the name of the change.
    fn place(&self) -> Option<(ContextId, Option<&Key>)> {
        match &self.change {
            Change::NewContext => None,
            Change::Destroy { context } => Some((*context, None)),
            Change::Bind { context, key, .. }
            | Change::BindFor { context, key, .. }
            | Change::BindNewContext { context, key }
            | Change::Unbind { context, key }
            | Change::Join { context, key, .. }
            | Change::Leave { context, key, .. } => Some((*context, Some(key))),
        }
    }

    fn cached(&self) -> View {
        let cache = &self.shared.cache;
        let Some((context, key)) = self.place() else {
            return View { context: false, filled: false, found: None, fresh: true };
        };
        View {
            context: cache.has(context),
            filled: key.is_none() && cache.has_bindings(context),
            found: key.and_then(|key| cache.entry(context, key)),
            fresh: false,
        }
    }

    /// Returns the reads on which the change depends.
    fn reads(&self) -> Vec<Op> {
        let keys = &self.shared.keys;
        match self.place() {
            // Its own context, in case it was created.
            None => self.made.map(|made| Op::get(keys.context(made))).into_iter().collect(),
            Some((context, Some(key))) => {
                vec![Op::get(keys.context(context)), Op::get(keys.binding(context, key))]
            }
            Some((context, None)) => {
                let prefix = keys.bindings(context);
                let range_end = behind(&prefix);
                let any = RangeRequest {
                    key: prefix.into(),
                    range_end,
                    limit: Long(1),
                    keys_only: true,
                    ..RangeRequest::default()
                };
                vec![Op::get(keys.context(context)), Op::Range(any)]
            }
        }
    }

    async fn look(&self) -> Result<View, ChangeError> {
        let txn = TxnRequest { success: self.reads(), ..TxnRequest::default() };
        let answer: TxnResponse = self
            .shared
            .cluster
            .ask_any("/v3/kv/txn", &txn, self.until)
            .await
            .map_err(|failure| self.failed(&failure))?;
        Ok(self.view(answer.responses))
    }

    /// Decodes the answers to `reads`.
    fn view(&self, responses: Vec<OpResponse>) -> View {
        let mut ranges = responses.into_iter().map(|one| one.response_range.unwrap_or_default().kvs);
        let context = ranges.next().is_some_and(|kvs| !kvs.is_empty());
        let second = ranges.next().and_then(|kvs| kvs.into_iter().next());
        match self.place() {
            Some((at, Some(key))) => {
                let found = second.map(|kv| Entry::of(at, key, &kv));
                View { context, filled: false, found, fresh: true }
            }
            _ => View { context, filled: second.is_some(), found: None, fresh: true },
        }
    }

    /// Returns whether a change that was sent has been made, from what is found.
    fn is_made(&self, view: &View) -> bool {
        match self.change {
            Change::NewContext => view.context,
            _ => view.found.as_ref().is_some_and(|found| found.mark == self.mark),
        }
    }

    /// Returns whether the outcome of a refused change is unknown: it was sent, and the conflict may be its
    /// own result.
    fn is_open(&self, view: &View) -> bool {
        self.doubt
            && match (&self.change, &view.found) {
                (Change::Unbind { .. } | Change::Destroy { .. }, _) => true,
                (_, Some(found)) => found.revision > self.since,
                (_, None) => true,
            }
    }

    /// Returns the transaction that makes the change, provided that etcd has the contents of the view.
    async fn plan(&mut self, view: &View) -> Result<Step, Stop> {
        let shared = self.shared;
        let keys = &shared.keys;
        let Some((context, key)) = self.place().map(|(context, key)| (context, key.cloned())) else {
            let made = self.number().await?;
            let success = vec![Op::put(keys.context(made), Vec::new())];
            return Ok(self.transaction(vec![Compare::missing(keys.context(made))], success));
        };
        let there = Compare::there(keys.context(context));
        let Some(key) = key else {
            may_destroy(context, view.context.then_some(view.filled))?;
            let compare = vec![there, Compare::none_below(&keys.bindings(context))];
            return Ok(self.transaction(compare, vec![Op::delete(keys.context(context))]));
        };
        if !view.context {
            return Err(Refused::NoContext.into());
        }
        let at = keys.binding(context, &key);
        if let Change::Unbind { .. } = self.change {
            view.found.as_ref().ok_or(Refused::Free)?;
            return Ok(self.transaction(vec![there, Compare::there(at.clone())], vec![Op::delete(at)]));
        }
        let found = view.found.as_ref().map(Entry::target).transpose()?;
        let revision = view.found.as_ref().map_or(Long(0), |found| found.revision);
        let mut compare = vec![there, Compare::last_changed(at.clone(), revision)];
        let mut success = Vec::new();
        let mut lease = Long(0);
        let target = match &self.change {
            Change::Bind { target, over, .. } => {
                may_bind(found, *over)?;
                target.clone()
            }
            Change::BindFor { target, time, .. } => {
                let (target, time) = (target.clone(), *time);
                let kept = view.found.as_ref().map_or(Long(0), |found| found.lease);
                if let Some(found) = found {
                    if kept == Long(0) || !same_object(found, &target) {
                        return Err(Refused::AlreadyBound.into());
                    }
                    if self.keep_alive(kept, time).await? {
                        return Ok(Step::Nothing);
                    }
                }
                lease = self.grant(time).await?;
                target
            }
            Change::BindNewContext { .. } => {
                may_bind(found, Over::Nothing)?;
                let made = self.number().await?;
                compare.push(Compare::missing(keys.context(made)));
                success.push(Op::put(keys.context(made), Vec::new()));
                Target::Context(made)
            }
            change => Target::Group(regroup(found, change)?),
        };
        let value = Octets(seal(context, &key, self.mark, &target));
        success.push(Op::Put(super::api::PutRequest { key: at.into(), value, lease }));
        Ok(self.transaction(compare, success))
    }

    /// Returns a transaction that also writes the stamp, as every change does.
    fn transaction(&self, compare: Vec<Compare>, mut success: Vec<Op>) -> Step {
        success.push(Op::put(self.shared.keys.stamp(), Vec::new()));
        Step::Ask(TxnRequest { compare, success, failure: self.reads() })
    }

    /// Returns the number of its new context.
    async fn number(&mut self) -> Result<ContextId, Failure> {
        match self.made {
            Some(made) => Ok(made),
            None => Ok(*self.made.insert(self.shared.fresh_id(self.until).await?)),
        }
    }

    /// Returns its new lease.
    async fn grant(&mut self, time: Duration) -> Result<Long, Failure> {
        if let Some(lease) = self.lease {
            return Ok(lease);
        }
        let grant = GrantRequest { ttl: seconds(time) };
        // An unknown lease ends by itself.
        let lease: Lease = self.shared.cluster.ask_any("/v3/lease/grant", &grant, self.until).await?;
        Ok(*self.lease.insert(lease.id))
    }

    /// Renews a lease if it exists and lasts at least as long.
    async fn keep_alive(&self, id: Long, time: Duration) -> Result<bool, Failure> {
        let keep = KeepAliveRequest { id };
        let kept: KeptAlive = self.shared.cluster.ask_any("/v3/lease/keepalive", &keep, self.until).await?;
        Ok(kept.result.ttl >= seconds(time))
    }
}

fn seconds(time: Duration) -> Long {
    Long(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}
