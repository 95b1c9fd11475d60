//! Processor cores for the processes of a run.
//!
//! A scheduler may place server and client on the same core or on different ones, and change this at any
//! time. This can change the time of a call by a factor of three, regardless of the middleware. With `--pin`,
//! servers run on one core and clients on another, so that all peers run under the same conditions.

pub(crate) use system::{Cores, with_cores};

/// A core for all servers, and another core for all clients.
pub(crate) struct PinnedCores {
    pub(crate) server: Cores,
    pub(crate) client: Cores,
}

#[cfg(target_os = "linux")]
mod system {
    use anyhow::Context;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::PinnedCores;

    pub(crate) type Cores = CpuSet;

    impl PinnedCores {
        /// Chooses the first two cores that this program may use.
        pub(crate) fn choose() -> anyhow::Result<PinnedCores> {
            let allowed = sched_getaffinity(None).context("cannot read which cores this program may use")?;
            let mut single = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).map(|cpu| {
                let mut set = CpuSet::new();
                set.set(cpu);
                set
            });
            let (server, client) = single.next().zip(single.next()).context("--pin needs two cores")?;
            Ok(PinnedCores { server, client })
        }
    }

    /// Calls `start` while this thread is restricted to `cores`. Processes that it creates stay restricted.
    pub(crate) fn with_cores<T>(
        cores: Option<&Cores>,
        start: impl FnOnce() -> std::io::Result<T>,
    ) -> std::io::Result<T> {
        let Some(cores) = cores else { return start() };
        let before = sched_getaffinity(None)?;
        sched_setaffinity(None, cores)?;
        let started = start();
        sched_setaffinity(None, &before)?;
        started
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::PinnedCores;

    /// A set of cores. No value exists, because pinning is not supported.
    pub(crate) enum Cores {}

    impl PinnedCores {
        pub(crate) fn choose() -> anyhow::Result<PinnedCores> {
            anyhow::bail!("--pin works on Linux only")
        }
    }

    pub(crate) fn with_cores<T>(
        _: Option<&Cores>,
        start: impl FnOnce() -> std::io::Result<T>,
    ) -> std::io::Result<T> {
        start()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::thread::sched_getaffinity;

    use super::*;

    #[test]
    fn cores_are_restricted_only_during_the_call() {
        let before = sched_getaffinity(None).unwrap();
        // With only one core, nothing can be pinned.
        let Ok(pinned_cores) = PinnedCores::choose() else { return assert_eq!(before.count(), 1) };
        let inside = with_cores(Some(&pinned_cores.client), || Ok(sched_getaffinity(None)?)).unwrap();
        assert_eq!(inside, pinned_cores.client);
        assert_ne!(pinned_cores.server, pinned_cores.client);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        assert_eq!(with_cores(None, || Ok(sched_getaffinity(None)?)).unwrap(), before);
    }
}
