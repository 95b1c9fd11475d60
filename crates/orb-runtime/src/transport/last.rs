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

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn let_nobody_come(_: &TcpListener) -> bool {
    false
}
