//! The end of a connection: in good order from either side, by loss, by protocol errors.

use std::io;
use std::time::Duration;

use crate::util;
use crate::util::messages::{Ask, bare, fragmented};
use crate::util::{Cut, Pair, every_cut};
use giop_codec::exception::CompletionStatus;
use giop_codec::giop::{HeaderError, MessageHeader, MessageType, RequestId, ResponseFlags};
use giop_codec::{ByteOrder, Version};
use giop_proto::{CallErrorKind, CloseReason, IoFailure, Limits, ProtocolError, SentPart, SlowPeer};

/// Returns the kinds of the messages on their way to the client.
fn kinds(octets: impl IntoIterator<Item = u8>) -> Vec<MessageType> {
    let octets: Vec<u8> = octets.into_iter().collect();
    let mut kinds = Vec::new();
    let mut rest = &octets[..];
    while !rest.is_empty() {
        let header = MessageHeader::decode(rest.first_chunk().unwrap()).unwrap();
        kinds.push(header.kind);
        rest = &rest[12 + header.size as usize..];
    }
    kinds
}

// clause: giop.connection.close_pending, giop.connection.close_resend
#[test]
fn a_closing_server_answers_what_it_has_and_tells_the_rest() {
    every_cut(|pair| {
        let answered = pair.call(&Ask::default());
        pair.drive();
        let request = pair.request();
        pair.server.conn.close(pair.now);
        assert!(pair.server.conn.lifecycle().is_closing() && !pair.server.conn.lifecycle().is_closed());
        // Written before the client knows that the server closes.
        let untold = pair.call(&Ask::default());
        pair.drive();
        assert!(pair.server.requests.is_empty() && !pair.server.closed);
        pair.answer(&request, b"last");
        pair.drive();
        assert_eq!(pair.client.outcome(answered).unwrap().body().rest(), b"last");
        let error = pair.client.outcome(untold).unwrap_err();
        assert_eq!((error.kind, error.sent), (CallErrorKind::Closed, SentPart::Whole));
        assert_eq!(error.completed(), CompletionStatus::No);
        assert!(error.is_retryable());
        assert!(pair.client.closed && pair.server.closed);
        assert_eq!(pair.client.conn.lifecycle().close_reason(), Some(&CloseReason::PeerClosed));
        assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::Local));
    });
}

#[test]
fn oneways_that_came_before_a_server_closes_are_handed_out_and_calls_are_not() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        every_cut(|pair| {
            let ask = |response, id| Ask { version, response, id, ..Ask::default() };
            for id in [100, 102, 104] {
                pair.server.inject(&ask(ResponseFlags::None, id).octets());
                pair.server.inject(&ask(ResponseFlags::Target, id + 100).octets());
            }
            pair.server.conn.close_after_oneways(pair.now);
            pair.drive();
            let ids: Vec<u32> = pair.server.requests.iter().map(|request| request.id().0).collect();
            assert_eq!(ids, [100, 102, 104]);
            for request in std::mem::take(&mut pair.server.requests) {
                pair.server.conn.request(request.token()).finish();
            }
            pair.drive();
            assert!(
                pair.server.conn.accepts_last_oneways()
                    && pair.client.conn.lifecycle().close_reason().is_none()
            );
            // The socket has no more data.
            pair.server.conn.handle_all_read();
            pair.drive();
            assert_eq!(pair.client.conn.lifecycle().close_reason(), Some(&CloseReason::PeerClosed));
            assert_eq!(pair.server.conn.stats().requests_dropped, 3);
            pair.server.inject(&ask(ResponseFlags::None, 200).octets());
            pair.drive();
            assert!(pair.server.requests.is_empty());
        });
    }
}

#[test]
fn a_oneway_in_fragments_that_came_before_a_server_closes_is_handed_out() {
    every_cut(|pair| {
        let ask = Ask { response: ResponseFlags::None, body: vec![7; 100], ..Ask::default() };
        pair.server.conn.close_after_oneways(pair.now);
        for piece in fragmented(&ask.octets(), 64, 16) {
            pair.server.inject(&piece);
        }
        pair.drive();
        assert_eq!(pair.server.requests.len(), 1);
        assert_eq!(pair.server.requests[0].arguments().rest(), [7; 100]);
    });
}

