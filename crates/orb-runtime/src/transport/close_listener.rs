//! Closing a listener without resetting connections in its backlog.
//!
//! When a listener is closed, the system resets the connections that are established but not yet accepted.
//! Therefore the server blocks new connections and accepts all others before it closes a listener.

use tokio::net::TcpListener;

/// Blocks new connections to the listener, as if the network had lost their first segments. The caller must
/// still accept connections whose TCP handshake has begun. Returns `false` if the filter cannot be attached.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn drop_new_syns(listener: &TcpListener) -> bool {
    use socket2::SockFilter;
    const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
    const IF_ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    const FLAGS_OFFSET: u32 = 13;
    const SYN: u32 = 2;
    let instruction = |code: u32, jt, jf, k| SockFilter::new(code as u16, jt, jf, k);
    let filter = [
        instruction(LOAD_BYTE, 0, 0, FLAGS_OFFSET),
        instruction(IF_ANY_BIT, 0, 1, SYN),
        instruction(RETURN, 0, 0, 0),
        instruction(RETURN, 0, 0, u32::MAX),
    ];
    socket2::SockRef::from(listener).attach_filter(&filter).is_ok()
}

/// Returns whether a TCP handshake with the port is in progress. The client may already see it as an
/// established connection. Returns `false` if the tables of the system cannot be read.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) async fn has_pending_handshakes(port: u16) -> bool {
    // Connections of a dual-stack listener are in the table of their own address family.
    for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
        if let Ok(table) = tokio::fs::read_to_string(table).await
            && table.lines().any(|line| is_handshake(line, port))
        {
            return true;
        }
    }
    false
}

/// Returns whether a line of `/proc/net/tcp` is a connection to the port in the state SYN_RECV.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_handshake(line: &str, port: u16) -> bool {
    const SYN_RECV: &str = "03";
    let mut fields = line.split_ascii_whitespace().skip(1);
    let local = fields.next().and_then(|address| address.rsplit_once(':'));
    local.is_some_and(|(_, digits)| u16::from_str_radix(digits, 16) == Ok(port))
        && fields.nth(1) == Some(SYN_RECV)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) async fn has_pending_handshakes(_: u16) -> bool {
    false
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn drop_new_syns(_: &TcpListener) -> bool {
    false
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use crate::transport::close_listener::{has_pending_handshakes, is_handshake};

    #[tokio::test]
    async fn handshakes_are_found_in_the_table_of_the_system() {
        let handshake = "14085: 0100007F:B49D 0100007F:AE8E 03 00000000:00000000 01:0000005C 00000000     0        0 0 0 00000000af5cb862";
        assert!(is_handshake(handshake, 0xB49D));
        assert!(is_handshake(
            "  12: 00000000000000000000000001000000:B49D 00000000000000000000000001000000:AE8E 03 00000000:00000000 01:00000062",
            0xB49D
        ));
        for (line, port) in [
            (handshake, 0xAE8E),
            ("   0: 0100007F:B49D 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0", 0xB49D),
            ("   1: 0100007F:B49D 0100007F:AE8E 01 00000000:00000000 00:00000000 00000000     0", 0xB49D),
            ("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid", 0xB49D),
            ("", 0xB49D),
        ] {
            assert!(!is_handshake(line, port), "{line}");
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _connected = tokio::net::TcpStream::connect(address).await.unwrap();
        let _accepted = listener.accept().await.unwrap();
        assert!(!has_pending_handshakes(address.port()).await);
    }
}
