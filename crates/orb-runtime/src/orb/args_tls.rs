//! The conventional command-line options for TLS: `-ORBsslCAFile` and similar ones.

use crate::orb::args::ArgsError;
use crate::orb::builder::OrbBuilder;
use crate::tls::{
    ClientCertificates, Identity, OutgoingTls, RevocationCheck, RevocationList, ServerNames, Tls, Trust,
};

/// Configures TLS from options. Their names do not include `-ORB`. Returns the builder unchanged if there are
/// no options.
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
            // The error must not contain the password.
            ("sslKeyPassword", _) => {
                let reason = "encrypted keys are not supported; store the key without a password";
                return Err(ArgsError::value(name, "***", reason));
            }
            ("sslVerifyMode", "none") => tls.client_certificates(ClientCertificates::None),
            ("sslVerifyMode", "peer") => tls.client_certificates(ClientCertificates::Optional),
            ("sslVerifyMode", "peer,fail") => tls.client_certificates(ClientCertificates::Required),
            ("sslVerifyMode", _) => return Err(wrong("expected none, peer or peer,fail")),
            ("sslCRLFile", path) => tls.revocation_list(RevocationList::file(path)),
            ("sslRevocationCheck", "strict") => tls.revocation_check(RevocationCheck::Strict),
            ("sslRevocationCheck", "listed") => tls.revocation_check(RevocationCheck::Listed),
            ("sslRevocationCheck", _) => return Err(wrong("expected strict or listed")),
            ("sslServerNames", "checked") => tls.server_names(ServerNames::Checked),
            ("sslServerNames", "unchecked") => tls.server_names(ServerNames::Unchecked),
            ("sslServerNames", _) => return Err(wrong("expected checked or unchecked")),
            ("sslOutgoing", "preferred") => tls.outgoing(OutgoingTls::Preferred),
            ("sslOutgoing", "required") => tls.outgoing(OutgoingTls::Required),
            ("sslOutgoing", "where-required") => tls.outgoing(OutgoingTls::WhereRequired),
            ("sslOutgoing", _) => return Err(wrong("expected preferred, required or where-required")),
            (name, _) => return Err(ArgsError::Unknown(format!("-ORB{name}"))),
        };
    }
    // As in omniORB, one file may contain both the certificate and the key.
    if let (Some(chain), Some(key)) = (certificate.or(key), key.or(certificate)) {
        tls = tls.identity(Identity::files(chain, key));
    }
    Ok(builder.tls(tls.build().map_err(|error| ArgsError::Tls(error.to_string()))?))
}
