//! In place of TLS on the command line where it was not compiled in.

use super::OrbBuilder;
use super::args::ArgsError;

pub(super) fn apply(builder: OrbBuilder, options: &[(String, String)]) -> Result<OrbBuilder, ArgsError> {
    match options.first() {
        None => Ok(builder),
        Some((name, value)) => {
            let value = if name == "sslKeyPassword" { "***" } else { value };
            Err(ArgsError::value(name, value, "TLS is not compiled in (feature `tls`)"))
        }
    }
}
