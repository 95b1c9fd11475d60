//! Accepted differences between zorb and omniORB, and their reasons.

use giop_codec::giop::MessageHeader;

use super::Outcome::{self, Closed, Hangs, Locate, MessageError, Nothing, Reply, Waits};

/// Returns why the two may differ on that message; `None` if they may not.
pub fn reason(message: &[u8], ours: &Outcome, theirs: &Outcome) -> Option<&'static str> {
    let refused = |outcome: &Outcome, kinds: &[&str]| {
        let Reply(what) = outcome else { return false };
        kinds
            .iter()
            .any(|kind| what.strip_prefix("SystemException ").is_some_and(|what| what.starts_with(kind)))
    };
    let any_refusal = |outcome: &Outcome| refused(outcome, &[""]);
    let executed = |outcome: &Outcome| matches!(outcome, Reply(what) if !what.starts_with("SystemException"));
    Some(match (ours, theirs) {
        // zorb always closes a connection that its peer has closed.
        (Hangs, _) => return None,
        (ours, Hangs) if any_refusal(ours) => {
            "omniORB never closes some connections on which it can not go on"
        }
        // Neither executes a request that the other rejects.
        (ours, Closed | MessageError | Waits) if !is_as_long_as_it_says(message) && !executed(ours) => {
            "the size is wrong: omniORB answers before it looks at what stands there, zorb reads on"
        }
        (MessageError, Reply(_)) if has_another_size(message) => {
            "no message stands where the request ends: zorb may say so before the request, which is under way, is answered"
        }
        (MessageError, Closed) => "omniORB closes without a word where the header is wrong",
        (Nothing, Closed | MessageError) if matches!(message.get(7), Some(1 | 4)) => {
            "a reply that answers nothing: zorb counts it and goes on"
        }
        (Nothing, Closed | MessageError) if matches!(message.get(7), Some(0 | 2)) => {
            "a request that wants no answer gets none from zorb, whatever is wrong in it"
        }
        (Locate(_), Closed | MessageError) => {
            "zorb ignores octets behind a question, and answers about any key"
        }
        (ours, Closed | MessageError) if executed(ours) => "zorb ignores octets behind the arguments",
        (ours, Closed | MessageError)
            if refused(ours, &["Marshal", "CodesetIncompatible", "ObjectNotExist", "BadOperation"]) =>
        {
            "zorb refuses the request alone where it can tell its id, and the connection goes on"
        }
        (ours, _) if refused(ours, &["CodesetIncompatible"]) => {
            "code sets that were not offered: zorb refuses them at once, omniORB when text comes, or never"
        }
        (ours, theirs)
            if refused(ours, &["Marshal"])
                && refused(theirs, &["BadInvOrder", "BadOperation", "BadParam", "ObjectNotExist"]) =>
        {
            "zorb decodes the whole header before it looks for object and operation"
        }
        (Reply(_), theirs) if refused(theirs, &["DataConversion"]) => {
            "a character that omniORB's own code set has not: zorb has all, or says that the octets are none"
        }
        (ours, _) if executed(ours) && is_sync_with_server(message) => {
            "zorb answers SYNC_WITH_SERVER before it looks for the operation, omniORB when that is over"
        }
        (_, theirs) if refused(theirs, &["Unknown"]) => {
            "omniORB answers UNKNOWN to targets by reference that it can not take apart"
        }
        (ours, theirs) if refused(ours, &["Marshal", "BadParam"]) && executed(theirs) => {
            "text with zeros in it, without one at its end, or wide without code sets: zorb takes none, omniORB what it can"
        }
        (ours, theirs) if executed(ours) && refused(theirs, &["Marshal"]) && has_zero(message) => {
            "a string of length 0: zorb takes it for an empty one, which some ORBs mean by it, omniORB refuses it"
        }
        (MessageError, Nothing) if matches!(message.get(7), Some(2 | 7)) => {
            "a cancel or a fragment without an id: zorb ends the connection, omniORB ignores it"
        }
        (MessageError, Waits) if !has_header(message) => {
            "a version or a type that there is not: zorb says so at once, omniORB when it has all of the message"
        }
        (MessageError, theirs) if is_old(message) && (*theirs == Nothing || any_refusal(theirs)) => {
            "before GIOP 1.2 the id stands behind what may be wrong: zorb answers no header that does not decode"
        }
        _ => return None,
    })
}

fn is_as_long_as_it_says(message: &[u8]) -> bool {
    let header = message.first_chunk().map(MessageHeader::decode);
    !has_another_size(message) && !matches!(header, Some(Ok(header)) if header.more_fragments)
}

fn has_another_size(message: &[u8]) -> bool {
    let header = message.first_chunk().map(MessageHeader::decode);
    matches!(header, Some(Ok(header)) if header.size as usize + MessageHeader::LEN != message.len())
}

/// Returns whether one of its words is zero.
fn has_zero(message: &[u8]) -> bool {
    message.get(12..).unwrap_or_default().chunks_exact(4).any(|word| word == [0; 4])
}

fn has_header(message: &[u8]) -> bool {
    message.first_chunk().is_some_and(|header| MessageHeader::decode(header).is_ok())
}

/// Returns whether its sender only awaits the acknowledgement of the server.
fn is_sync_with_server(message: &[u8]) -> bool {
    message.get(5) == Some(&2) && message.get(16).is_some_and(|flags| flags & 3 == 1)
}

fn is_old(message: &[u8]) -> bool {
    matches!(message.get(4..6), Some([1, 0 | 1]))
}