// clause: giop.msg.close_connection
#[test]
fn an_idle_server_closes_at_once_and_waits_for_the_peer() {
    let mut pair = Pair::new(Cut::Whole);
    pair.client.awake = false;
    pair.server.conn.close(pair.now);
    pair.drive();
    assert_eq!(kinds(pair.client.wire.drain(..)), [MessageType::CloseConnection]);
    assert!(
        pair.server.conn.lifecycle().wants_shutdown() && pair.server.conn.wants_read() && !pair.server.closed
    );
    // Further input is read and discarded: closing a socket with unread input would destroy the last output.
    pair.server.inject(&Ask::default().octets());
    pair.drive();
    assert!(pair.server.requests.is_empty() && pair.server.wire.is_empty());
    pair.wait(Limits::default().linger_timeout);
    assert!(pair.server.closed);
}

// clause: giop.connection.close_client, giop.sender.close
#[test]
fn a_client_says_goodbye_in_giop_1_2_only_and_when_its_calls_are_over() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        every_cut(|pair| {
            let call = pair.call(&Ask { version, ..Ask::default() });
            pair.drive();
            pair.client.conn.close(pair.now);
            let refused = pair.client.conn.start_call(None, pair.now).unwrap_err();
            assert_eq!((refused.kind, refused.sent), (CallErrorKind::LocalClose, SentPart::Nothing));
            assert!(refused.is_retryable());
            let request = pair.request();
            pair.answer(&request, b"x");
            pair.drive();
            assert!(pair.client.outcome(call).is_ok());
            assert!(pair.client.closed && pair.server.closed);
            let reason = pair.server.conn.lifecycle().close_reason();
            let expected = if version == Version::V1_2 { CloseReason::PeerClosed } else { CloseReason::Eof };
            assert_eq!(reason, Some(&expected), "{version}");
        });
    }
}

// clause: giop.connection.oneways_before_close
#[test]
fn oneways_before_a_close_arrive() {
    every_cut(|pair| {
        for i in 0..5 {
            let id = pair.client.conn.next_oneway_id().0;
            let ask = Ask { id, response: ResponseFlags::None, body: vec![i; 20], ..Ask::default() };
            pair.client.conn.send_oneway(&mut ask.encoder()).unwrap();
        }
        pair.client.conn.close(pair.now);
        assert!(pair.client.conn.send_oneway(&mut Ask::default().encoder()).is_err());
        pair.drive();
        assert_eq!(pair.server.requests.len(), 5);
        assert!(pair.client.closed && pair.server.closed);
        // The requests may still be finished, although the connection is closed.
        let request = pair.request();
        pair.server.conn.request(request.token()).finish();
        pair.drive();
    });
}

#[test]
fn the_end_of_the_stream_comes_after_what_was_sent_before_it() {
    let mut limits = Limits::default();
    limits.max_requests = 1;
    util::every_cut_with(Limits::default(), limits, |pair| {
        for id in 0..3 {
            pair.server.inject(&Ask { id, response: ResponseFlags::None, ..Ask::default() }.octets());
        }
        pair.server.inject(&Ask::default().octets()[..20]); // and a half message
        pair.server.eof = true;
        for id in 0..3 {
            pair.drive();
            assert!(!pair.server.closed);
            let request = pair.request();
            assert_eq!(request.id(), RequestId(id));
            pair.server.conn.request(request.token()).finish();
        }
        pair.drive();
        assert!(pair.server.closed);
        assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::Eof));
    });
}

#[test]
fn what_came_before_the_end_of_the_stream_is_served_also_when_it_waited() {
    let mut limits = Limits::default();
    limits.max_requests = 1;
    let mut pair = Pair::with_limits(Cut::Whole, Limits::default(), limits);
    for id in 0..3 {
        pair.server.inject(&Ask { id, response: ResponseFlags::None, ..Ask::default() }.octets());
    }
    pair.drive();
    pair.server.conn.handle_eof(pair.now);
    for id in 0..3 {
        assert!(!pair.server.closed);
        let request = pair.request();
        assert_eq!(request.id(), RequestId(id));
        pair.server.conn.request(request.token()).finish();
        pair.drive();
    }
    assert!(pair.server.closed);
}

// clause: giop.connection.message_error, giop.version.unknown, giop.msg.message_error
#[test]
fn what_is_no_giop_is_answered_by_message_error_of_our_version() {
    let cases: [(&[u8], HeaderError); 4] = [
        (b"HTTP/1.1 200 OK\r\n", HeaderError::Magic(*b"HTTP")),
        (b"GIOP\x01\x03\0\0\0\0\0\0", HeaderError::Version { major: 1, minor: 3 }),
        (b"GIOP\x02\0\0\0\0\0\0\0", HeaderError::Version { major: 2, minor: 0 }),
        (b"GIOP\x01\x02\0\x09\0\0\0\0", HeaderError::Type(9)),
    ];
    for (octets, error) in cases {
        for cut in [Cut::Whole, Cut::Octets, Cut::At(3)] {
            let mut pair = Pair::new(cut);
            pair.client.awake = false;
            pair.server.inject(octets);
            pair.drive();
            assert_eq!(
                pair.server.conn.lifecycle().close_reason(),
                Some(&CloseReason::Protocol(error.into()))
            );
            let answer: Vec<u8> = pair.client.wire.drain(..).collect();
            assert_eq!(answer, bare(Version::V1_2, MessageType::MessageError));
            pair.wait(Duration::from_secs(1));
            assert!(pair.server.closed);
        }
    }
}

