//! Profilers: where a process spends its time, and how often it calls what.
//!
//! Two are used, because they provide different data. [`perf`] samples processors, in the kernel too, in
//! milliseconds, and counts system calls; it disturbs little. [`callgrind`] executes the program in a
//! simulated machine. It counts every call and every instruction outside the kernel, and provides call
//! chains, but no time. [`groups`] contains the purposes of functions.

pub(crate) mod callgrind;
pub(crate) mod groups;
pub(crate) mod perf;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// System calls that a perf session counts.
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

/// Prefixes of the suffixes of variants.
const VARIANTS: &[&str] = &["avx", "sse", "evex", "erms", "unaligned", "generic", "sve", "neon", "a64fx"];
/// Functions that have variants.
const STRINGS: &[&str] =
    &["memcpy", "memset", "memcmp", "memchr", "strlen", "strcmp", "strncmp", "strchr", "strcpy"];

/// Costs of functions, by their plain names. A system call is a function that includes the kernel's time.
pub(crate) type Profile = BTreeMap<String, Cost>;

/// The cost of a function, without the functions that it calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Milliseconds on a processor (perf), or instructions (callgrind).
    pub(crate) own: f64,
    /// How often it was called; 0 where that is not counted.
    pub(crate) calls: f64,
}

/// Returns a name that is the same for both profilers: without additions of compilers and C libraries that
/// distinguish variants of a function.
fn plain(name: &str) -> String {
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
    // The C library has variants for specific processors.
    let variant = |(_, variant): &(&str, &str)| VARIANTS.iter().any(|start| variant.starts_with(start));
    let bare = bare.split_once('_').filter(variant).map_or(bare, |(function, _)| function);
    if STRINGS.contains(&bare) {
        return bare.to_owned();
    }
    // The C library has the same code for both.
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
    // Addresses differ between runs.
    if name.starts_with("0x") { "?".to_owned() } else { name.trim_start_matches("__GI_").to_owned() }
}

/// Returns `omni::giopStream::put` for `omni::giopStream::put(unsigned char) const`: only one profiler shows
/// arguments.
fn without_arguments(name: &str) -> &str {
    let bare = name.strip_suffix(" const").unwrap_or(name);
    if !bare.ends_with(')') {
        return name;
    }
    let mut depth = 0;
    for (place, byte) in bare.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let start = bare.get(..place).unwrap_or_default();
            return if start.is_empty() || start.ends_with("operator") { name } else { start };
        }
    }
    name
}

/// Returns the name of a function of which only the object file is known.
fn nameless(object: &str) -> String {
    format!("? in {}", object.rsplit('/').next().unwrap_or(object))
}

/// Returns the last line that is not empty: usually the reason for which a program failed.
fn last_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it does not say why").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_profilers_names_of_a_function_are_one() {
        for (name, wanted) in [
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
            assert_eq!(plain(name), wanted, "{name}");
        }
        assert_eq!(nameless("/usr/lib/libomniORB4.so.2"), "? in libomniORB4.so.2");
        assert_eq!(last_line(b"one\n two \n\n"), "two");
    }
}
