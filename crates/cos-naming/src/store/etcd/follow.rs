//! Reading all names, following their changes, and detecting whether etcd answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use zorb::OneLine;

use super::api::{
    Compare, Long, Octets, Op, RangeRequest, RangeResponse, TxnRequest, TxnResponse, WatchCreate, WatchLine,
    WatchRequest, behind,
};
use super::cache::Content;
use super::http::Failure;
use super::{ConnectError, ContextId, FORMAT, Shared};

/// The number of bindings that are requested at a time.
const PAGE: i64 = 1000;

/// The interval at which etcd is probed without client requests.
const PROBE: Duration = Duration::from_secs(1);

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

impl Shared {
    /// Creates the initial keys of a service if they do not exist, and reads everything.
    pub(super) async fn begin(&self) -> Result<(), ConnectError> {
        let gone = |failure: Failure| ConnectError::Away(failure.to_string());
        let until = Instant::now() + self.timeout;
        while let Err(failure) = self.cluster.log_in().await {
            if !self.cluster.goes_on(&failure, until).await {
                return Err(gone(failure));
            }
        }
        let keys = &self.keys;
        let begin = TxnRequest {
            compare: vec![Compare::missing(keys.format())],
            success: vec![
                Op::put(keys.format(), FORMAT.into()),
                Op::put(keys.next(), b"1".to_vec()),
                Op::put(keys.context(ContextId::ROOT), Vec::new()),
                Op::put(keys.stamp(), Vec::new()),
            ],
            failure: vec![Op::get(keys.format())],
        };
        // The transaction is idempotent.
        let answer: TxnResponse = self.cluster.ask_any("/v3/kv/txn", &begin, until).await.map_err(gone)?;
        if !answer.succeeded {
            let format = answer.responses.into_iter().filter_map(|one| one.response_range);
            let found = format.flat_map(|range| range.kvs).next().map(|kv| kv.value.0).unwrap_or_default();
            if found != FORMAT.as_bytes() {
                let found = String::from_utf8_lossy(&found).escape_debug().to_string();
                return Err(ConnectError::Format { prefix: keys.prefix.clone(), found });
            }
        }
        self.load().await.map_err(gone)
    }

    /// Reads everything, as of one revision.
    async fn load(&self) -> Result<(), Failure> {
        let mut content = Content::default();
        let (mut key, mut revision) = (Octets::from(self.keys.prefix.clone()), Long(0));
        loop {
            let range_end = behind(&self.keys.prefix);
            let range = RangeRequest { key, range_end, limit: Long(PAGE), revision, keys_only: false };
            let until = Instant::now() + self.timeout;
            let page: RangeResponse = self.cluster.ask_any("/v3/kv/range", &range, until).await?;
            if revision == Long(0) {
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
        self.applied.send_replace(revision.0);
        Ok(())
    }

    /// Waits until the cache has all changes acknowledged before the call. Concurrent callers share one
    /// request.
    pub(super) async fn barrier(&self) -> Result<(), Failure> {
        // A request that has already started may not include the latest acknowledged changes.
        let needed = self.barriers.load(Ordering::Acquire) + 1;
        let mut through = self.barrier.lock().await;
        if *through >= needed {
            return Ok(());
        }
        let number = self.barriers.fetch_add(1, Ordering::AcqRel) + 1;
        let until = Instant::now() + self.timeout;
        let stamp =
            RangeRequest { key: self.keys.stamp().into(), keys_only: true, ..RangeRequest::default() };
        let reached = match self.cluster.ask_any::<_, RangeResponse>("/v3/kv/range", &stamp, until).await {
            Ok(found) => {
                let last = found.kvs.first().map_or(0, |kv| kv.mod_revision.0);
                self.reached(last, until).await
            }
            Err(failure) => Err(failure),
        };
        match &reached {
            Ok(()) => {
                *through = number;
                self.set_current();
            }
            Err(failure) => self.set_away(failure),
        }
        reached
    }

    /// Waits until the watch has reported the changes up to a revision.
    pub(super) async fn reached(&self, revision: i64, until: Instant) -> Result<(), Failure> {
        let mut applied = self.applied.subscribe();
        loop {
            let reached = applied.wait_for(|applied| *applied >= revision);
            match timeout(self.patience, reached).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(closed)) => return Err(Failure::NotSent(closed.to_string())),
                Err(_) if Instant::now() < until => self.restart.notify_one(),
                Err(_) => return Err(Failure::NotSent("etcd does not tell what happens".to_owned())),
            }
        }
    }
}

/// Makes the cache follow etcd, forever.
pub(super) async fn follow(shared: Arc<Shared>) {
    loop {
        match watch(&shared).await {
            Ok(()) => {}
            Err(Failure::Compacted) => {
                tracing::info!("etcd has forgotten what happened since: all names are read anew");
                while let Err(error) = shared.load().await {
                    tracing::debug!(%error, "names are not read");
                    sleep(PAUSE).await;
                }
                continue;
            }
            Err(Failure::LoggedOut(error)) => {
                tracing::debug!(error = %OneLine::new(&error), "etcd wants to know who this is");
                let _ = shared.cluster.log_in().await;
            }
            Err(error) => tracing::debug!(%error, "a watch ended"),
        }
        sleep(PAUSE).await;
    }
}

/// Follows the watch of one member.
async fn watch(shared: &Shared) -> Result<(), Failure> {
    let (key, range_end) = (shared.keys.prefix.clone().into(), behind(&shared.keys.prefix));
    let start_revision = Long(*shared.applied.borrow() + 1);
    let create_request = WatchCreate { key, range_end, start_revision };
    let mut lines = shared.cluster.stream("/v3/watch", &WatchRequest { create_request }).await?;
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = shared.restart.notified() => Ok(None),
        };
        let unusable = match line {
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
                        shared.applied.send_replace(last);
                    }
                    continue;
                }
                Ok(WatchLine { error, .. }) => error.map_or_else(String::new, |error| error.to_string()),
                Err(error) => error.to_string(),
            },
            Ok(None) => "no more comes".to_owned(),
            Err(error) => error.to_string(),
        };
        shared.cluster.leave(lines.from);
        return Err(Failure::Unknown(format!("etcd at {}: {unusable}", lines.address)));
    }
}

/// Detects in time that etcd does not answer, or that it answers again.
pub(super) async fn probe(shared: Arc<Shared>) {
    let mut ticks = interval(PROBE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // The barrier records its outcome.
        let _ = shared.barrier().await;
    }
}
