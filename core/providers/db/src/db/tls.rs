//! TLS for Postgres, as libpq names it: who is trusted, and the handshake.
//!
//! | `sslmode` | encryption | certificate of the server |
//! | --- | --- | --- |
//! | `disable` | never | |
//! | `allow` | if the server refuses a connection without | any |
//! | `prefer` | if the server has it | any |
//! | `require` | always | any; with a file of roots as `verify-ca` |
//! | `verify-ca` | always | of an authority in the file of roots |
//! | `verify-full` | always | the same, or of the system's authorities, and for the name of the host |
//!
//! Law: the files are read again for each connection, so a renewed certificate needs no restart.

use super::ssl_mode::SslMode;
use mcp_resources_runtime::transport::open_to_read;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use std::fmt;
use std::io::{self, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

/// The largest file of certificates or of a key, in bytes.
const MOST_FILE: u64 = 1 << 20;
/// The question whether a server has TLS: a length, and a number in the place of a version.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// The settings of TLS of one database.
#[derive(Clone, Debug, Default)]
pub(super) struct TlsSettings {
    pub(super) mode: SslMode,
    /// `None`: the system's authorities.
    pub(super) root_file: Option<PathBuf>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    /// Whether TLS begins at once, without the question of the protocol.
    pub(super) is_direct: bool,
}

/// A way to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    Never,
    /// If the server says that it has it.
    Offered,
    Always,
}

/// The reason why there is no encrypted connection.
#[derive(Debug)]
pub(super) enum TlsFault {
    /// Before the handshake.
    Socket(io::Error),
    Handshake(io::Error),
    /// The settings must change: the server has no TLS, or shows a certificate that is not trusted.
    Refused(String),
}

impl SslMode {
    /// The ways to connect to a server over TCP, in their order.
    pub(super) fn attempts(self) -> &'static [Encryption] {
        match self {
            Self::Disable => &[Encryption::Never],
            Self::Allow => &[Encryption::Never, Encryption::Always],
            Self::Prefer => &[Encryption::Offered, Encryption::Never],
            Self::Require | Self::VerifyCa | Self::VerifyFull => &[Encryption::Always],
        }
    }
}

impl TlsSettings {
    /// # Errors
    /// The settings contradict each other: half a sentence with the fix.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        match (self.mode, &self.certificate, &self.key) {
            (SslMode::VerifyCa, ..) if self.root_file.is_none() => Err(
                "has sslmode=verify-ca without a file of authorities: any certificate that the system trusts would do; name the \
                 file with sslrootcert, or write verify-full",
            ),
            (SslMode::Disable | SslMode::Allow | SslMode::Prefer, ..) if self.is_direct => {
                Err("has sslnegotiation=direct, which needs sslmode=require, verify-ca or verify-full")
            }
            (_, Some(_), None) => Err("has sslcert without its key; name the file of the key with sslkey"),
            (_, None, Some(_)) => Err("has sslkey without its certificate; name the file with sslcert"),
            _ => Ok(()),
        }
    }

    /// The configuration of one connection.
    ///
    /// # Errors
    /// A file cannot be used: half a sentence with its path and the fix.
    pub(super) fn configure(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone());
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be used: {error}"))?;
        let builder = match (self.mode, &self.root_file) {
            (SslMode::VerifyFull, file) => builder.with_root_certificates(roots(file.as_deref())?),
            (SslMode::VerifyCa | SslMode::Require, Some(file)) => {
                let roots = Some(roots(Some(file))?);
                let verifier = Arc::new(AnyName { provider, roots });
                builder.dangerous().with_custom_certificate_verifier(verifier)
            }
            _ => {
                let verifier = Arc::new(AnyName { provider, roots: None });
                builder.dangerous().with_custom_certificate_verifier(verifier)
            }
        };
        let mut config = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                let chain = certificates(certificate, "sslcert")?;
                let owned = private_key(key)?;
                builder.with_client_auth_cert(chain, owned).map_err(|error| {
                    let expected = "expected the private key of the certificate in sslcert";
                    format!("sslkey {}: {expected}: {error}", key.display())
                })?
            }
            _ => builder.with_no_client_auth(),
        };
        if self.is_direct {
            config.alpn_protocols = vec![b"postgresql".to_vec()];
        }
        Ok(config)
    }
}

