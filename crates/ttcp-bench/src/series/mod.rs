//! The test `series`: messages of one kind and size, of which one is sent and timed in each time frame.
//!
//! A message has 16 bytes (sending time, number, count of elements) and a number of units of 32 bytes. It is
//! a call with a short reply, or a oneway. The server records the time at which it has decoded the message.
//! Client and server must run on the same machine, because they must use the same clock.

mod arrival_log;

use std::future::Future;

use anyhow::{Context, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::work::{CallMode, MessageKind, Test, Work};

pub(crate) use arrival_log::{Arrival, ArrivalLog, Arrivals};

/// Number of messages before the counted ones. The server checks the contents of these messages.
const CHECKED_MESSAGES: u32 = 3;
/// Time within which the server must report all messages, in nanoseconds.
const REPORT_TIMEOUT_NS: u64 = 10_000_000_000;

/// The result of the test. Each list has a time for each counted message, in the order of sending.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SeriesLine {
    pub(crate) peer: String,
    pub(crate) test: Test,
    pub(crate) kind: MessageKind,
    pub(crate) mode: CallMode,
    /// Units of 32 bytes in each message.
    pub(crate) units: u32,
    /// Size of each message, in bytes.
    pub(crate) size: u64,
    /// Number of counted messages.
    pub(crate) n: u32,
    pub(crate) frame_us: u64,
    /// Number of messages before the counted ones whose contents the server found to be correct.
    pub(crate) checked: u32,
    /// Number of counted messages that the server received.
    pub(crate) arrived: u32,
    pub(crate) mean_us: f64,
    /// When the client began to send each message, from the start of the first frame.
    pub(crate) start_ns: Vec<u64>,
    /// How long the client was occupied with each message.
    pub(crate) time_ns: Vec<u64>,
    /// How long it took from the start of each message until the server had decoded it.
    pub(crate) latency_ns: Vec<u64>,
}

/// The calls of a client for one kind and mode of messages. Times are nanoseconds on the clock of [`now`].
pub(crate) trait SeriesCalls {
    /// Makes the server discard the recorded messages. If `elements` is not 0, the server then checks that
    /// each message consists of that many elements of the test pattern.
    fn begin(&self, elements: u32) -> impl Future<Output = anyhow::Result<()>> + Send;
    /// Sends a message. If it is a call, returns the time at which the server had decoded it.
    fn send(&self, sent: u64, number: u32) -> impl Future<Output = anyhow::Result<Option<u64>>> + Send;
    fn arrivals(&self) -> impl Future<Output = anyhow::Result<Arrivals>> + Send;
    fn wait_until(&self, time: u64) -> impl Future<Output = ()> + Send;
}

/// Returns the time of the monotonic clock, which all processes of a machine share, in nanoseconds.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Blocks the thread until a time in nanoseconds on the clock of [`now`].
pub(crate) fn sleep_until(time: u64) {
    std::thread::sleep(std::time::Duration::from_nanos(time.saturating_sub(now())));
}

/// Runs the test. The contents of the first messages are checked; the messages after them are counted.
pub(crate) async fn run(peer: &str, work: &Work, calls: &impl SeriesCalls) -> anyhow::Result<SeriesLine> {
    let options = work.series;
    calls.begin(options.elements()).await?;
    let mut sent = Vec::new();
    for number in 0..CHECKED_MESSAGES {
        let at = now();
        let arrived = calls.send(at, number).await?;
        sent.push(SentMessage { at, duration: now() - at, arrived });
    }
    let arrivals = confirm(calls, &sent).await?;
    ensure!(
        arrivals.wrong_count == 0,
        "{} of {CHECKED_MESSAGES} messages arrived with wrong contents",
        arrivals.wrong_count
    );

    calls.begin(0).await?;
    sent.clear();
    let frame_ns = options.frame * 1_000;
    let origin = now();
    let mut due = origin;
    for number in 0..work.calls() {
        calls.wait_until(due).await;
        let at = now();
        let arrived = calls.send(at, number).await?;
        let end = now();
        sent.push(SentMessage { at, duration: end - at, arrived });
        // The next message is due at the first start of a frame that has not passed yet.
        due = origin + (end - origin).next_multiple_of(frame_ns);
    }
    let arrivals = confirm(calls, &sent).await?;
    let times: Vec<u64> = sent.iter().map(|message| message.duration).collect();
    Ok(SeriesLine {
        peer: peer.to_owned(),
        test: Test::Series,
        kind: options.kind,
        mode: options.mode,
        units: options.units,
        size: options.size(),
        n: work.calls(),
        frame_us: options.frame,
        checked: CHECKED_MESSAGES,
        arrived: u32::try_from(arrivals.all.len())?,
        mean_us: (times.iter().sum::<u64>() as f64 / times.len().max(1) as f64).round() / 1e3,
        start_ns: sent.iter().map(|message| message.at - origin).collect(),
        time_ns: times,
        latency_ns: arrivals.all.iter().map(|arrival| arrival.arrived - arrival.sent).collect(),
    })
}

/// A message that the client has sent. Times are in nanoseconds.
struct SentMessage {
    at: u64,
    /// How long the client was occupied with the message.
    duration: u64,
    arrived: Option<u64>,
}