// clause: giop.connection.message_error_received
#[test]
fn message_error_fails_the_calls_and_is_not_answered() {
    every_cut(|pair| {
        let call = pair.call(&Ask::default());
        pair.drive();
        pair.client.inject(&bare(Version::V1_0, MessageType::MessageError));
        pair.drive();
        let error = pair.client.outcome(call).unwrap_err();
        assert_eq!((error.kind, error.completed()), (CallErrorKind::PeerError, CompletionStatus::Maybe));
        assert_eq!(pair.client.conn.lifecycle().close_reason(), Some(&CloseReason::PeerMessageError));
        assert!(pair.client.closed && pair.server.closed);
        assert_eq!(
            pair.server.conn.lifecycle().close_reason(),
            Some(&CloseReason::Eof),
            "nothing was answered"
        );
    });
}

// clause: giop.sender.requests, giop.bidir.refused
#[test]
fn requests_to_a_side_that_serves_none_are_a_protocol_error() {
    let requests = [
        (Ask::default().octets(), MessageType::Request),
        (
            util::messages::locate(Version::V1_2, RequestId(1), b"k").into_bytes().to_vec(),
            MessageType::LocateRequest,
        ),
    ];
    for (octets, kind) in requests {
        let mut pair = Pair::new(Cut::Whole);
        pair.client.inject(&octets);
        pair.drive();
        let expected = CloseReason::Protocol(ProtocolError::Unexpected(kind));
        assert_eq!(pair.client.conn.lifecycle().close_reason(), Some(&expected));
        assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::PeerMessageError));
    }
    // Both directions serve once the client accepts requests (Bidirectional GIOP).
    let mut pair = Pair::new(Cut::Whole);
    pair.client.conn.set_accepts_requests(true);
    pair.client.inject(&Ask { id: 3, ..Ask::default() }.octets());
    pair.drive();
    assert_eq!(pair.client.requests.len(), 1);
}

#[test]
fn an_undecodable_request_header_is_marshal_in_giop_1_2_and_message_error_before() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        every_cut(|pair| {
            let call = pair.client.conn.start_call(None, pair.now).unwrap();
            let id = pair.client.conn.call(call).request_id().0;
            let mut message = Ask { version, id, ..Ask::default() }.octets();
            // The length of the key, which exceeds the message by far.
            message[24..28].copy_from_slice(&0x7fff_ffff_u32.to_ne_bytes());
            let mut encoder = giop_codec::cdr::Encoder::new(ByteOrder::NATIVE, version);
            encoder.put_raw(&message);
            pair.client.conn.call(call).send_request(&mut encoder);
            pair.drive();
            if version == Version::V1_2 {
                let reply = pair.client.outcome(call).unwrap();
                let exception: giop_codec::exception::SystemException =
                    giop_codec::cdr::CdrDecode::decode(&mut reply.body()).unwrap();
                assert_eq!(exception.kind, giop_codec::exception::SystemExceptionKind::Marshal);
                assert_eq!(exception.completed, CompletionStatus::No);
                assert!(!pair.server.conn.lifecycle().is_closing());
            } else {
                assert_eq!(pair.client.outcome(call).unwrap_err().kind, CallErrorKind::PeerError);
                assert!(matches!(
                    pair.server.conn.lifecycle().close_reason(),
                    Some(CloseReason::Protocol(ProtocolError::Malformed { kind: MessageType::Request, .. }))
                ));
            }
        });
    }
}

// clause: giop.reply.undecodable, exc.completed.reply
#[test]
fn an_undecodable_reply_header_fails_its_call_in_giop_1_2() {
    let mut pair = Pair::new(Cut::Whole);
    let (bad, good) = (pair.call(&Ask::default()), pair.call(&Ask::default()));
    pair.drive();
    let id = pair.client.conn.call(bad).request_id();
    let mut answer =
        util::messages::reply(Version::V1_2, id, giop_codec::giop::ReplyStatus::NoException, b"")
            .into_bytes()
            .to_vec();
    answer[16..20].copy_from_slice(&99u32.to_ne_bytes());
    pair.client.inject(&answer);
    pair.drive();
    let error = pair.client.outcome(bad).unwrap_err();
    assert!(matches!(error.kind, CallErrorKind::BadReply(_)));
    assert_eq!(error.completed(), CompletionStatus::Yes);
    assert!(pair.client.conn.pending_call_count() == 1 && !pair.client.conn.lifecycle().is_closing());
    pair.server.requests.pop_front();
    let request = pair.request();
    pair.answer(&request, b"");
    pair.drive();
    assert!(pair.client.outcome(good).is_ok());
}

