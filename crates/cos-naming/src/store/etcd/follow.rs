//! Reads all names from etcd, follows their changes by a watch, and detects whether etcd answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use zorb::OneLine;

use super::api::{
    Base64Bytes, Compare, Op, RangeRequest, RangeResponse, TextI64, TxnRequest, TxnResponse, WatchCreate,
    WatchLine, WatchRequest, end_of_prefix,
};
use super::cache::Content;
use super::http::Failure;
use super::{ConnectError, ContextId, FORMAT, Shared};

/// The maximum number of keys in one response while all names are read.
const MAX_PAGE_KEYS: i64 = 1000;

/// The interval at which the store checks whether etcd answers.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The pause before a failed watch or a failed read of all names is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

impl Shared {
    /// Creates the initial keys of a service if they do not exist, and reads all names.
    pub(super) async fn initialize(&self) -> Result<(), ConnectError> {
        let unavailable = |failure: Failure| ConnectError::Unavailable(failure.to_string());
        let deadline = Instant::now() + self.timeout;
        while let Err(failure) = self.cluster.log_in().await {
            if !self.cluster.prepare_retry(&failure, deadline).await {
                return Err(unavailable(failure));
            }
        }
        let keys = &self.keys;
        let create = TxnRequest {
            compare: vec![Compare::missing(keys.format())],
            success: vec![
                Op::put(keys.format(), FORMAT.into()),
                Op::put(keys.next_context(), b"1".to_vec()),
                Op::put(keys.context(ContextId::ROOT), Vec::new()),
                Op::put(keys.last_change(), Vec::new()),
            ],
            failure: vec![Op::get(keys.format())],
        };
        // This may be repeated, because it has an effect only if the key of the format is missing.
        let created: TxnResponse =
            self.cluster.request_from_any("/v3/kv/txn", &create, deadline).await.map_err(unavailable)?;
        if !created.succeeded {
            let format = created.responses.into_iter().filter_map(|response| response.response_range);
            let found = format.flat_map(|range| range.kvs).next().map(|kv| kv.value.0).unwrap_or_default();
            if found != FORMAT.as_bytes() {
                let found = String::from_utf8_lossy(&found).escape_debug().to_string();
                return Err(ConnectError::Format { prefix: keys.prefix.clone(), found });
            }
        }
        self.load().await.map_err(unavailable)
    }

    async fn load(&self) -> Result<(), Failure> {
        let mut content = Content::default();
        let (mut key, mut revision) = (Base64Bytes::from(self.keys.prefix.clone()), TextI64(0));
        loop {
            let range_end = end_of_prefix(&self.keys.prefix);
            let range =
                RangeRequest { key, range_end, limit: TextI64(MAX_PAGE_KEYS), revision, keys_only: false };
            let deadline = Instant::now() + self.timeout;
            let page: RangeResponse = self.cluster.request_from_any("/v3/kv/range", &range, deadline).await?;
            if revision == TextI64(0) {
                revision = page.header.revision;
            }
            page.kvs.iter().for_each(|kv| content.put(&self.keys, kv));
            match page.kvs.into_iter().next_back() {
                Some(last) if page.more => {
                    key = last.key;
                    key.0.push(0);
                }
                _ => break,
            }
        }
        self.cache.replace(content);
        self.applied_revision.send_replace(revision.0);
        Ok(())
    }

    /// Waits until the cache has all changes that were acknowledged before the call. Callers share requests.
    pub(super) async fn barrier(&self) -> Result<(), Failure> {
        // A barrier that has already started may miss the last changes, so wait for the next one.
        let needed_number = self.started_barriers.load(Ordering::Acquire) + 1;
        let mut last_finished = self.last_finished_barrier.lock().await;
        if *last_finished >= needed_number {
            return Ok(());
        }
        let own_number = self.started_barriers.fetch_add(1, Ordering::AcqRel) + 1;
        let deadline = Instant::now() + self.timeout;
        // The revision of this key is that of the last change.
        let key = self.keys.last_change().into();
        let range = RangeRequest { key, keys_only: true, ..RangeRequest::default() };
        let found = self.cluster.request_from_any::<_, RangeResponse>("/v3/kv/range", &range, deadline).await;
        let result = match found {
            Ok(found) => {
                let revision = found.kvs.first().map_or(0, |kv| kv.mod_revision.0);
                self.wait_for_revision(revision, deadline).await
            }
            Err(failure) => Err(failure),
        };
        match &result {
            Ok(()) => {
                *last_finished = own_number;
                self.set_available();
            }
            Err(failure) => self.set_unavailable(failure),
        }
        result
    }

