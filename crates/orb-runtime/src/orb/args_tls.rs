//! TLS on the conventional command line: `-ORBsslCAFile` and similar options.

use crate::orb::args::ArgsError;
use crate::orb::builder::OrbBuilder;
use crate::tls::{
    ClientCertificates, Identity, Outgoing, RevocationCheck, RevocationList, ServerNames, Tls, Trust,
};

/// Configures TLS from options, whose names have no `-ORB`. Without options the builder is returned
/// unchanged.
pub(crate) fn apply(builder: OrbBuilder, options: &[(String, String)]) -> Result<OrbBuilder, ArgsError> {
    if options.is_empty() {
        return Ok(builder);
    }
    let mut tls = Tls::builder();
    let (mut certificate, mut key) = (None, None);
    for (name, value) in options {
        let wrong = |expected: &str| ArgsError::value(name, value, expected);
        tls = match (&**name, &**value) {
            ("sslCAFile", path) => tls.trust(Trust::file(path)),
            ("sslCertificateFile", path) => {
                certificate = Some(path);
                tls
            }
            ("sslKeyFile", path) => {
                key = Some(path);
                tls
            }
            ("sslKeyPassword", "") => tls,
            // The password must not appear in the message.
            ("sslKeyPassword", _) => {
                return Err(ArgsError::value(
                    name,
                    "***",
                    "encrypted keys are not read; write the key without a password",
                ));
            }
            ("sslVerifyMode", "none") => tls.client_certificates(ClientCertificates::None),
            ("sslVerifyMode", "peer") => tls.client_certificates(ClientCertificates::Optional),
            ("sslVerifyMode", "peer,fail") => tls.client_certificates(ClientCertificates::Required),
            ("sslVerifyMode", _) => return Err(wrong("none, peer or peer,fail is expected")),
            ("sslCRLFile", path) => tls.revocation_list(RevocationList::file(path)),
            ("sslRevocationCheck", "strict") => tls.revocation_check(RevocationCheck::Strict),
            ("sslRevocationCheck", "listed") => tls.revocation_check(RevocationCheck::Listed),
            ("sslRevocationCheck", _) => return Err(wrong("strict or listed is expected")),
            ("sslServerNames", "checked") => tls.server_names(ServerNames::Checked),
            ("sslServerNames", "unchecked") => tls.server_names(ServerNames::Unchecked),
            ("sslServerNames", _) => return Err(wrong("checked or unchecked is expected")),
            ("sslOutgoing", "preferred") => tls.outgoing(Outgoing::Preferred),
            ("sslOutgoing", "required") => tls.outgoing(Outgoing::Required),
            ("sslOutgoing", "where-required") => tls.outgoing(Outgoing::WhereRequired),
            ("sslOutgoing", _) => return Err(wrong("preferred, required or where-required is expected")),
            (name, _) => return Err(ArgsError::Unknown(format!("-ORB{name}"))),
        };
    }
    // As in omniORB, one file may hold both.
    if let (Some(chain), Some(key)) = (certificate.or(key), key.or(certificate)) {
        tls = tls.identity(Identity::files(chain, key));
    }
    Ok(builder.tls(tls.build().map_err(|error| ArgsError::Tls(error.to_string()))?))
}