#[test]
fn a_failed_write_still_reads_the_peers_last_words() {
    let reset = io::Error::from(io::ErrorKind::ConnectionReset);
    for goodbye in [true, false] {
        let mut pair = Pair::new(Cut::Whole);
        let call = pair.call(&Ask::default());
        pair.drive();
        let unwritten = pair.call(&Ask { body: vec![7; 100], ..Ask::default() });
        let mut transmit = pair.client.conn.take_transmit().unwrap();
        transmit.advance(30);
        pair.client.conn.handle_written(transmit, pair.now);
        pair.client.conn.handle_write_error(&reset, pair.now);
        assert!(pair.client.conn.wants_read() && !pair.client.conn.has_output());
        if goodbye {
            pair.client.inject(&bare(Version::V1_2, MessageType::CloseConnection));
        }
        pair.client.eof = true;
        pair.client.poll();
        pair.drive();
        assert!(pair.client.closed);
        let error = pair.client.outcome(call).unwrap_err();
        if goodbye {
            assert_eq!((error.kind, error.completed()), (CallErrorKind::Closed, CompletionStatus::No));
        } else {
            let failure = IoFailure { kind: io::ErrorKind::ConnectionReset, os_code: None };
            assert_eq!(
                (error.kind, error.completed()),
                (CallErrorKind::Lost(failure), CompletionStatus::Maybe)
            );
        }
        let error = pair.client.outcome(unwritten).unwrap_err();
        assert_eq!((error.sent, error.completed()), (SentPart::Partly, CompletionStatus::No));
    }
}

#[test]
fn a_failed_write_ends_the_connection_when_the_peer_stays_silent() {
    let mut pair = Pair::new(Cut::Whole);
    pair.server.awake = false;
    let call = pair.call(&Ask::default());
    pair.client.conn.handle_write_error(&io::Error::from(io::ErrorKind::BrokenPipe), pair.now);
    assert!(pair.client.conn.start_call(None, pair.now).is_err(), "it is of no use for new calls");
    pair.drive();
    assert!(!pair.client.closed);
    pair.wait(Duration::from_secs(1));
    assert!(pair.client.closed);
    assert_eq!(pair.client.outcome(call).unwrap_err().sent, SentPart::Nothing);
}

// clause: giop.connection.idle
#[test]
fn idle_connections_are_closed_in_good_order() {
    let mut pair = Pair::new(Cut::Whole);
    let call = pair.call(&Ask::default());
    pair.drive();
    pair.wait(Duration::from_secs(500)); // a request is being served: nothing is idle
    assert!(!pair.client.closed && !pair.server.closed);
    let request = pair.request();
    pair.answer(&request, b"");
    pair.drive();
    pair.client.outcome(call).unwrap();
    pair.wait(Duration::from_secs(119));
    assert!(!pair.client.closed && !pair.server.closed);
    pair.wait(Duration::from_secs(1));
    assert!(pair.client.closed && pair.server.closed);
    assert_eq!(pair.client.conn.lifecycle().close_reason(), Some(&CloseReason::Idle));
    assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::PeerClosed));
}

// clause: giop.connection.idle
#[test]
fn an_idle_server_closes_after_three_minutes() {
    let mut pair = Pair::new(Cut::Whole);
    let call = pair.call(&Ask { response: ResponseFlags::Target, ..Ask::default() });
    pair.drive();
    let request = pair.request();
    pair.answer(&request, b"");
    pair.client.awake = false;
    pair.drive();
    pair.wait(Duration::from_secs(179));
    assert!(!pair.server.conn.lifecycle().is_closing());
    pair.wait(Duration::from_secs(1));
    assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::Idle));
    pair.client.awake = true;
    pair.drive();
    assert!(pair.client.outcome(call).is_ok(), "the reply came before CloseConnection");
}

