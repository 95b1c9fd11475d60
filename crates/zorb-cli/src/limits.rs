//! The option `--max-message`, and the replacement of library options in error messages.

use std::borrow::Cow;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use zorb::{Limits, OrbBuilder};

/// The maximum size of a GIOP message. The field for the size has 32 bits.
const MAX_GIOP_BYTES: usize = u32::MAX as usize;
/// The default of `OrbBuilder::max_receive_memory`.
const DEFAULT_RECEIVE_MEMORY: usize = 256 << 20;

/// The maximum number of bytes in memory for each byte of a message. In a decoded value, a boolean takes at
/// most 24 bytes, and a struct of one boolean takes at most 48 bytes. The rest is a margin.
const DECODED_BYTES_PER_BYTE: usize = 64;

/// The option `--max-message`, which all commands have.
#[derive(Debug, Args)]
pub(crate) struct MaxMessageOption {
    /// The maximum size of a received message, in bytes or with K, M or G (default: 16M); also raises other
    /// limits that depend on this size
    #[arg(long, value_name = "SIZE", global = true, value_parser = parse_size)]
    max_message: Option<usize>,
}

/// The value of the option `--max-message`, as a part of the options of a command.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MaxMessageValue {
    /// The maximum size of a message, if the option is given.
    pub(crate) bytes: Option<usize>,
}

impl Args for MaxMessageValue {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for MaxMessageValue {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { bytes: matches.get_one("max_message").copied() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl MaxMessageValue {
    pub(crate) fn apply(self, builder: OrbBuilder) -> anyhow::Result<OrbBuilder> {
        let limits = Limits::from_env()?;
        Ok(match self.bytes {
            Some(size) => builder
                .limits(with_max_message(limits, size))
                .max_receive_memory(DEFAULT_RECEIVE_MEMORY.max(size.saturating_mul(2))),
            None => builder.limits(limits),
        })
    }
}

/// Sets the maximum size of a message, and raises the other limits that such a message could exceed.
fn with_max_message(mut limits: Limits, size: usize) -> Limits {
    limits.max_message_size = size;
    for (limit, needed) in [
        (&mut limits.max_fragment_memory, size),
        (&mut limits.max_held_bytes, size),
        (&mut limits.max_decoded, size.saturating_mul(DECODED_BYTES_PER_BYTE)),
    ] {
        *limit = needed.max(*limit);
    }
    limits
}

/// Parses a size such as `65536`, `512K`, `64M` or `1G`. `MB` and `MiB` mean the same as `M`.
fn parse_size(text: &str) -> Result<usize, String> {
    let expected = || "expected a size, such as 65536, 512K, 64M or 1G".to_owned();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale: u64 = match text.get(number.len()..).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return Err(expected()),
    };
    let number: u64 = number.parse().map_err(|_| expected())?;
    let size = number.checked_mul(scale).and_then(|size| usize::try_from(size).ok());
    match size {
        Some(size) if (1 << 10..=MAX_GIOP_BYTES).contains(&size) => Ok(size),
        // 4G means the maximum, which is one byte less.
        Some(size) if size == MAX_GIOP_BYTES + 1 => Ok(MAX_GIOP_BYTES),
        _ => Err("the size of a message must be from 1K to 4G".to_owned()),
    }
}

/// Parts of messages of the library that mention its options, and their replacements for this program.
const REPLACEMENTS: [(&str, &str); 11] = [
    ("`Limits::max_message_size`", "`--max-message SIZE`"),
    ("`Limits::max_fragment_memory`", "`--max-message SIZE`"),
    ("`Limits::max_decoded`", "`--max-message SIZE`"),
    ("OrbBuilder::connect_timeout", "--timeout TIME"),
    ("OrbBuilder::init_ref or -ORBInitRef", "--init-ref"),
    (
        "requires a login: use OrbBuilder::login or Reference::with_credentials",
        "requires a login: use --user NAME",
    ),
    (
        "does not know the caller: use OrbBuilder::login or Reference::with_credentials",
        "does not know the caller: use --user NAME, and also --plaintext-password if the connection does not use TLS",
    ),
    ("use TLS or Credentials::allow_plaintext_passwords", "use --tls-ca FILE or --plaintext-password"),
    ("this ORB does not have: configure OrbBuilder::tls", "this program does not use: add --tls-ca FILE"),
    ("see TlsBuilder::trust, server_names and pin", "see --tls-ca and --tls-any-name"),
    (
        "the peer requires a certificate (TlsBuilder::identity)",
        "the peer requires a certificate: use --tls-cert FILE and --tls-key FILE",
    ),
];

/// Replaces the options of the library in a message by the options of this program.
pub(crate) fn replace_library_options(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for (library, program) in REPLACEMENTS {
        if text.contains(library) {
            text = Cow::Owned(text.replace(library, program));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn sizes_are_bytes_or_have_a_unit() {
        assert_eq!(parse_size("65536"), Ok(65_536));
        assert_eq!(parse_size("512K"), Ok(512 << 10));
        assert_eq!(parse_size("64M"), parse_size("64MiB"));
        assert_eq!(parse_size("1g"), Ok(1 << 30));
        assert_eq!(parse_size("4G"), Ok(MAX_GIOP_BYTES));
        for wrong in ["", "0", "1", "M", "1.5M", "-1", "5G", "64X", "99999999999999999999G", "1é"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_that_a_larger_message_could_exceed_are_raised() {
        let default = Limits::default();
        let raised = with_max_message(default.clone(), 64 << 20);
        for (default, raised) in [
            (default.max_message_size, raised.max_message_size),
            (default.max_fragment_memory, raised.max_fragment_memory),
            (default.max_decoded, raised.max_decoded),
            (default.max_held_bytes, raised.max_held_bytes),
        ] {
            assert!(raised >= 64 << 20 && raised >= default);
        }
    }

    #[test]
    fn other_limits_that_a_message_cannot_exceed_are_not_changed() {
        let mut set = Limits::default();
        set.max_decoded = 1 << 40;
        set.max_fragment_memory = 1 << 10;
        set.max_depth = 3;
        let mut expected = set.clone();
        expected.max_message_size = 64 << 10;
        expected.max_fragment_memory = 64 << 10;
        assert_eq!(with_max_message(set, 64 << 10), expected);
    }

    /// If the library rewords a message, `REPLACEMENTS` must be adapted.
    #[test]
    fn each_text_that_is_replaced_is_in_a_message_of_the_library() {
        fn read(folder: &Path, into: &mut String) {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                if path.is_dir() {
                    read(&path, into);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    into.push_str(&std::fs::read_to_string(&path).unwrap());
                }
            }
        }
        let mut sources = String::new();
        for name in ["giop-codec", "giop-proto", "orb-runtime"] {
            read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src"), &mut sources);
        }
        for (library, _) in REPLACEMENTS {
            assert!(sources.contains(library), "no message of the library contains {library}");
        }
    }

    #[test]
    fn library_options_in_messages_are_replaced() {
        let text = "a message of 20 bytes exceeds the limit of 10 bytes: raise `Limits::max_message_size`";
        assert_eq!(
            replace_library_options(text),
            "a message of 20 bytes exceeds the limit of 10 bytes: raise `--max-message SIZE`"
        );
        assert_eq!(replace_library_options("nothing to translate"), "nothing to translate");
    }
}