    /// Waits until the cache has all changes up to a revision. Restarts the watch if it is slow.
    pub(super) async fn wait_for_revision(&self, revision: i64, deadline: Instant) -> Result<(), Failure> {
        let mut applied = self.applied_revision.subscribe();
        loop {
            let has_revision = applied.wait_for(|applied| *applied >= revision);
            match timeout(self.member_timeout, has_revision).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(closed)) => return Err(Failure::NotSent(closed.to_string())),
                Err(_) if Instant::now() < deadline => self.restart_watch.notify_one(),
                Err(_) => return Err(Failure::NotSent("etcd does not report changes".to_owned())),
            }
        }
    }
}

/// Updates the cache with all changes in etcd. Never returns.
pub(super) async fn follow(shared: Arc<Shared>) {
    loop {
        match watch(&shared).await {
            Ok(()) => {}
            Err(Failure::Compacted) => {
                tracing::info!(
                    "etcd has deleted the history of changes that the naming service needs; reading all names again"
                );
                while let Err(error) = shared.load().await {
                    tracing::debug!(%error, "cannot read the names");
                    sleep(RETRY_PAUSE).await;
                }
                continue;
            }
            Err(Failure::LoggedOut(error)) => {
                tracing::debug!(error = %OneLine::new(&error), "etcd requires a new login");
                let _ = shared.cluster.log_in().await;
            }
            Err(error) => tracing::debug!(%error, "the watch of etcd failed"),
        }
        sleep(RETRY_PAUSE).await;
    }
}

/// Applies the changes that the preferred member reports, until the watch fails, ends, or must be restarted.
async fn watch(shared: &Shared) -> Result<(), Failure> {
    let (key, range_end) = (shared.keys.prefix.clone().into(), end_of_prefix(&shared.keys.prefix));
    let start_revision = TextI64(*shared.applied_revision.borrow() + 1);
    let create_request = WatchCreate { key, range_end, start_revision };
    let mut lines = shared.cluster.stream("/v3/watch", &WatchRequest { create_request }).await?;
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = shared.restart_watch.notified() => Ok(None),
        };
        let reason = match line {
            Ok(Some(line)) => match serde_json::from_slice::<WatchLine>(&line) {
                Ok(WatchLine { result: Some(response), .. }) if response.canceled => {
                    if response.compact_revision.0 > 0 {
                        return Err(Failure::Compacted);
                    }
                    "the watch was cancelled".to_owned()
                }
                Ok(WatchLine { result: Some(response), .. }) => {
                    if let Some(last) = response.events.iter().map(|event| event.kv.mod_revision.0).max() {
                        shared.cache.apply(&shared.keys, &response.events);
                        shared.applied_revision.send_replace(last);
                    }
                    continue;
                }
                Ok(WatchLine { error, .. }) => {
                    error.map_or_else(|| "the watch reported nothing".to_owned(), |error| error.to_string())
                }
                Err(error) => error.to_string(),
            },
            Ok(None) => "the watch ended, or was restarted because it lagged".to_owned(),
            Err(error) => error.to_string(),
        };
        shared.cluster.prefer_next(lines.member_index);
        return Err(Failure::MaybeExecuted(format!("etcd at {}: {reason}", lines.address)));
    }
}

/// Detects that etcd stops or starts to answer, even if clients send no requests. Never returns.
pub(super) async fn probe(shared: Arc<Shared>) {
    let mut ticks = interval(PROBE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // `barrier` records whether etcd answers.
        let _ = shared.barrier().await;
    }
}
