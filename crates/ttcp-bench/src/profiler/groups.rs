//! The purposes of functions, by their names: the table in `groups.tsv`.

use std::fmt;

/// Lines of group and pattern; the first match counts. A pattern is a part of a name; `^` and `$` stand for
/// its ends.
const TABLE: &str = include_str!("groups.tsv");

/// The purpose of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// Passes bytes to the kernel, which takes most of the time.
    Write,
    /// Takes bytes from the kernel.
    Read,
    /// Encodes or decodes values.
    Marshal,
    /// Copies bytes unchanged.
    Copy,
    /// Finds connection, object, operation and servant of a message.
    Demultiplex,
    /// Allocates and frees memory.
    Allocate,
    /// Any other known purpose.
    Other,
    /// A function that no pattern matches. It is shown with the others, and also listed separately.
    Unnamed,
}

/// An end of a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The program code that calls stubs.
    Caller,
    /// The program code that handles a request.
    Servant,
}

impl Group {
    /// The groups in tables, in their order.
    pub(crate) const SHOWN: [Group; 7] = [
        Group::Write,
        Group::Read,
        Group::Marshal,
        Group::Copy,
        Group::Demultiplex,
        Group::Allocate,
        Group::Other,
    ];

    /// Returns the group of a function.
    pub(crate) fn of(function: &str) -> Group {
        let named =
            |(group, pattern): (&str, &str)| fits(pattern, function).then(|| group_named(group)).flatten();
        entries().find_map(named).unwrap_or(Group::Unnamed)
    }

    /// Returns the group under which it is shown.
    pub(crate) fn shown(self) -> Group {
        if self == Group::Unnamed { Group::Other } else { self }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Group::Write => "write",
            Group::Read => "read",
            Group::Marshal => "marshal",
            Group::Copy => "copy",
            Group::Demultiplex => "demultiplex",
            Group::Allocate => "allocate",
            Group::Other => "other",
            Group::Unnamed => "unnamed",
        })
    }
}

impl End {
    /// Returns whether a function is such an end.
    pub(crate) fn is(self, function: &str) -> bool {
        let name = match self {
            End::Caller => "caller",
            End::Servant => "servant",
        };
        entries().any(|(kind, pattern)| kind == name && fits(pattern, function))
    }
}

/// Returns the functions that can end a chain, in the syntax of callgrind's options: `*` for any part.
pub(crate) fn of_chains() -> Vec<String> {
    let mut globs = Vec::new();
    for (_, pattern) in entries().filter(|(kind, _)| matches!(*kind, "write" | "read" | "servant" | "kernel"))
    {
        let bare = pattern.trim_start_matches('^').trim_end_matches('$');
        let (start, end) =
            (if pattern.starts_with('^') { "" } else { "*" }, if pattern.ends_with('$') { "" } else { "*" });
        globs.push(format!("{start}{bare}{end}"));
        if pattern.starts_with('^') && pattern.ends_with('$') && !bare.contains("::") {
            // Functions of the C library have further names: `__libc_send`.
            globs.push(format!("*_{bare}"));
        }
    }
    globs
}

fn group_named(name: &str) -> Option<Group> {
    Group::SHOWN.into_iter().find(|group| group.to_string() == name)
}

fn entries() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'))
}

fn fits(pattern: &str, function: &str) -> bool {
    match (pattern.strip_prefix('^'), pattern.strip_suffix('$')) {
        (Some(_), Some(_)) => pattern.trim_start_matches('^').trim_end_matches('$') == function,
        (Some(start), None) => function.starts_with(start),
        (None, Some(end)) => function.ends_with(end),
        (None, None) => function.contains(pattern),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_names_what_there_is_and_nothing_twice() {
        let mut seen = BTreeSet::new();
        for (kind, pattern) in entries() {
            assert!(group_named(kind).is_some() || matches!(kind, "caller" | "servant" | "kernel"), "{kind}");
            assert!(
                !pattern.trim_matches(['^', '$']).is_empty() && seen.insert((kind, pattern)),
                "{kind} {pattern}"
            );
        }
        let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        assert_eq!(lines, entries().count(), "each line has a tab");
    }

    #[test]
    fn functions_find_their_groups() {
        for (function, group) in [
            ("writev", Group::Write),
            ("recvfrom", Group::Read),
            ("memcpy", Group::Copy),
            ("malloc", Group::Allocate),
            ("_int_malloc", Group::Allocate),
            ("page fault", Group::Allocate),
            ("epoll_wait", Group::Other),
            ("a_function_of_nobody", Group::Unnamed),
        ] {
            assert_eq!(Group::of(function), group, "{function}");
        }
        assert_eq!(Group::Unnamed.shown(), Group::Other);
    }

    #[test]
    fn chains_end_where_the_kernel_or_a_servant_begins() {
        let globs = of_chains();
        for glob in [
            "writev",
            "*_send",
            "TtcpImpl::*",
            "*tcpConnection::Recv*",
            "ttcp_bench::zorb_peer::server::Ttcp::add",
        ] {
            assert!(globs.contains(&glob.to_owned()), "{glob}: {globs:?}");
        }
    }

    #[test]
    fn patterns_stand_for_parts_and_ends() {
        assert!(fits("cdr", "omni::cdrStream") && !fits("^cdr", "omni::cdrStream"));
        assert!(fits("^read", "readv") && !fits("^read$", "readv") && fits("^read$", "read"));
        assert!(fits("::poll$", "a::poll") && !fits("::poll$", "a::poll_fn"));
    }
}
