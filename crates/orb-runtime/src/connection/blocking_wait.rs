//! Blocks a thread on the socket of a connection, for [`crate::blocking`].

use std::time::Duration;

use giop_proto::calls::CallId;
use giop_proto::{CallError, Reply};

use crate::connection::{LockedState, SINGLE_READ, SharedConnection, now};
use crate::transport::Socket;

/// The maximum time for which a thread sleeps before it checks its condition again.
const MAX_SLEEP: Duration = Duration::from_secs(1);

impl SharedConnection {
    /// Waits for the outcome of a call. During this time, reads the socket, writes the queue, and handles
    /// timeouts. Fails if another task uses the socket, or if the thread cannot block on it.
    pub(crate) fn wait_in_place<'a>(
        &'a self,
        mut state: LockedState<'a>,
        call: CallId,
    ) -> Result<Result<Reply, CallError>, LockedState<'a>> {
        loop {
            if let Some(outcome) = state.machine.call(call).take_outcome() {
                return Ok(outcome);
            }
            if !self.callers_may_read
                || state.roles.reading
                || state.write.writing
                || !self.socket.can_block()
            {
                return Err(state);
            }
            state = self.step_in_place(state, Some(call));
        }
    }

    /// Writes the queue. Blocks the thread while the socket accepts no bytes.
    pub(crate) fn flush_in_place(&self) {
        let mut state = self.lock();
        if let Some(ring) = self.socket.ring() {
            return self.submit(ring, state);
        }
        while state.machine.has_output() && !state.machine.lifecycle().is_closed() && !state.write.writing {
            (state, _) = self.flush(state);
            if !state.machine.has_output() || !self.socket.can_block() {
                return;
            }
            state = self.step_in_place(state, None);
        }
    }

    /// Waits once, until the socket is ready or the machine's next timeout is due.
    fn step_in_place<'a>(&'a self, mut state: LockedState<'a>, call: Option<CallId>) -> LockedState<'a> {
        let (reads, writes) = (state.machine.wants_read(), state.machine.has_output());
        let due = state.machine.poll_timeout();
        let mut received = false;
        if reads && !writes && !self.spin_time.is_zero() {
            (state, received) = self.read(state, self.spin_time);
        }
        if !received {
            self.set_low_water(&mut state);
            drop(state);
            let timeout = due.map_or(MAX_SLEEP, |at| at.saturating_duration_since(now()).min(MAX_SLEEP));
            // Ignore an error here, because the following read or write reports it.
            let _ = self.socket.wait(reads, writes, timeout);
            state = self.lock();
            if reads && !state.roles.reading {
                // Make exactly one attempt, regardless of tokio's cached readiness.
                (state, _) = self.read(state, SINGLE_READ);
            } else {
                state.clock = now();
            }
        }
        self.drain_events(&mut state, call);
        if writes && !state.write.writing {
            state.write.blocked = false;
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
