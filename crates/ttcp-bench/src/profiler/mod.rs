//! Profilers: the cost of each function of a process, and the number of its calls.
//!
//! Two profilers are used, because they provide different data. [`perf`] measures times by sampling, also in
//! the kernel, and counts system calls; it slows the process down only a little. [`callgrind`] executes the
//! program in a simulated machine. It counts all calls and all instructions outside the kernel, and provides
//! call chains, but no times. [`groups`] contains the purposes of functions.

pub(crate) mod callgrind;
pub(crate) mod groups;
pub(crate) mod perf;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

const SYSTEM_CALLS: &[&str] = &[
    "read",
    "readv",
    "recvfrom",
    "recvmsg",
    "write",
    "writev",
    "sendto",
    "sendmsg",
    "poll",
    "ppoll",
    "epoll_wait",
    "epoll_pwait",
    "futex",
    "io_uring_enter",
    "setsockopt",
    "brk",
    "mmap",
    "munmap",
    "madvise",
];

/// The starts of suffixes such as `avx_unaligned`, by which the C library names variants of a function.
const VARIANT_SUFFIX_STARTS: &[&str] =
    &["avx", "sse", "evex", "erms", "unaligned", "generic", "sve", "neon", "a64fx"];
const STRING_FUNCTIONS: &[&str] =
    &["memcpy", "memset", "memcmp", "memchr", "strlen", "strcmp", "strncmp", "strchr", "strcpy"];

/// The costs of functions by their normalised names. A system call counts as a function. If its cost is a
/// time, this includes the time in the kernel.
pub(crate) type Profile = BTreeMap<String, Cost>;

/// The cost of a function, without the functions that it calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Milliseconds on a processor (perf), or instructions (callgrind).
    pub(crate) own: f64,
    /// Number of calls; 0 if they are not counted.
    pub(crate) calls: f64,
}

/// Returns the name of a function without the additions by which compilers and C libraries distinguish its
/// variants, so that it is the same for both profilers.
fn normalised_name(name: &str) -> String {
    let name = name.split(" [clone").next().unwrap_or_default().trim();
    let name = match name.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => name,
        _ => name,
    };
    let name = match name.split_once('.') {
        Some((start, end))
            if ["isra", "constprop", "part", "cold", "llvm", "lto_priv"]
                .iter()
                .any(|e| end.starts_with(e)) =>
        {
            start
        }
        _ => name,
    };
    let name = without_arguments(name.split('@').next().unwrap_or_default());
    let bare = name.trim_start_matches("__GI_").trim_start_matches("__libc_").trim_start_matches("__");
    let is_variant =
        |(_, suffix): &(&str, &str)| VARIANT_SUFFIX_STARTS.iter().any(|start| suffix.starts_with(start));
    let bare = bare.split_once('_').filter(is_variant).map_or(bare, |(function, _)| function);
    if STRING_FUNCTIONS.contains(&bare) {
        return bare.to_owned();
    }
    // The C library uses the same code for these functions.
    if bare == "memmove" || bare == "mempcpy" {
        return "memcpy".to_owned();
    }
    let call = match bare.trim_end_matches("_nocancel") {
        "send" => "sendto",
        "recv" => "recvfrom",
        call => call,
    };
    if SYSTEM_CALLS.contains(&call) {
        return call.to_owned();
    }
    // An address is no useful name, because it differs between runs.
    if name.starts_with("0x") { "?".to_owned() } else { name.trim_start_matches("__GI_").to_owned() }
}

/// Removes the arguments of a C++ function, which only one of the profilers shows: returns
/// `omni::giopStream::put` for `omni::giopStream::put(unsigned char) const`.
fn without_arguments(name: &str) -> &str {
    let bare = name.strip_suffix(" const").unwrap_or(name);
    if !bare.ends_with(')') {
        return name;
    }
    let mut depth = 0;
    for (index, byte) in bare.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let start = bare.get(..index).unwrap_or_default();
            return if start.is_empty() || start.ends_with("operator") { name } else { start };
        }
    }
    name
}

/// Returns the name for a function of which only the object file is known.
fn unknown_function_in(object: &str) -> String {
    format!("? in {}", object.rsplit('/').next().unwrap_or(object))
}

fn last_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .unwrap_or("it failed without a message")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_profilers_are_normalised_to_the_same_name() {
        for (name, normalised) in [
            ("__memmove_avx512_unaligned_erms", "memcpy"),
            ("__memcpy_avx_unaligned_erms", "memcpy"),
            ("__memset_evex_unaligned_erms", "memset"),
            ("__strcmp_evex", "strcmp"),
            ("__GI___libc_write", "write"),
            ("__read_nocancel", "read"),
            ("__poll", "poll"),
            ("writev", "writev"),
            ("update_active.constprop.0", "update_active"),
            ("__libc_start_main@@GLIBC_2.34", "__libc_start_main"),
            ("orb::link::flush::h0123456789abcdef", "orb::link::flush"),
            ("orb::link::hold", "orb::link::hold"),
            (
                "omni::giopStream::put(unsigned char, void (*)(int)) const [clone .isra.0]",
                "omni::giopStream::put",
            ),
            ("Functor::operator()(int)", "Functor::operator()"),
            ("Functor::operator()", "Functor::operator()"),
            ("<impl orb::Put for (u8, u8)>::put", "<impl orb::Put for (u8, u8)>::put"),
            ("_int_malloc", "_int_malloc"),
            ("cfree@GLIBC_2.2.5", "cfree"),
            ("__send", "sendto"),
            ("__GI___pthread_disable_asynccancel", "__pthread_disable_asynccancel"),
            ("0x000000000000e630", "?"),
        ] {
            assert_eq!(normalised_name(name), normalised, "{name}");
        }
        assert_eq!(unknown_function_in("/usr/lib/libomniORB4.so.2"), "? in libomniORB4.so.2");
        assert_eq!(last_line(b"one\n two \n\n"), "two");
    }
}
