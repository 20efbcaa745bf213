//! TLS in front of HTTP.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// The certificate that a server shows, and how it speaks TLS.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl Tls {
    /// TLS 1.2 and 1.3 with the certificates (the server's own first) and the private key of these PEM files.
    ///
    /// # Errors
    /// A file cannot be read, or holds nothing of that sort; the key does not belong to the certificate.
    pub fn from_pem(certificates: impl AsRef<Path>, key: impl AsRef<Path>) -> io::Result<Self> {
        let chain = CertificateDer::pem_file_iter(certificates).map_err(io::Error::other)?;
        let chain = chain.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(io::Error::other)?;
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
        let config = builder.with_no_client_auth().with_single_cert(chain, key).map_err(io::Error::other)?;
        Ok(Self::new(config))
    }

    /// As `config` says; it is told that HTTP/1.1 is spoken.
    pub fn new(mut config: ServerConfig) -> Self {
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self(TlsAcceptor::from(Arc::new(config)))
    }

    pub(super) async fn accept(&self, socket: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.0.accept(socket).await
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