/// Queries the server until it has recorded as many messages as were sent, and checks that it has recorded
/// each message once and with the right time. Returns the record, sorted by message number.
async fn confirm(calls: &impl SeriesCalls, sent: &[SentMessage]) -> anyhow::Result<Arrivals> {
    let begun = now();
    let mut arrivals = calls.arrivals().await?;
    // Servers with several threads may answer before they have handled the last oneways.
    while arrivals.all.len() < sent.len() && now() - begun < REPORT_TIMEOUT_NS {
        calls.wait_until(now() + 1_000_000).await;
        arrivals = calls.arrivals().await?;
    }
    ensure!(
        arrivals.all.len() == sent.len(),
        "{} messages were sent, but {} arrived",
        sent.len(),
        arrivals.all.len()
    );
    arrivals.all.sort_by_key(|arrival| arrival.number);
    for ((arrival, message), number) in arrivals.all.iter().zip(sent).zip(0..) {
        let is_same = arrival.number == number && arrival.sent == message.at;
        ensure!(is_same, "message {number}, sent at {}, arrived as {arrival:?}", message.at);
        arrival
            .arrived
            .checked_sub(arrival.sent)
            .context("a message arrived before it was sent: client and server use different clocks")?;
        if let Some(arrived) = message.arrived {
            ensure!(
                arrived == arrival.arrived,
                "the reply to message {number} says that it arrived at {arrived}, but the record has {arrival:?}"
            );
            ensure!(
                arrived - message.at <= message.duration,
                "message {number} arrived after its reply: client and server use different clocks"
            );
        }
    }
    Ok(arrivals)
}

/// Waits in a tokio runtime until a time in nanoseconds on the clock of [`now`]. The runtime's timer has a
/// resolution of a millisecond. Therefore the thread itself sleeps for the last part.
pub(crate) fn wait_in_tokio(time: u64) -> impl Future<Output = ()> {
    const LAST_PART_NS: u64 = 2_000_000;
    let left_ns = time.saturating_sub(now());
    async move {
        // A short wait uses the timer too, so that the ORB can finish its pending work.
        let timer_part_ns = if left_ns > LAST_PART_NS { left_ns - LAST_PART_NS } else { left_ns };
        tokio::time::sleep(std::time::Duration::from_nanos(timer_part_ns)).await;
        sleep_until(time);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::future::ready;

    use clap::ValueEnum;

    use super::*;
    use crate::blocking::complete;
    use crate::work::parse_work as work;

    /// A server in memory with injected faults.
    #[derive(Default)]
    struct FakeServer {
        log: RefCell<ArrivalLog>,
        is_oneway: bool,
        records_twice: bool,
        is_corrupt: bool,
        clock_is_late: bool,
        queries: Cell<u32>,
    }

    impl SeriesCalls for FakeServer {
        fn begin(&self, elements: u32) -> impl Future<Output = anyhow::Result<()>> + Send {
            self.log.borrow_mut().begin(elements);
            ready(Ok(()))
        }

        fn send(&self, sent: u64, number: u32) -> impl Future<Output = anyhow::Result<Option<u64>>> + Send {
            let arrived = if self.clock_is_late { sent - 1 } else { now() };
            for _ in 0..=u32::from(self.records_twice) {
                let has_elements = |elements| elements == 32 && !self.is_corrupt;
                self.log.borrow_mut().record(Arrival { sent, arrived, number }, has_elements);
            }
            ready(Ok((!self.is_oneway).then_some(arrived)))
        }

        fn arrivals(&self) -> impl Future<Output = anyhow::Result<Arrivals>> + Send {
            self.queries.set(self.queries.get() + 1);
            let mut arrivals = self.log.borrow().arrivals();
            if self.queries.get() % 2 == 1 {
                // The answer to every other query is incomplete.
                arrivals.all.pop();
            }
            arrivals.all.reverse();
            ready(Ok(arrivals))
        }

        fn wait_until(&self, time: u64) -> impl Future<Output = ()> + Send {
            sleep_until(time);
            ready(())
        }
    }

    #[test]
    fn each_message_is_recorded_and_sent_in_a_frame_of_its_own() {
        for is_oneway in [false, true] {
            let server = FakeServer { is_oneway, ..FakeServer::default() };
            let work = work("series --n 4 --kind float --units 4 --frame 500");
            let line = complete(run("t", &work, &server)).unwrap();
            assert_eq!((line.size, line.n, line.checked, line.arrived), (144, 4, 3, 4));
            let all = [&line.start_ns, &line.time_ns, &line.latency_ns];
            assert!(all.iter().all(|times| times.len() == 4), "{line:?}");
            let frames: Vec<u64> = line.start_ns.iter().map(|start| start / 500_000).collect();
            assert!(frames.windows(2).all(|pair| pair[0] < pair[1]), "one a frame: {line:?}");
        }
    }

    #[test]
    fn wrong_contents_numbers_and_times_are_errors() {
        let error = |server: FakeServer| {
            let work = work("series --n 3 --kind double --units 8 --frame 1");
            complete(run("t", &work, &server)).unwrap_err().to_string()
        };
        let corrupt = error(FakeServer { is_corrupt: true, ..FakeServer::default() });
        assert_eq!(corrupt, "3 of 3 messages arrived with wrong contents");
        let twice = FakeServer { records_twice: true, queries: Cell::new(1), ..FakeServer::default() };
        assert_eq!(error(twice), "3 messages were sent, but 6 arrived");
        let late = error(FakeServer { clock_is_late: true, ..FakeServer::default() });
        assert_eq!(late, "a message arrived before it was sent: client and server use different clocks");
    }

    #[test]
    fn message_sizes_equal_those_of_the_published_series() {
        let size = |line: &str| work(line).series.size();
        assert_eq!(size("series --units 75"), 2416);
        assert_eq!(size("series --units 750"), 24_016);
        for kind in MessageKind::TYPED {
            assert_eq!(kind.name(), kind.to_possible_value().unwrap().get_name());
        }
        assert!(work("series --n 1001").check().is_err() && work("series").check().is_ok());
        assert_eq!(work("series").calls(), 50);
    }
}