/// The authorities of a file, or those of the system.
fn roots(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    match file {
        Some(file) => {
            for certificate in certificates(file, "sslrootcert")? {
                store.add(certificate).map_err(|error| {
                    format!(
                        "sslrootcert {}: expected certificates of authorities in PEM: {error}",
                        file.display()
                    )
                })?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            store.add_parsable_certificates(found.certs);
            if store.is_empty() {
                let why = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
                return Err(format!(
                    "this system has no certificates of authorities{why}; install ca-certificates, or name a file with \
                     sslrootcert"
                ));
            }
        }
    }
    Ok(store)
}

fn certificates(file: &Path, option: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error: &dyn fmt::Display| {
        format!("{option} {}: expected certificates in PEM: {error}", file.display())
    };
    let opened = open_to_read(file).map_err(|error| wrong(&error))?;
    let chain = CertificateDer::pem_reader_iter(BufReader::new(opened.take(MOST_FILE)));
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(&error))?;
    if chain.is_empty() { Err(wrong(&"there is none")) } else { Ok(chain) }
}

/// Reads a key, which only its owner may read: as libpq has it, also a group if the owner is root.
fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let wrong = |error: &dyn fmt::Display| {
        format!("sslkey {}: expected a private key in PEM: {error}", file.display())
    };
    let opened = open_to_read(file).map_err(|error| wrong(&error))?;
    let facts = opened.metadata().map_err(|error| wrong(&error))?;
    let others = if facts.uid() == 0 { 0o037 } else { 0o077 };
    if facts.mode() & others != 0 {
        let mode = facts.mode() & 0o777;
        return Err(format!(
            "sslkey {}: others can read the private key (mode {mode:04o}); write chmod 600",
            file.display()
        ));
    }
    PrivateKeyDer::from_pem_reader(BufReader::new(opened.take(MOST_FILE))).map_err(|error| wrong(&error))
}

/// A socket whose encryption is settled.
pub(super) enum BegunStream<S> {
    Encrypted(Box<TlsStream<S>>),
    Plain(S),
}

/// Asks the server for TLS, and begins it. A server without TLS goes on on the same socket, if `encryption` allows that.
pub(super) async fn begin<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: S,
    settings: &TlsSettings,
    config: Arc<ClientConfig>,
    name: Option<&str>,
    encryption: Encryption,
) -> Result<BegunStream<S>, TlsFault> {
    if encryption == Encryption::Never {
        return Ok(BegunStream::Plain(socket));
    }
    if !settings.is_direct {
        socket.write_all(&SSL_REQUEST).await.map_err(TlsFault::Socket)?;
        socket.flush().await.map_err(TlsFault::Socket)?;
        // One byte: what comes behind it unencrypted is no answer, and the handshake fails.
        match (socket.read_u8().await.map_err(TlsFault::Socket)?, encryption) {
            (b'S', _) => {}
            (b'N', Encryption::Offered) => return Ok(BegunStream::Plain(socket)),
            (b'N', _) => {
                return Err(TlsFault::Refused(format!(
                    "the server has no TLS; set `ssl = on` there, or write another sslmode than {}",
                    settings.mode.as_str()
                )));
            }
            _ => return Err(TlsFault::Socket(io::Error::other("it does not answer as Postgres does"))),
        }
    }
    let unnamed = "a host without a name cannot be verified; write the host into the URL";
    let name = match name.map(|name| ServerName::try_from(name.to_owned())) {
        Some(Ok(name)) => name,
        // The name is not verified, and no server is chosen by it.
        _ if settings.mode != SslMode::VerifyFull => ServerName::from(std::net::IpAddr::from([0, 0, 0, 0])),
        _ => return Err(TlsFault::Refused(unnamed.into())),
    };
    let began = TlsConnector::from(config).connect(name.clone(), socket).await;
    began
        .map(|stream| BegunStream::Encrypted(Box::new(stream)))
        .map_err(|error| fault(error, &name, settings))
}

