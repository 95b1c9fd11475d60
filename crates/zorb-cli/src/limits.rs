//! `--max-message`, the maximum size of messages, and the translation of library options in messages to
//! options of this program.

use std::borrow::Cow;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use zorb::{Limits, OrbBuilder};

/// The maximum size of a GIOP message: the size field has 32 bits.
const LARGEST: usize = u32::MAX as usize;
/// Default of the ORB's memory for all messages.
const POOL: usize = 256 << 20;

/// Bytes of memory for each byte of a message. A boolean is a value of 32 bytes in a tree, and a struct of
/// one boolean has two such values.
const DECODED: usize = 64;

/// The option of all commands that says how large messages may be.
#[derive(Debug, Args)]
pub(crate) struct MaxMessage {
    /// The largest message that is received, in bytes or with K, M or G (default: 16M); raises all limits
    /// that such a message needs
    #[arg(long, value_name = "SIZE", global = true, value_parser = size)]
    max_message: Option<usize>,
}

/// The value of `--max-message` for a command.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MessageSize {
    max_message: Option<usize>,
}

impl Args for MessageSize {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for MessageSize {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { max_message: matches.get_one("max_message").copied() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl MessageSize {
    /// Returns the maximum size of a message, if the option is given.
    pub(crate) fn bytes(self) -> Option<usize> {
        self.max_message
    }

    /// Applies the limits of environment variables to the builder, and raises the limits that a message of
    /// the option's size needs.
    ///
    /// # Errors
    /// An environment variable is malformed, or names no limit.
    pub(crate) fn of(self, builder: OrbBuilder) -> anyhow::Result<OrbBuilder> {
        let limits = Limits::from_env()?;
        Ok(match self.max_message {
            Some(size) => {
                builder.limits(raised(limits, size)).max_receive_memory(POOL.max(size.saturating_mul(2)))
            }
            None => builder.limits(limits),
        })
    }
}

/// Raises the limits that apply to the receipt of a message of this size, whole or in fragments, and to its
/// decoding.
fn raised(mut limits: Limits, size: usize) -> Limits {
    limits.max_message_size = size;
    for (limit, least) in [
        (&mut limits.max_fragment_memory, size),
        (&mut limits.max_held_bytes, size),
        (&mut limits.max_decoded, size.saturating_mul(DECODED)),
    ] {
        *limit = least.max(*limit);
    }
    limits
}

/// Parses a size such as `65536`, `512K`, `64M`, `1G`; `MiB` and `MB` are `M`.
fn size(text: &str) -> Result<usize, String> {
    let expected = || "a size is expected, such as 65536, 512K, 64M or 1G".to_owned();
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
        Some(size) if (1 << 10..=LARGEST).contains(&size) => Ok(size),
        // 4G stands for the maximum.
        Some(size) if size == LARGEST + 1 => Ok(LARGEST),
        _ => Err("a message has from 1K to 4G bytes".to_owned()),
    }
}

/// Names of options in messages of the library, and the equivalent options of this program.
const OPTIONS: [(&str, &str); 11] = [
    ("`Limits::max_message_size`", "`--max-message SIZE`"),
    ("`Limits::max_fragment_memory`", "`--max-message SIZE`"),
    ("`Limits::max_decoded`", "`--max-message SIZE`"),
    ("OrbBuilder::connect_timeout", "--timeout TIME"),
    ("OrbBuilder::init_ref or -ORBInitRef", "--init-ref"),
    ("OrbBuilder::login, or with_credentials of the reference", "--user NAME"),
    (
        "OrbBuilder::login, or Reference::with_credentials",
        "--user NAME, and --plaintext-password where it is not reached by TLS",
    ),
    ("take TLS, or Credentials::allow_plaintext_passwords", "--tls-ca FILE, or --plaintext-password"),
    ("this ORB has none: OrbBuilder::tls", "this program uses none: --tls-ca FILE"),
    ("TlsBuilder::trust, ::server_names and ::pin decide", "--tls-ca and --tls-any-name decide"),
    (
        "the peer requires a certificate (TlsBuilder::identity)",
        "the peer requires a certificate: --tls-cert, --tls-key",
    ),
];

/// Replaces the library's options in a message by those of this program.
pub(crate) fn in_options(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for (library, option) in OPTIONS {
        if text.contains(library) {
            text = Cow::Owned(text.replace(library, option));
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
        assert_eq!(size("65536"), Ok(65_536));
        assert_eq!(size("512K"), Ok(512 << 10));
        assert_eq!(size("64M"), size("64MiB"));
        assert_eq!(size("1g"), Ok(1 << 30));
        assert_eq!(size("4G"), Ok(LARGEST));
        for wrong in ["", "0", "1", "M", "1.5M", "-1", "5G", "64X", "99999999999999999999G", "1é"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_limit_that_a_message_meets_is_raised_and_none_is_lowered() {
        let usual = Limits::default();
        let raised = raised(usual.clone(), 64 << 20);
        for (usual, raised) in [
            (usual.max_message_size, raised.max_message_size),
            (usual.max_fragment_memory, raised.max_fragment_memory),
            (usual.max_decoded, raised.max_decoded),
            (usual.max_held_bytes, raised.max_held_bytes),
        ] {
            assert!(raised >= 64 << 20 && raised >= usual);
        }
    }

    #[test]
    fn limits_that_a_message_does_not_meet_stay_as_they_are() {
        let mut set = Limits::default();
        set.max_decoded = 1 << 40;
        set.max_fragment_memory = 1 << 10;
        set.max_depth = 3;
        let mut wanted = set.clone();
        wanted.max_message_size = 64 << 10;
        wanted.max_fragment_memory = 64 << 10;
        assert_eq!(raised(set, 64 << 10), wanted);
    }

    /// The messages are those of the library. If one is reworded there, its translation must be adapted here.
    #[test]
    fn each_name_that_is_translated_stands_in_a_message_of_the_library() {
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
        for (library, _) in OPTIONS {
            assert!(sources.contains(library), "no message of the library says {library}");
        }
    }

    #[test]
    fn messages_name_the_options_of_this_program() {
        let text = "a message of 20 octets is over the limit of 10: raise it by `Limits::max_message_size`";
        assert_eq!(
            in_options(text),
            "a message of 20 octets is over the limit of 10: raise it by `--max-message SIZE`"
        );
        assert_eq!(in_options("nothing to translate"), "nothing to translate");
    }
}
