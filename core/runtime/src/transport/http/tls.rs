//! TLS in front of HTTP.

use crate::transport::open_to_read;
use arc_swap::ArcSwap;
use std::fmt;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

/// The certificate of a server, and its TLS configuration. Clones share it.
#[derive(Clone)]
pub struct Tls(Arc<ArcSwap<ServerConfig>>);

impl Tls {
    /// TLS 1.2 and 1.3 with the certificates (the server's own first) and the private key of these PEM files.
    ///
    /// # Errors
    /// A file cannot be read, or has no such content; or the key does not belong to the certificate. The message names
    /// the file.
    pub fn from_pem(certificates: impl AsRef<Path>, key: impl AsRef<Path>) -> io::Result<Self> {
        Self::read(certificates.as_ref(), key.as_ref()).map(Self::new)
    }

    /// Reads the files of a renewed certificate, for the connections from now on. If it fails, nothing changes.
    ///
    /// # Errors
    /// As [`Tls::from_pem`].
    pub fn renew(&self, certificates: impl AsRef<Path>, key: impl AsRef<Path>) -> io::Result<()> {
        let config = Self::read(certificates.as_ref(), key.as_ref())?;
        self.0.store(Arc::new(with_protocol(config)));
        Ok(())
    }

    /// Says whether clients refuse these certificates because of their dates, by the clock of this machine. `None` if the
    /// first one is valid now, or cannot be read.
    pub fn date_fault(certificates: impl AsRef<Path>) -> Option<&'static str> {
        let file = BufReader::new(open_to_read(certificates.as_ref()).ok()?);
        let first = CertificateDer::pem_reader_iter(file).next()?.ok()?;
        let parsed = ParsedCertificate::try_from(&first).ok()?;
        let algorithms = ring::default_provider().signature_verification_algorithms.all;
        // Without an authority nothing is verified, but the dates are looked at first.
        let roots = RootCertStore::empty();
        match verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], UnixTime::now(), algorithms) {
            Err(Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. },
            )) => Some("the certificate has expired"),
            Err(Error::InvalidCertificate(
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
            )) => Some("the certificate is not valid yet"),
            _ => None,
        }
    }

    fn read(certificates: &Path, key: &Path) -> io::Result<ServerConfig> {
        let open = |path: &Path, expected: &str| {
            open_to_read(path).map(BufReader::new).map_err(|error| unusable(path, expected, &error))
        };
        let chain = CertificateDer::pem_reader_iter(open(certificates, "certificates")?);
        let chain = chain.collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| unusable(certificates, "certificates", &error))?;
        let owned = PrivateKeyDer::from_pem_reader(open(key, "a private key")?);
        let owned = owned.map_err(|error| unusable(key, "a private key", &error))?;
        if chain.is_empty() {
            return Err(unusable(certificates, "certificates", &"there is none"));
        }
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
        let config = builder.with_no_client_auth().with_single_cert(chain, owned);
        let expected = "the private key of the certificate";
        config.map_err(|error| unusable(key, expected, &error))
    }

    /// Uses `config`, and adds HTTP/1.1 as its protocol.
    pub fn new(config: ServerConfig) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(with_protocol(config))))
    }

    pub(super) async fn accept(&self, socket: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(self.0.load_full()).accept(socket).await
    }
}

fn with_protocol(mut config: ServerConfig) -> ServerConfig {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

fn unusable(path: &Path, expected: &str, error: &dyn fmt::Display) -> io::Error {
    io::Error::other(format!("{}: expected {expected} in PEM: {error}", path.display()))
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
