//! `SO_RCVLOWAT`: the number of bytes that must be available before a socket becomes readable.
//!
//! This file contains `unsafe`, because no safe crate supports the option.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Makes the socket readable only when this number of bytes is available, or at the end of the stream.
#[expect(unsafe_code, reason = "one system call with a pointer to a local integer")]
pub(super) fn set(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` lives during the call, `size` is its size, and the borrowed descriptor is open.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const value).cast(),
            size,
        )
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec};

    #[test]
    fn socket_is_readable_at_the_low_water_mark_and_at_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        far.set_nodelay(true).unwrap();
        let readable = |near: &TcpStream, wait: Duration| {
            let wait = Timespec::try_from(wait).unwrap();
            rustix::event::poll(&mut [PollFd::new(near, PollFlags::IN)], Some(&wait)).unwrap() > 0
        };
        super::set(near.as_fd(), 1000).unwrap();
        far.write_all(&[1; 999]).unwrap();
        assert!(!readable(&near, Duration::from_millis(100)));
        far.write_all(&[1; 1]).unwrap();
        assert!(readable(&near, Duration::from_secs(20)));
        near.read_exact(&mut [0; 1000]).unwrap();
        far.write_all(&[1; 5]).unwrap();
        assert!(!readable(&near, Duration::from_millis(100)));
        // Lowering the value makes the socket readable if enough bytes are available already.
        super::set(near.as_fd(), 1).unwrap();
        assert!(readable(&near, Duration::from_secs(20)));
        super::set(near.as_fd(), 1000).unwrap();
        drop(far);
        assert!(readable(&near, Duration::from_secs(20)), "the end makes the socket readable");
    }
}