/// The fault of a handshake, with the fix where the settings can be one.
fn fault(error: io::Error, name: &ServerName<'_>, settings: &TlsSettings) -> TlsFault {
    let inner = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(certificate)) = inner else {
        return TlsFault::Handshake(error);
    };
    let host = name.to_str();
    let text = match certificate {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
            "the server's certificate is not for {host:?}; write the host's name as the certificate has it in subjectAltName, or \
             sslmode=verify-ca"
        ),
        CertificateError::UnknownIssuer => match &settings.root_file {
            Some(file) => format!(
                "the server's certificate is not from an authority in {}; name the right file with sslrootcert",
                file.display()
            ),
            None => "the server's certificate is not from an authority that this system trusts; name the file of its \
                     authority with sslrootcert"
                .into(),
        },
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "the server's certificate is that of an authority; make one for the server alone, with basicConstraints=CA:FALSE"
                .into()
        }
        _ => return TlsFault::Handshake(error),
    };
    TlsFault::Refused(text)
}

/// Accepts certificates for every name: of the authorities, or of anybody.
#[derive(Debug)]
struct AnyName {
    provider: Arc<CryptoProvider>,
    roots: Option<RootCertStore>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(roots) = &self.roots {
            let parsed = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, roots, intermediates, now, algorithms)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The value that binds a login to the certificate of this connection (RFC 5929, `tls-server-end-point`). `None` if the
/// certificate has no hash that it is defined for.
pub(super) fn end_point<S>(stream: &TlsStream<S>) -> Option<Vec<u8>> {
    let (_, connection) = stream.get_ref();
    digest_of(connection.peer_certificates()?.first()?)
}

/// The digest of a certificate by the hash of its signature; SHA-256 in the place of MD5 and SHA-1.
fn digest_of(certificate: &[u8]) -> Option<Vec<u8>> {
    let (outer, _) = element(certificate, 0x30)?;
    let (_, behind) = element(outer, 0x30)?;
    let (algorithm, _) = element(behind, 0x30)?;
    let (identifier, _) = element(algorithm, 0x06)?;
    const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    match (identifier.strip_prefix(&RSA), identifier.strip_prefix(&ECDSA)) {
        (Some([4 | 5 | 11]), _) | (_, Some([2])) => Some(Sha256::digest(certificate).to_vec()),
        (Some([12]), _) | (_, Some([3])) => Some(Sha384::digest(certificate).to_vec()),
        (Some([13]), _) | (_, Some([4])) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// The contents of the first element of DER, which must have this tag, and what is behind it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = der.split_first()?;
    let (length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(*length), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(length - 0x80))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    (*first == tag).then(|| rest.split_at_checked(length))?
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-20: settings that would verify less than they seem to are refused.
    #[test]
    fn contradictions_are_refused() {
        let settings = |mode| TlsSettings { mode, ..TlsSettings::default() };
        assert!(settings(SslMode::VerifyCa).check().unwrap_err().contains("name the file with sslrootcert"));
        assert!(settings(SslMode::VerifyFull).check().is_ok());
        let direct = TlsSettings { is_direct: true, ..settings(SslMode::Prefer) };
        assert!(direct.check().unwrap_err().contains("needs sslmode=require"));
        let lone = TlsSettings { certificate: Some("c".into()), ..settings(SslMode::Require) };
        assert!(lone.check().unwrap_err().contains("name the file of the key"));
        let lone = TlsSettings { key: Some("k".into()), ..settings(SslMode::Require) };
        assert!(lone.check().unwrap_err().contains("name the file with sslcert"));
    }

    // The digest is by the hash of the signature; what is no certificate has none, however it is cut.
    #[test]
    fn certificates_are_digested() {
        let der = |tag: u8, body: &[u8]| [&[tag, u8::try_from(body.len()).unwrap()], body].concat();
        for (identifier, length) in [
            (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 11][..], Some(32)),
            (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 13], Some(64)),
            (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 3], Some(48)),
            (&[0x2b, 0x65, 0x70], None),
        ] {
            let parts = [der(0x30, b"tbs"), der(0x30, &der(0x06, identifier)), der(0x03, b"signature")];
            let whole = der(0x30, &parts.concat());
            assert_eq!(digest_of(&whole).map(|digest| digest.len()), length);
            for cut in 0..whole.len() {
                assert_eq!(digest_of(&whole[..cut]), None);
            }
        }
    }
}
