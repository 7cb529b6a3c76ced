//! Whom a webhook's certificate is taken from.

use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// Trusts what these certificates have signed, and these themselves: who makes a certificate
/// by hand has most often one that is that of an authority, too, which webpki takes for no
/// server's. Go does. Of such a one, its name counts and not its dates.
#[derive(Debug)]
struct Pinned {
    signed: Arc<WebPkiServerVerifier>,
    themselves: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.signed.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(error) if is_authority(&error) && self.themselves.contains(end_entity) => {
                let parsed = ParsedCertificate::try_from(end_entity)?;
                verify_server_name(&parsed, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

/// Whether a certificate is refused because it is that of an authority. The library has this
/// for no kind of its own.
fn is_authority(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(why) if format!("{why:?}").contains("CaUsedAsEndEntity"))
}

/// How a client speaks TLS that trusts these certificates.
///
/// # Errors
///
/// When one of them cannot be read, or there is none.
pub(super) fn trusting(certificates: Vec<CertificateDer<'static>>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        let added = roots.add(certificate.clone());
        added.map_err(|why| format!("caBundle: {why}"))?;
    }
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let signed =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let verifier = Pinned {
        signed: signed.map_err(|why| format!("caBundle: {why}"))?,
        themselves: certificates,
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| why.to_string())?;
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
    use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    use tokio_rustls::rustls::{ClientConnection, ServerConfig, ServerConnection};

    use super::*;

    fn made(is_ca: IsCa) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.is_ca = is_ca;
        let certificate = params.self_signed(&key).unwrap().der().clone();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        (certificate, key.into())
    }

    /// What a client that trusts `known` says of a server with `shown`.
    fn shake(
        known: &CertificateDer<'static>,
        shown: (CertificateDer<'static>, PrivateKeyDer<'static>),
        name: &str,
    ) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![shown.0], shown.1)
            .unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut connection = ServerConnection::new(Arc::new(config)).unwrap();
            // It ends as the client has it.
            let _ = connection.complete_io(&mut stream);
        });
        let config = trusting(vec![known.clone()])?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let shaken = connection.complete_io(&mut stream).map(drop);
        drop(stream);
        server.join().unwrap();
        shaken.map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_trusted_may_be_shown_itself() {
        for is_ca in [IsCa::Ca(BasicConstraints::Unconstrained), IsCa::NoCa] {
            let shown = made(is_ca);
            let known = shown.0.clone();
            assert_eq!(shake(&known, shown, "127.0.0.1"), Ok(()), "{is_ca:?}");
        }
    }

    #[test]
    fn others_and_other_names_are_refused() {
        let authority = || made(IsCa::Ca(BasicConstraints::Unconstrained));
        let shown = authority();
        let known = shown.0.clone();
        assert!(shake(&known, shown, "127.0.0.2").is_err());
        assert!(shake(&authority().0, authority(), "127.0.0.1").is_err());
    }
}
