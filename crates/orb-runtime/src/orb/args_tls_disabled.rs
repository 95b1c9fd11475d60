//! TLS on the command line for builds without the feature `tls`.

use crate::orb::args::ArgsError;
use crate::orb::builder::OrbBuilder;

pub(crate) fn apply(builder: OrbBuilder, options: &[(String, String)]) -> Result<OrbBuilder, ArgsError> {
    match options.first() {
        None => Ok(builder),
        Some((name, value)) => {
            let value = if name == "sslKeyPassword" { "***" } else { value };
            Err(ArgsError::value(name, value, "TLS is not compiled in (feature `tls`)"))
        }
    }
}
