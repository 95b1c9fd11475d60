//! The end of a listener, without those who were let in by the system alone.
//!
//! Whoever is connected and not accepted when a listener is closed is reset: what he has sent was not executed, but a reset does not say so.
//! Accepting all of them first does not help those who come between that and the close. So the system is told first that nobody may come.

use tokio::net::TcpListener;

/// Lets nobody begin a connection any more, as if the network lost what he sends; says whether it could be had. Who has begun one comes, and
/// is to be accepted.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn let_nobody_come(listener: &TcpListener) -> bool {
    use socket2::SockFilter;
    const LOAD_OCTET: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
    const IF_ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    /// Where a segment has its flags, and the one of its first segment.
    const FLAGS: u32 = 13;
    const SYN: u32 = 2;
    let instruction = |code: u32, jt, jf, k| SockFilter::new(code as u16, jt, jf, k);
    let filter = [
        instruction(LOAD_OCTET, 0, 0, FLAGS),
        instruction(IF_ANY_BIT, 0, 1, SYN),
        instruction(RETURN, 0, 0, 0),
        instruction(RETURN, 0, 0, u32::MAX),
    ];
    socket2::SockRef::from(listener).attach_filter(&filter).is_ok()
}

/// Whether the system still makes a connection to the port. Its peer may think that it is made, while there is nobody to be accepted yet. Who
/// may not see the tables of the system is told that there is none.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) async fn makes_connections(port: u16) -> bool {
    // Those of a listener for both are in the table of their own kind of address.
    for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
        if let Ok(table) = tokio::fs::read_to_string(table).await
            && table.lines().any(|line| is_being_made(line, port))
        {
            return true;
        }
    }
    false
}

/// Whether a line of such a table (proc_net_tcp) is a connection to the port that is being made.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_being_made(line: &str, port: u16) -> bool {
    const SYN_RECV: &str = "03";
    let mut fields = line.split_ascii_whitespace().skip(1);
    let local = fields.next().and_then(|address| address.rsplit_once(':'));
    local.is_some_and(|(_, digits)| u16::from_str_radix(digits, 16) == Ok(port))
        && fields.nth(1) == Some(SYN_RECV)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) async fn makes_connections(_: u16) -> bool {
    false
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn let_nobody_come(_: &TcpListener) -> bool {
    false
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::{is_being_made, makes_connections};

    #[tokio::test]
    async fn a_connection_that_is_being_made_is_seen_in_the_systems_table() {
        let made = "14085: 0100007F:B49D 0100007F:AE8E 03 00000000:00000000 01:0000005C 00000000     0        0 0 0 00000000af5cb862";
        assert!(is_being_made(made, 0xB49D));
        assert!(is_being_made(
            "  12: 00000000000000000000000001000000:B49D 00000000000000000000000001000000:AE8E 03 00000000:00000000 01:00000062",
            0xB49D
        ));
        for (line, port) in [
            (made, 0xAE8E),
            ("   0: 0100007F:B49D 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0", 0xB49D),
            ("   1: 0100007F:B49D 0100007F:AE8E 01 00000000:00000000 00:00000000 00000000     0", 0xB49D),
            ("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid", 0xB49D),
            ("", 0xB49D),
        ] {
            assert!(!is_being_made(line, port), "{line}");
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _made = tokio::net::TcpStream::connect(address).await.unwrap();
        let _accepted = listener.accept().await.unwrap();
        assert!(!makes_connections(address.port()).await);
    }
}
