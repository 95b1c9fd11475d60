//! Makes changes by transactions of etcd. Failed requests are repeated, but each change is made only once.

use std::time::Duration;

use tokio::time::Instant;
use zorb::CompletionStatus;

use super::super::memory::{changed_group, check_bind, check_destroy};
use super::super::{MayReplace, Refusal};
use super::api::{
    Base64Bytes, Compare, GrantRequest, KeepAliveRequest, KeepAliveResponse, Lease, Op, OpResponse,
    RangeRequest, RangeResponse, TextI64, TxnRequest, TxnResponse, end_of_prefix,
};
use super::cache::{Entry, is_same_object};
use super::http::Failure;
use super::keys::encode_value;
use super::{Change, ChangeError, ContextId, Key, Shared, StoreError, Target, unavailable};

/// The number of context numbers that a server reserves at a time. Numbers that it does not use are lost.
const RESERVED_ID_COUNT: u64 = 1000;

impl Shared {
    pub(super) async fn change(&self, change: Change) -> Result<Option<ContextId>, ChangeError> {
        if self.unavailable_since().is_some() {
            let failure = Failure::NotSent("no majority of the members of etcd answers".to_owned());
            return Err(unavailable(&failure, CompletionStatus::No).into());
        }
        let mut execution = ChangeExecution {
            shared: self,
            change,
            deadline: Instant::now() + self.timeout,
            change_id: self.unique_change_id(),
            initial_revision: TextI64(*self.applied_revision.borrow()),
            new_context: None,
            lease: None,
            may_be_made: false,
        };
        execution.run().await
    }

    /// Returns a context number that was never used. Reserves further numbers in etcd if necessary.
    async fn unused_context_id(&self, deadline: Instant) -> Result<ContextId, Failure> {
        let mut ids = self.reserved_ids.lock().await;
        loop {
            if let Some(id) = ids.next() {
                return Ok(ContextId(id));
            }
            let key = self.keys.next_context();
            let get = RangeRequest { key: key.clone().into(), ..RangeRequest::default() };
            let found: RangeResponse = self.cluster.request_from_any("/v3/kv/range", &get, deadline).await?;
            let kv = found.kvs.into_iter().next().unwrap_or_default();
            let first: Option<u64> = std::str::from_utf8(&kv.value.0).ok().and_then(|text| text.parse().ok());
            let first = first
                .ok_or_else(|| Failure::Refused(format!("the value of {key} in etcd is not a number")))?;
            let reserve = TxnRequest {
                compare: vec![Compare::last_changed(key.clone(), kv.mod_revision)],
                success: vec![Op::put(key, (first + RESERVED_ID_COUNT).to_string().into_bytes())],
                failure: Vec::new(),
            };
            // If etcd executes the request but the response is lost, the loop reserves further numbers.
            let reserved: TxnResponse =
                self.cluster.request_from_any("/v3/kv/txn", &reserve, deadline).await?;
            if reserved.succeeded {
                *ids = first..first + RESERVED_ID_COUNT;
            }
        }
    }
}

struct ChangeExecution<'s> {
    shared: &'s Shared,
    change: Change,
    deadline: Instant,
    /// Written with the binding, so that a repeated attempt finds out that the change has been made.
    change_id: u128,
    /// The revision of the cache when the change was requested.
    initial_revision: TextI64,
    /// The context that the change creates, after its number has been reserved.
    new_context: Option<ContextId>,
    lease: Option<TextI64>,
    /// True if a transaction was sent and its outcome is not known.
    may_be_made: bool,
}

/// The part of the stored data on which a change depends.
struct View {
    /// True if the context exists that the change modifies, creates or destroys.
    context_exists: bool,
    /// True if the change destroys a context, and the context has bindings.
    has_bindings: bool,
    /// The current binding of the name that the change modifies.
    entry: Option<Entry>,
    /// True if the data was read from etcd, false if from the cache.
    is_from_etcd: bool,
}

enum Step {
    Send(TxnRequest),
    /// No transaction is needed, because the lease of the binding has been renewed.
    AlreadyMade,
}

enum PlanError {
    Refused(Refusal),
    /// The current binding in the view is damaged.
    Store(StoreError),
    Failure(Failure),
}

