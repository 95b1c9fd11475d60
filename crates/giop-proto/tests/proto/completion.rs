//! The mapping from the failure of a call to completion status, retry and system exception.

use std::io::ErrorKind;

use crate::util::cutting::{read, write_all};
use crate::util::messages::{Ask, bare, reply};
use crate::util::{Cut, Pair};
use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{HeaderError, MessageType, ReplyStatus};
use giop_codec::{DecodeError, DecodeErrorKind, Version};
use giop_proto::{CallError, CallErrorKind, CloseReason, ProtocolError, SentPart, SlowPeer};

// clause: exc.completed.nothing_sent, exc.completed.no_reply, exc.completed.reply, exc.when.lost
// clause: exc.when.close_connection, exc.when.reply_undecodable, exc.when.request_timeout, exc.when.retry
// clause: exc.minor.timeout.2, exc.minor.timeout.3, exc.kind.comm_failure, exc.kind.transient
// clause: exc.kind.timeout, exc.kind.imp_limit, exc.kind.marshal
#[test]
fn every_failure_has_its_completion_status_and_exception() {
    use CallErrorKind::{BadReply, Closed, LocalClose, Lost, PeerError, Protocol, Timeout, TooManyCalls};
    use CompletionStatus::{Maybe, No, Yes};
    use SentPart::{Nothing, Partly, Whole};
    use SystemExceptionKind as Kind;

    let lost = Lost(ErrorKind::ConnectionReset.into());
    let garbage = Protocol(ProtocolError::Header(HeaderError::Magic(*b"HTTP")));
    let large = Protocol(ProtocolError::TooLarge { size: 2, limit: 1 });
    let bad = BadReply(DecodeError::new(DecodeErrorKind::EndOfData, 12));
    let none = MinorCode::NONE;
    let table = [
        (Timeout, Nothing, No, false, Kind::Timeout, minor::TIMEOUT_REQUEST_END),
        (Timeout, Partly, No, false, Kind::Timeout, minor::TIMEOUT_REQUEST_END),
        (Timeout, Whole, Maybe, false, Kind::Timeout, minor::TIMEOUT_REPLY_END),
        (Closed, Nothing, No, true, Kind::Transient, none),
        (Closed, Partly, No, true, Kind::Transient, none),
        (Closed, Whole, No, true, Kind::Transient, none),
        (lost, Nothing, No, true, Kind::Transient, none),
        (lost, Partly, No, true, Kind::CommFailure, none),
        (lost, Whole, Maybe, false, Kind::CommFailure, none),
        (garbage, Nothing, No, true, Kind::Transient, none),
        (garbage, Partly, No, true, Kind::CommFailure, none),
        (garbage, Whole, Maybe, false, Kind::CommFailure, none),
        (large, Whole, Maybe, false, Kind::ImpLimit, none),
        (bad, Whole, Yes, false, Kind::Marshal, none),
        (PeerError, Nothing, No, true, Kind::Transient, none),
        (PeerError, Partly, No, true, Kind::CommFailure, none),
        (PeerError, Whole, Maybe, false, Kind::CommFailure, none),
        (LocalClose, Nothing, No, true, Kind::Transient, none),
        (LocalClose, Partly, No, true, Kind::CommFailure, none),
        (LocalClose, Whole, Maybe, false, Kind::CommFailure, none),
        (TooManyCalls, Nothing, No, false, Kind::Transient, minor::TRANSIENT_DISCARDED),
    ];
    for (kind, sent, completed, retryable, exception, minor) in table {
        let error = CallError { kind, sent };
        assert_eq!(error.completed(), completed, "{error}");
        assert_eq!(error.is_retryable(), retryable, "{error}");
        let raised = SystemException::from(error);
        assert_eq!(raised, SystemException::new(exception, minor, completed), "{error}");
        assert!(raised.to_string().contains(&error.to_string()), "{raised}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
}

/// Starts a call of the client whose request is sent as far as `sent` says.
fn call_sent(sent: SentPart) -> (Pair, giop_proto::CallId) {
    let mut pair = Pair::new(Cut::Whole);
    let call = pair.call(&Ask::default());
    if sent != SentPart::Nothing {
        let mut transmit = pair.client.conn.take_transmit().unwrap();
        let len = transmit.contiguous_bytes().unwrap().len();
        transmit.advance(if sent == SentPart::Partly { len - 1 } else { len });
        pair.client.conn.handle_written(transmit, pair.now);
    }
    pair.server.awake = false;
    (pair, call)
}

/// A way in which a connection ends.
type End = fn(&mut Pair);

// clause: exc.completed.nothing_sent, exc.completed.no_reply
#[test]
fn what_had_left_when_the_connection_ended_is_told() {
    let ends: [(End, CallErrorKind); 5] = [
        (|pair| pair.client.eof = true, CallErrorKind::Lost(ErrorKind::UnexpectedEof.into())),
        (
            |pair| pair.client.inject(&bare(Version::V1_2, MessageType::CloseConnection)),
            CallErrorKind::Closed,
        ),
        (
            |pair| pair.client.inject(&bare(Version::V1_2, MessageType::MessageError)),
            CallErrorKind::PeerError,
        ),
        (
            |pair| pair.client.inject(b"GIOP\x01\x02\0\x08\0\0\0\0"),
            CallErrorKind::Protocol(ProtocolError::Header(HeaderError::Type(8))),
        ),
        (|pair| pair.client.conn.abort(CloseReason::Local), CallErrorKind::LocalClose),
    ];
    for (end, kind) in ends {
        for sent in [SentPart::Nothing, SentPart::Partly, SentPart::Whole] {
            let (mut pair, call) = call_sent(sent);
            end(&mut pair);
            // Only the input is processed: queued data stays unwritten.
            let now = pair.now;
            if pair.client.eof {
                pair.client.conn.handle_eof(now);
            } else if pair.client.conn.wants_read() {
                let octets: Vec<u8> = pair.client.wire.drain(..).collect();
                let mut buf = pair.client.conn.take_read_buf();
                buf.io_slices()[0][..octets.len()].copy_from_slice(&octets);
                pair.client.conn.handle_read(buf, octets.len(), now);
            }
            pair.client.poll();
            // MessageError follows the partly sent message, so the rest of that is sent as well.
            let leaves = matches!(kind, CallErrorKind::Protocol(_)) && sent == SentPart::Partly;
            let sent = if leaves { SentPart::Whole } else { sent };
            assert_eq!(pair.client.outcome(call).unwrap_err(), CallError { kind, sent });
        }
    }
}

/// The peer violates the protocol while requests are queued. Those that can be removed from the queue are not
/// sent. A request that is still sent must not be reported as not executed.
#[test]
fn what_leaves_before_an_orderly_end_is_not_said_to_be_unsent() {
    let mut pair = Pair::new(Cut::Whole);
    pair.client.conn.set_accepts_requests(true);
    let first = pair.call(&Ask::default());
    // An answer of the client is queued between its requests.
    read(&mut pair.client, &Ask { id: 1, ..Ask::default() }.octets(), pair.now);
    let request = pair.client.requests.pop_front().unwrap();
    let mut answer = reply(request.version(), request.id(), ReplyStatus::NoException, b"");
    pair.client.conn.request(request.token()).send_reply(&mut answer);
    let last = pair.call(&Ask::default());
    read(&mut pair.client, b"GIOP\x01\x02\0\x08\0\0\0\0", pair.now);
    let sent = [first, last].map(|call| pair.client.outcome(call).unwrap_err().sent);
    assert_eq!(sent, [SentPart::Whole, SentPart::Nothing]);
    let written = write_all(&mut pair.client, pair.now);
    let kinds: Vec<_> = written.iter().map(|message| message[7]).collect();
    let [request, reply, error] = [MessageType::Request, MessageType::Reply, MessageType::MessageError];
    assert_eq!(kinds, [request as u8, reply as u8, error as u8], "what is said to be unsent is not sent");
}

#[test]
fn octets_lent_to_a_writer_count_as_sent() {
    let mut pair = Pair::new(Cut::Whole);
    let call = pair.call(&Ask::default());
    let transmit = pair.client.conn.take_transmit().unwrap();
    pair.client.conn.handle_eof(pair.now);
    pair.client.poll();
    assert_eq!(pair.client.outcome(call).unwrap_err().sent, SentPart::Whole);
    pair.client.conn.handle_written(transmit, pair.now);
    assert!(!pair.client.conn.has_output());
}

#[test]
fn every_end_says_what_happened_and_which_limit_decides() {
    let reasons = [
        (CloseReason::PeerClosed, "with CloseConnection"),
        (CloseReason::PeerMessageError, "MessageError"),
        (CloseReason::Eof, "without CloseConnection"),
        (CloseReason::Io(ErrorKind::ConnectionReset.into()), "connection reset"),
        (CloseReason::Local, "this side"),
        (CloseReason::Idle, "`Limits::idle_timeout`"),
        (CloseReason::Protocol(ProtocolError::TooManyFragmented { limit: 8 }), "`Limits::max_fragmented`"),
        (CloseReason::Protocol(ProtocolError::FragmentMemory { limit: 8 }), "`Limits::max_fragment_memory`"),
        (CloseReason::SlowPeer(SlowPeer::FirstHeader), "`Limits::first_header_timeout`"),
        (CloseReason::SlowPeer(SlowPeer::Message), "`Limits::message_timeout`"),
        (CloseReason::SlowPeer(SlowPeer::Write), "`Limits::write_timeout`"),
        (CloseReason::SlowPeer(SlowPeer::QueuedReplies), "`OrbBuilder::max_receive_memory`"),
        (CloseReason::Protocol(ProtocolError::TooLarge { size: 9, limit: 8 }), "`Limits::max_message_size`"),
        (CloseReason::Unread(5), "`Limits::max_backlog`"),
        (CloseReason::Unanswered(5), "`Limits::max_unanswered`"),
        (CloseReason::Flood(5), "`Limits::max_control_rate`"),
    ];
    for (reason, text) in reasons {
        assert!(reason.to_string().contains(text), "{reason}");
        assert!(
            !text.contains("Limits::") || !reason.to_string().contains("violated the protocol"),
            "{reason}"
        );
        assert_eq!(reason.to_string().lines().count(), 1);
    }
    let os = CloseReason::Io((&std::io::Error::from_raw_os_error(104)).into());
    assert!(os.to_string().contains("104"), "{os}");
}
