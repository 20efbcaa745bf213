//! TLS in front of HTTP.

use crate::transport::open_to_read;
use std::fmt;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// The certificate of a server, and its TLS configuration.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl Tls {
    /// TLS 1.2 and 1.3 with the certificates (the server's own first) and the private key of these PEM files.
    ///
    /// # Errors
    /// A file cannot be read, or has no such content; or the key does not belong to the certificate. The message names
    /// the file.
    pub fn from_pem(certificates: impl AsRef<Path>, key: impl AsRef<Path>) -> io::Result<Self> {
        let certificates = certificates.as_ref();
        let key = key.as_ref();
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
        config.map(Self::new).map_err(|error| unusable(key, expected, &error))
    }

    /// Uses `config`, and adds HTTP/1.1 as its protocol.
    pub fn new(mut config: ServerConfig) -> Self {
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self(TlsAcceptor::from(Arc::new(config)))
    }

    pub(super) async fn accept(&self, socket: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.0.accept(socket).await
    }
}

fn unusable(path: &Path, expected: &str, error: &dyn fmt::Display) -> io::Error {
    io::Error::other(format!("{}: expected {expected} in PEM: {error}", path.display()))
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
