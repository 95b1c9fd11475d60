//! Creates the component of references that describes which logins the server requires.

use giop_codec::csi::{
    AsContextSec, AssociationOptions, CompoundSecMech, CompoundSecMechList, IdentityTypes, Oid,
    SasContextSec, TlsSecTrans, TransportAddress, TransportMechanism,
};
use giop_codec::ior::{SslSecTrans, TaggedComponent};

use crate::csi::logins::{Logins, Required};
use crate::csi::security::Security;

impl Security {
    /// Returns the component of a profile, if there is anything to describe. `tls` describes the TLS port at
    /// `host`. `plain_is_private` is `None` if there are no addresses without TLS. Otherwise, it is true if
    /// others cannot read connections to them.
    pub(crate) fn component(
        &self,
        host: &str,
        tls: Option<SslSecTrans>,
        plain_is_private: Option<bool>,
    ) -> Option<TaggedComponent> {
        let logins = self.logins.as_deref()?;
        let secure = tls.map(|ssl| {
            let mut requires = AssociationOptions(ssl.target_requires);
            if plain_is_private.is_some() {
                // Connections without TLS have their own mechanism, or none, so this applies only to TLS.
                requires = AssociationOptions::INTEGRITY.union(AssociationOptions::CONFIDENTIALITY);
            }
            let supports = AssociationOptions(ssl.target_supports & !SslSecTrans::NO_PROTECTION);
            let address = TransportAddress { host: host.to_owned(), port: ssl.port };
            let transport = TlsSecTrans { supports, requires, addresses: vec![address] };
            logins.mechanism(TransportMechanism::Tls(transport), requires, true)
        });
        let plain = plain_is_private.and_then(|private| {
            let accepts_passwords = private || logins.allows_plaintext;
            let is_usable = accepts_passwords || logins.required == Required::Nothing;
            is_usable.then(|| {
                logins.mechanism(TransportMechanism::None, AssociationOptions::NONE, accepts_passwords)
            })
        });
        let mechanisms: Vec<CompoundSecMech> = secure.into_iter().chain(plain).collect();
        if mechanisms.is_empty() {
            return None;
        }
        let list = CompoundSecMechList { stateful: logins.max_contexts > 0, mechanisms };
        TaggedComponent::csi_mechanisms(&list).ok()
    }
}

impl Logins {
    fn mechanism(
        &self,
        transport: TransportMechanism,
        transport_requires: AssociationOptions,
        accepts_passwords: bool,
    ) -> CompoundSecMech {
        let login = AssociationOptions::ESTABLISH_TRUST_IN_CLIENT;
        let when = |condition, options| if condition { options } else { AssociationOptions::NONE };
        let authentication = match accepts_passwords {
            true => AsContextSec {
                supports: login,
                requires: when(self.required == Required::Login, login),
                mechanism: Oid::GSSUP,
                target_name: self.target_name(),
            },
            false => AsContextSec::default(),
        };
        let mut attributes = SasContextSec::default();
        if !(self.trusted_users.is_empty() && self.trusted_subjects.is_empty()) {
            attributes.supports = AssociationOptions::IDENTITY_ASSERTION;
            attributes.naming_mechanisms = vec![Oid::GSSUP];
            attributes.identity_types = IdentityTypes::ANONYMOUS.union(IdentityTypes::PRINCIPAL_NAME);
            if cfg!(feature = "tls") {
                let of_certificates = IdentityTypes::X509_CERT_CHAIN.union(IdentityTypes::DISTINGUISHED_NAME);
                attributes.identity_types = attributes.identity_types.union(of_certificates);
            }
        }
        let target_requires = transport_requires.union(authentication.requires);
        CompoundSecMech { target_requires, transport, authentication, attributes }
    }
}
