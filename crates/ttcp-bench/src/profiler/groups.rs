//! The groups of functions by their purposes. The table `groups.tsv` assigns names of functions to groups.

use std::fmt;

/// A table whose lines consist of a group, a tab and a pattern. A function belongs to the group of the first
/// pattern that matches its name. A pattern matches a part of the name; `^` and `$` mark its start and end.
///
/// Lines with `caller` or `servant` in place of a group define a [`ChainEnd`]. Lines with `kernel` name
/// functions that make system calls themselves.
const TABLE: &str = include_str!("groups.tsv");

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    Write,
    Read,
    Marshal,
    Copy,
    /// Functions that find the connection, object, operation or servant of a message.
    Demultiplex,
    Allocate,
    Other,
    /// Functions that no pattern matches. Reports include them in `Other`, and also show them separately.
    Unmatched,
}

/// The functions at which chains of calls end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainEnd {
    /// The functions of test programs that call stubs.
    Caller,
    /// The functions that implement the called operations.
    Servant,
}

impl Group {
    pub(crate) const DISPLAYED: [Group; 7] = [
        Group::Write,
        Group::Read,
        Group::Marshal,
        Group::Copy,
        Group::Demultiplex,
        Group::Allocate,
        Group::Other,
    ];

    pub(crate) fn of(function: &str) -> Group {
        let group = |(group, pattern): (&str, &str)| {
            matches_pattern(pattern, function).then(|| group_named(group)).flatten()
        };
        entries().find_map(group).unwrap_or(Group::Unmatched)
    }

    pub(crate) fn displayed_as(self) -> Group {
        if self == Group::Unmatched { Group::Other } else { self }
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
            Group::Unmatched => "unmatched",
        })
    }
}

impl ChainEnd {
    pub(crate) fn contains(self, function: &str) -> bool {
        let name = match self {
            ChainEnd::Caller => "caller",
            ChainEnd::Servant => "servant",
        };
        entries().any(|(kind, pattern)| kind == name && matches_pattern(pattern, function))
    }
}

/// Returns patterns of the functions whose chains of callers callgrind must record. They have the syntax of
/// its options, in which `*` matches any text.
pub(crate) fn chain_start_globs() -> Vec<String> {
    let mut globs = Vec::new();
    for (_, pattern) in entries().filter(|(kind, _)| matches!(*kind, "write" | "read" | "servant" | "kernel"))
    {
        let text = pattern.trim_start_matches('^').trim_end_matches('$');
        let (start, end) =
            (if pattern.starts_with('^') { "" } else { "*" }, if pattern.ends_with('$') { "" } else { "*" });
        globs.push(format!("{start}{text}{end}"));
        if pattern.starts_with('^') && pattern.ends_with('$') && !text.contains("::") {
            // Functions of the C library can also have names such as `__libc_send`.
            globs.push(format!("*_{text}"));
        }
    }
    globs
}

fn group_named(name: &str) -> Option<Group> {
    Group::DISPLAYED.into_iter().find(|group| group.to_string() == name)
}

fn entries() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'))
}

fn matches_pattern(pattern: &str, function: &str) -> bool {
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
    fn the_table_has_only_known_groups_and_no_duplicates() {
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
            ("an_unknown_function", Group::Unmatched),
        ] {
            assert_eq!(Group::of(function), group, "{function}");
        }
        assert_eq!(Group::Unmatched.displayed_as(), Group::Other);
    }

    #[test]
    fn recorded_chains_start_at_system_calls_and_servants() {
        let globs = chain_start_globs();
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
    fn patterns_match_parts_starts_and_ends_of_names() {
        assert!(matches_pattern("cdr", "omni::cdrStream") && !matches_pattern("^cdr", "omni::cdrStream"));
        assert!(
            matches_pattern("^read", "readv")
                && !matches_pattern("^read$", "readv")
                && matches_pattern("^read$", "read")
        );
        assert!(matches_pattern("::poll$", "a::poll") && !matches_pattern("::poll$", "a::poll_fn"));
    }
}
