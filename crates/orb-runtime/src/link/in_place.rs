//! Plain threads that wait on the socket themselves, see [`crate::blocking`].

use std::sync::MutexGuard;
use std::time::Duration;

use giop_proto::calls::CallId;
use giop_proto::{CallError, Reply};

use super::{AT_ONCE, Link, State, now};
use crate::transport::Socket;

/// How long a thread sleeps at most before it looks again at what it waits for.
const LONGEST: Duration = Duration::from_secs(1);

impl Link {
    /// Waits for the outcome of a call: reads, writes what is left, keeps time. `Err`: somebody else is at the socket, or
    /// there is none to wait on.
    ///
    /// Two system calls a reply, as with epoll: `poll` and `read`.
    pub(super) fn wait_in_place<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        call: CallId,
    ) -> Result<Result<Reply, CallError>, MutexGuard<'a, State>> {
        loop {
            if let Some(outcome) = state.machine.take_outcome(call) {
                return Ok(outcome);
            }
            if !self.client_only || state.reading || state.writing || !self.socket.can_wait() {
                return Err(state);
            }
            state = self.step_in_place(state, Some(call));
        }
    }

    /// Writes all that is queued, as [`wait_in_place`](Self::wait_in_place) does.
    pub(crate) fn flush_in_place(&self) {
        let mut state = self.lock();
        if let Some(ring) = self.socket.ring() {
            return self.submit(ring, state);
        }
        while state.machine.has_output() && !state.machine.is_closed() && !state.writing {
            (state, _) = self.flush(state);
            if !state.machine.has_output() || !self.socket.can_wait() {
                return;
            }
            state = self.step_in_place(state, None);
        }
    }

    /// Waits once, for the socket or for the time of the machine's next timeout.
    fn step_in_place<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        call: Option<CallId>,
    ) -> MutexGuard<'a, State> {
        let (reads, writes) = (state.machine.wants_read(), state.machine.has_output());
        let due = state.machine.poll_timeout();
        let mut came = false;
        if reads && !writes && !self.spin.is_zero() {
            (state, came) = self.read(state, self.spin);
        }
        if !came {
            self.set_low_water(&mut state);
            drop(state);
            let longest = due.map_or(LONGEST, |at| at.saturating_duration_since(now()).min(LONGEST));
            // Should it fail, the read and the write below say why.
            let _ = self.socket.wait(reads, writes, longest);
            state = self.lock();
            if reads && !state.reading {
                // Once, whatever tokio knows of the socket.
                (state, _) = self.read(state, AT_ONCE);
            } else {
                state.clock = now();
            }
        }
        self.drain_events(&mut state, call);
        if writes && !state.writing {
            state.blocked = false;
            (state, _) = self.flush_by(state, Socket::write_now);
        }
        if due.is_some_and(|due| due <= state.clock) {
            let now = state.clock;
            state.machine.handle_timeout(now);
            self.drain_events(&mut state, call);
        }
        state
    }
}