#[test]
fn a_connection_may_have_an_idle_time_of_its_own() {
    let mut pair = Pair::new(Cut::Whole);
    let call = pair.call(&Ask::default());
    pair.drive();
    let request = pair.request();
    pair.answer(&request, b"");
    pair.drive();
    pair.client.outcome(call).unwrap();
    for side in [&mut pair.client, &mut pair.server] {
        side.conn.set_idle_timeout(Duration::from_secs(1000));
    }
    pair.wait(Duration::from_secs(990));
    assert!(!pair.client.conn.lifecycle().is_closing() && !pair.server.conn.lifecycle().is_closing());
    pair.wait(Duration::from_secs(20));
    assert_eq!(pair.client.conn.lifecycle().close_reason(), Some(&CloseReason::Idle));
}

#[test]
fn an_abort_ends_everything_at_once() {
    let mut pair = Pair::new(Cut::Whole);
    let call = pair.call(&Ask::default());
    pair.client.conn.abort(CloseReason::SlowPeer(SlowPeer::Message));
    assert!(pair.client.conn.lifecycle().is_closed() && !pair.client.conn.has_output());
    pair.drive();
    let error = pair.client.outcome(call).unwrap_err();
    assert!(matches!(error.kind, CallErrorKind::Lost(_)) && error.is_retryable());
    assert!(pair.server.closed);
    // Lent buffers may be returned to a closed machine.
    let buf = pair.client.conn.take_read_buf();
    pair.client.conn.handle_read(buf, 0, pair.now);
    assert_eq!(pair.client.conn.poll_timeout(), None);
    assert!(pair.client.conn.poll_event().is_none());
}

#[test]
fn both_sides_may_close_at_once() {
    every_cut(|pair| {
        let call = pair.call(&Ask::default());
        pair.drive();
        pair.client.conn.close(pair.now);
        pair.server.conn.close(pair.now);
        pair.drive();
        let request = pair.request();
        pair.answer(&request, b"done");
        pair.drive();
        assert!(pair.client.outcome(call).is_ok());
        assert!(pair.client.closed && pair.server.closed);
    });
}

#[test]
fn a_window_that_waits_with_the_reader_is_no_message() {
    let mut pair = Pair::new(Cut::Whole);
    let call = pair.call(&Ask::default());
    pair.drive();
    let request = pair.request();
    pair.answer(&request, b"");
    pair.drive();
    pair.client.outcome(call).unwrap();
    pair.client.awake = false;
    pair.server.awake = false;
    // Like a ring: the buffer is lent while nothing is received.
    let buf = pair.server.conn.take_read_buf();
    pair.server.poll();
    pair.wait(Duration::from_secs(179));
    assert!(!pair.server.conn.lifecycle().is_closing(), "nobody is slow in the middle of a message");
    pair.wait(Duration::from_secs(1));
    assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::Idle));
    pair.server.conn.handle_read(buf, 0, pair.now);
}

#[test]
fn a_message_that_waits_with_the_reader_is_slow() {
    let mut pair = Pair::new(Cut::Whole);
    let call = pair.call(&Ask::default());
    pair.drive();
    let request = pair.request();
    pair.answer(&request, b"");
    pair.drive();
    pair.client.outcome(call).unwrap();
    pair.client.awake = false;
    pair.server.awake = false;
    let mut header = MessageHeader::new(Version::V1_2, ByteOrder::NATIVE, MessageType::Request);
    header.size = 100;
    let copied = pair.server.conn.stats().bytes_copied_in;
    assert!(pair.server.conn.handle_early_bytes(&header.encode(), pair.now));
    assert_eq!(pair.server.conn.stats().bytes_copied_in, copied + 12);
    pair.server.poll();
    assert!(pair.server.conn.may_wait_with_buf());
    let buf = pair.server.conn.take_read_buf();
    pair.server.poll();
    pair.wait(Duration::from_secs(60));
    assert!(
        matches!(pair.server.conn.lifecycle().close_reason(), Some(CloseReason::SlowPeer(SlowPeer::Message))),
        "{:?}",
        pair.server.conn.lifecycle().close_reason()
    );
    pair.server.conn.handle_read(buf, 0, pair.now);
}

#[test]
fn a_header_that_came_ahead_is_a_message() {
    let mut pair = Pair::new(Cut::Whole);
    let bye = MessageHeader::new(Version::V1_2, ByteOrder::NATIVE, MessageType::CloseConnection).encode();
    assert!(!pair.client.conn.may_wait_with_buf(), "nothing has come yet");
    assert!(pair.client.conn.handle_early_bytes(&bye[..5], pair.now));
    pair.client.poll();
    assert!(pair.client.conn.may_wait_with_buf());
    assert!(pair.client.conn.handle_early_bytes(&bye[5..], pair.now));
    pair.client.poll();
    assert_eq!(pair.client.conn.lifecycle().close_reason(), Some(&CloseReason::PeerClosed));
}
