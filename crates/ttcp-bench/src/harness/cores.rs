//! Processors for the processes of a run.
//!
//! A scheduler may place server and client on one core or on two, and change that at any time. A call then
//! takes a third of its time or all of it, regardless of the middleware. Pinned to two cores, peers are
//! compared under the same conditions.

pub(crate) use system::{Cores, confined};

/// One core for all servers and another for all clients.
pub(crate) struct Pins {
    pub(crate) server: Cores,
    pub(crate) client: Cores,
}

#[cfg(target_os = "linux")]
mod system {
    use anyhow::Context;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::Pins;

    /// A set of cores.
    pub(crate) type Cores = CpuSet;

    impl Pins {
        /// Chooses the first two cores that this program may use.
        ///
        /// # Errors
        /// There are fewer.
        pub(crate) fn choose() -> anyhow::Result<Pins> {
            let allowed = sched_getaffinity(None).context("cannot tell which cores may be used")?;
            let mut single = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).map(|cpu| {
                let mut set = CpuSet::new();
                set.set(cpu);
                set
            });
            let (server, client) = single.next().zip(single.next()).context("--pin needs two cores")?;
            Ok(Pins { server, client })
        }
    }

    /// Calls `start` while the calling thread is confined to `cores`. A process that is started in this time
    /// stays there.
    pub(crate) fn confined<T>(
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
    use super::Pins;

    /// A set of cores; uninhabited.
    pub(crate) enum Cores {}

    impl Pins {
        /// Returns an error, because pinning is not supported.
        ///
        /// # Errors
        /// Always.
        pub(crate) fn choose() -> anyhow::Result<Pins> {
            anyhow::bail!("--pin works on Linux only")
        }
    }

    /// Calls `start`.
    pub(crate) fn confined<T>(
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
    fn confinement_holds_for_the_call_only() {
        let before = sched_getaffinity(None).unwrap();
        // A machine with one core has no pins.
        let Ok(pins) = Pins::choose() else { return assert_eq!(before.count(), 1) };
        let inside = confined(Some(&pins.client), || Ok(sched_getaffinity(None)?)).unwrap();
        assert_eq!(inside, pins.client);
        assert_ne!(pins.server, pins.client);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        assert_eq!(confined(None, || Ok(sched_getaffinity(None)?)).unwrap(), before);
    }
}
