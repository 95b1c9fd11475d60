//! Certificates that are created for a test.

use std::net::{IpAddr, Ipv4Addr};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationList, CertificateRevocationListParams,
    CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, RevokedCertParams, SanType,
    SerialNumber, date_time_ymd,
};

/// A CA.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// Creates a CA with that name.
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        Self { issuer: CertifiedIssuer::self_signed(authority(name), key).unwrap() }
    }

    /// Returns a CA whose certificate is issued by this one.
    pub fn below(&self, name: &str, serial: u64) -> Self {
        let mut params = authority(name);
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().unwrap();
        Self { issuer: CertifiedIssuer::signed_by(params, key, &self.issuer).unwrap() }
    }

    /// Returns its certificate.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Issues a certificate for 127.0.0.1, and returns it with its key.
    pub fn issue(&self, name: &str) -> (String, String) {
        self.issue_with(name, |_| {})
    }

    /// Issues an expired certificate.
    pub fn issue_expired(&self, name: &str) -> (String, String) {
        self.issue_with(name, |params| {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        })
    }

    /// Issues a certificate with a serial number.
    pub fn issue_numbered(&self, name: &str, serial: u64) -> (String, String) {
        self.issue_with(name, |params| params.serial_number = Some(SerialNumber::from(serial)))
    }

    /// Returns the list of its revoked certificates, valid until the start of the year `until`.
    pub fn revocation_list(&self, serials: &[u64], until: i32) -> String {
        self.revoke(serials, until).pem().unwrap()
    }

    /// Returns the revocation list in a form that can be encoded as PEM or DER.
    pub fn revoke(&self, serials: &[u64], until: i32) -> CertificateRevocationList {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap()
    }

    /// Returns a certificate for 127.0.0.1 and its key, both as PEM, after a change of its parameters.
    pub fn issue_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}