impl From<Refusal> for PlanError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StoreError> for PlanError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Failure> for PlanError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl ChangeExecution<'_> {
    /// Makes the change, first based on the cache. Refuses it only if the data in etcd does not allow it.
    async fn run(&mut self) -> Result<Option<ContextId>, ChangeError> {
        let mut view = self.cached_view();
        loop {
            // The cache does not show whether the lease of a binding still exists.
            if !view.is_from_etcd && matches!(self.change, Change::BindFor { .. }) {
                view = self.read_view().await?;
            }
            if self.may_be_made && view.is_from_etcd && self.is_made(&view) {
                return Ok(self.new_context);
            }
            let txn = match self.plan(&view).await {
                Ok(Step::Send(txn)) => txn,
                Ok(Step::AlreadyMade) => return Ok(None),
                Err(PlanError::Failure(failure)) => return Err(self.change_error(&failure)),
                Err(_) if !view.is_from_etcd => {
                    view = self.read_view().await?;
                    continue;
                }
                Err(PlanError::Refused(_)) if self.may_conflict_with_itself(&view) => {
                    let reason = "etcd did not report whether the change was made";
                    return Err(self.change_error(&Failure::MaybeExecuted(reason.to_owned())));
                }
                Err(PlanError::Refused(refusal)) => return Err(refusal.into()),
                Err(PlanError::Store(error)) => return Err(error.into()),
            };
            match self.shared.cluster.request::<_, TxnResponse>("/v3/kv/txn", &txn).await {
                Ok(response) if response.succeeded => {
                    // The change must be in the cache before it is acknowledged. If the cache does not
                    // receive it in time, the change has been made all the same.
                    let revision = response.header.revision.0;
                    if let Err(error) = self.shared.wait_for_revision(revision, self.deadline).await {
                        self.shared.set_unavailable(&error);
                    }
                    return Ok(self.new_context);
                }
                Ok(response) => {
                    if Instant::now() > self.deadline {
                        let reason = "other clients changed the same name during every attempt";
                        return Err(self.change_error(&Failure::NotSent(reason.to_owned())));
                    }
                    view = self.decode_view(response.responses);
                }
                Err(failure) => {
                    self.may_be_made |= matches!(failure, Failure::MaybeExecuted(_));
                    if !self.shared.cluster.prepare_retry(&failure, self.deadline).await {
                        return Err(self.change_error(&failure));
                    }
                }
            }
        }
    }

    fn change_error(&self, failure: &Failure) -> ChangeError {
        let is_unknown = self.may_be_made || matches!(failure, Failure::MaybeExecuted(_));
        if let Failure::Refused(reason) = failure
            && !is_unknown
        {
            return StoreError::broken(reason).into();
        }
        if matches!(failure, Failure::NotSent(_) | Failure::MaybeExecuted(_))
            && Instant::now() > self.deadline
        {
            self.shared.set_unavailable(failure);
        }
        unavailable(failure, if is_unknown { CompletionStatus::Maybe } else { CompletionStatus::No }).into()
    }

    /// Returns the context and the name that the change modifies. A change that creates a context without a
    /// name modifies neither, and one that destroys a context modifies no name.
    fn modified_name(&self) -> Option<(ContextId, Option<&Key>)> {
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

    fn cached_view(&self) -> View {
        let cache = &self.shared.cache;
        let Some((context, key)) = self.modified_name() else {
            // A new context depends on no data, so this view is correct in etcd too.
            return View { context_exists: false, has_bindings: false, entry: None, is_from_etcd: true };
        };
        View {
            context_exists: cache.has_context(context),
            has_bindings: key.is_none() && cache.has_bindings(context),
            entry: key.and_then(|key| cache.entry(context, key)),
            is_from_etcd: false,
        }
    }

    fn view_reads(&self) -> Vec<Op> {
        let keys = &self.shared.keys;
        match self.modified_name() {
            // A previous attempt may have created the context.
            None => self.new_context.map(|id| Op::get(keys.context(id))).into_iter().collect(),
            Some((context, Some(key))) => {
                vec![Op::get(keys.context(context)), Op::get(keys.binding(context, key))]
            }
            Some((context, None)) => {
                let prefix = keys.bindings(context);
                let range_end = end_of_prefix(&prefix);
                let first = RangeRequest {
                    key: prefix.into(),
                    range_end,
                    limit: TextI64(1),
                    keys_only: true,
                    ..RangeRequest::default()
                };
                vec![Op::get(keys.context(context)), Op::Range(first)]
            }
        }
    }

    async fn read_view(&self) -> Result<View, ChangeError> {
        let txn = TxnRequest { success: self.view_reads(), ..TxnRequest::default() };
        let response = self.shared.cluster.request_from_any("/v3/kv/txn", &txn, self.deadline).await;
        let response: TxnResponse = response.map_err(|failure| self.change_error(&failure))?;
        Ok(self.decode_view(response.responses))
    }

    fn decode_view(&self, responses: Vec<OpResponse>) -> View {
        let mut ranges =
            responses.into_iter().map(|response| response.response_range.unwrap_or_default().kvs);
        let context_exists = ranges.next().is_some_and(|kvs| !kvs.is_empty());
        let second = ranges.next().and_then(|kvs| kvs.into_iter().next());
        match self.modified_name() {
            Some((context, Some(key))) => {
                let entry = second.map(|kv| Entry::decode(context, key, &kv));
                View { context_exists, has_bindings: false, entry, is_from_etcd: true }
            }
            _ => View { context_exists, has_bindings: second.is_some(), entry: None, is_from_etcd: true },
        }
    }

    /// Returns whether the view shows that an earlier attempt has made the change.
    fn is_made(&self, view: &View) -> bool {
        match self.change {
            Change::NewContext => view.context_exists,
            _ => view.entry.as_ref().is_some_and(|entry| entry.change_id == self.change_id),
        }
    }

    /// Returns whether the change may be refused only because an earlier attempt has made it.
    fn may_conflict_with_itself(&self, view: &View) -> bool {
        self.may_be_made
            && match (&self.change, &view.entry) {
                (Change::Unbind { .. } | Change::Destroy { .. }, _) => true,
                (_, Some(entry)) => entry.revision > self.initial_revision,
                (_, None) => true,
            }
    }

    /// Returns the transaction that makes the change, provided that etcd still has the data of the view.
    async fn plan(&mut self, view: &View) -> Result<Step, PlanError> {
        let shared = self.shared;
        let keys = &shared.keys;
        let Some((context, key)) = self.modified_name().map(|(context, key)| (context, key.cloned())) else {
            let id = self.new_context_id().await?;
            let success = vec![Op::put(keys.context(id), Vec::new())];
            return Ok(self.transaction(vec![Compare::missing(keys.context(id))], success));
        };
        let context_exists = Compare::exists(keys.context(context));
        let Some(key) = key else {
            check_destroy(context, view.context_exists.then_some(view.has_bindings))?;
            let compare = vec![context_exists, Compare::none_with_prefix(&keys.bindings(context))];
            return Ok(self.transaction(compare, vec![Op::delete(keys.context(context))]));
        };
        if !view.context_exists {
            return Err(Refusal::NoContext.into());
        }
        let binding_key = keys.binding(context, &key);
        if let Change::Unbind { .. } = self.change {
            view.entry.as_ref().ok_or(Refusal::NotBound)?;
            let compare = vec![context_exists, Compare::exists(binding_key.clone())];
            return Ok(self.transaction(compare, vec![Op::delete(binding_key)]));
        }
        let found = view.entry.as_ref().map(Entry::target).transpose()?;
        let revision = view.entry.as_ref().map_or(TextI64(0), |entry| entry.revision);
        let mut compare = vec![context_exists, Compare::last_changed(binding_key.clone(), revision)];
        let mut success = Vec::new();
        let mut lease = TextI64(0);
        let target = match &self.change {
            Change::Bind { target, may_replace, .. } => {
                check_bind(found, *may_replace)?;
                target.clone()
            }
            Change::BindFor { target, time, .. } => {
                let (target, time) = (target.clone(), *time);
                let current_lease = view.entry.as_ref().map_or(TextI64(0), |entry| entry.lease);
                if let Some(found) = found {
                    if current_lease == TextI64(0) || !is_same_object(found, &target) {
                        return Err(Refusal::AlreadyBound.into());
                    }
                    if self.keep_alive(current_lease, time).await? {
                        return Ok(Step::AlreadyMade);
                    }
                }
                lease = self.new_lease(time).await?;
                target
            }
            Change::BindNewContext { .. } => {
                check_bind(found, MayReplace::Nothing)?;
                let id = self.new_context_id().await?;
                compare.push(Compare::missing(keys.context(id)));
                success.push(Op::put(keys.context(id), Vec::new()));
                Target::Context(id)
            }
            change => Target::Group(changed_group(found, change)?),
        };
        let value = Base64Bytes(encode_value(context, &key, self.change_id, &target));
        success.push(Op::Put(super::api::PutRequest { key: binding_key.into(), value, lease }));
        Ok(self.transaction(compare, success))
    }

    /// Returns the step that sends a transaction. Adds the key that every change must write, and the reads of
    /// the view for the case that a condition in `compare` does not hold.
    fn transaction(&self, compare: Vec<Compare>, mut success: Vec<Op>) -> Step {
        success.push(Op::put(self.shared.keys.last_change(), Vec::new()));
        Step::Send(TxnRequest { compare, success, failure: self.view_reads() })
    }

    /// Returns the number of the context that the change creates. It is the same in all attempts.
    async fn new_context_id(&mut self) -> Result<ContextId, Failure> {
        match self.new_context {
            Some(id) => Ok(id),
            None => Ok(*self.new_context.insert(self.shared.unused_context_id(self.deadline).await?)),
        }
    }

    /// Returns the lease of the new binding. It is the same in all attempts.
    async fn new_lease(&mut self, time: Duration) -> Result<TextI64, Failure> {
        if let Some(lease) = self.lease {
            return Ok(lease);
        }
        let grant = GrantRequest { ttl: seconds(time) };
        // If the response is lost, the lease stays unused and expires.
        let lease: Lease =
            self.shared.cluster.request_from_any("/v3/lease/grant", &grant, self.deadline).await?;
        Ok(*self.lease.insert(lease.id))
    }

    /// Renews a lease. Returns whether the lease existed and now lasts for at least `time`.
    async fn keep_alive(&self, id: TextI64, time: Duration) -> Result<bool, Failure> {
        let request = KeepAliveRequest { id };
        let response: KeepAliveResponse =
            self.shared.cluster.request_from_any("/v3/lease/keepalive", &request, self.deadline).await?;
        Ok(response.result.ttl >= seconds(time))
    }
}

fn seconds(time: Duration) -> TextI64 {
    TextI64(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}
