//! Seals texts that are sent to a peer and returned by it: cursors and `requestState`. Uses
//! AES-256-GCM-SIV with a nonce derived from the sealed data: the same call gives the same bytes, no randomness is
//! required, and two calls share a nonce only if they are identical. A returned text is untrusted until it opens.

use std::fmt;

use aes_gcm_siv::aead::{Aead, KeyInit, Payload};
use aes_gcm_siv::{Aes256GcmSiv, Nonce};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use crate::base64;
use crate::option::{FromOption, OptionError, OptionValue};

/// The prefix of every sealed text: the version of the format.
const PREFIX: &str = "v1.";

/// The length of the nonce before the ciphertext.
const NONCE: usize = 12;

/// The length of the authentication tag after the ciphertext.
const TAG: usize = 16;

/// Seals with its first key and opens with any.
#[derive(Clone)]
pub struct Seal {
    keys: Vec<Cipher>,
}

/// A key to seal with.
#[derive(Clone)]
pub struct SealKey {
    bytes: [u8; 32],
}

/// The reason for which something cannot be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// The secret has fewer than [`SealKey::MIN_SECRET`] bytes.
    ShortSecret,
    /// The text has more than [`Seal::MAX_PLAIN`] bytes.
    TooLong,
}

impl Seal {
    /// Maximum number of bytes that can be sealed.
    pub const MAX_PLAIN: usize = 64 * 1024;

    /// `first` seals and opens, `older` only open. To change a key, put the new one first, and keep the old one until
    /// everything it sealed has expired.
    pub fn new(first: &SealKey, older: &[SealKey]) -> Self {
        Self { keys: std::iter::once(first).chain(older).map(Cipher::new).collect() }
    }

    /// Seals `plain` for `purpose`, a constant of the caller, and the context `aad`: it opens only with the same two.
    /// The text does not contain the context.
    ///
    /// # Errors
    /// [`SealError::TooLong`] if `plain` has more than [`Seal::MAX_PLAIN`] bytes.
    pub fn seal(&self, purpose: &str, aad: &[&[u8]], plain: &[u8]) -> Result<String, SealError> {
        let first = self.keys.first().filter(|_| plain.len() <= Self::MAX_PLAIN).ok_or(SealError::TooLong)?;
        let sealed = first.seal(&context(purpose, aad), plain).ok_or(SealError::TooLong)?;
        let mut text = String::from(PREFIX);
        base64::encode_url_into(&sealed, &mut text);
        Ok(text)
    }

    /// Opens a sealed text. `None` unless [`Seal::seal`] made it with the same purpose and context under one of these
    /// keys. The tag is compared in constant time.
    pub fn open(&self, purpose: &str, aad: &[&[u8]], text: &str) -> Option<Vec<u8>> {
        const MAX_TEXT: usize = (NONCE + Seal::MAX_PLAIN + TAG).div_ceil(3) * 4;
        let body = text.strip_prefix(PREFIX).filter(|body| body.len() <= MAX_TEXT)?;
        let sealed = base64::decode_url(body)?;
        let context = context(purpose, aad);
        self.keys.iter().find_map(|key| key.open(&context, &sealed))
    }
}

impl FromOption for SealKey {
    const EXPECTED: &'static str = "bytes";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        let OptionValue::Bytes(secret) = value else {
            return Err(OptionError::wrong_type(&value, Self::EXPECTED));
        };
        let short = |_| OptionError::sentence(format!("a key needs at least {} bytes", Self::MIN_SECRET));
        Self::from_secret(&secret).map_err(short)
    }
}

impl SealKey {
    /// Minimum length of a secret in bytes.
    pub const MIN_SECRET: usize = 16;

    /// Derives a key from a secret of any length. Processes that share the secret have the same key.
    ///
    /// # Errors
    /// [`SealError::ShortSecret`] if `secret` has fewer than [`SealKey::MIN_SECRET`] bytes.
    pub fn from_secret(secret: &[u8]) -> Result<Self, SealError> {
        if secret.len() < Self::MIN_SECRET {
            return Err(SealError::ShortSecret);
        }
        Ok(Self::hashed("secret", secret))
    }

    /// Derives a key from a public `label`: it protects a text against corruption only, neither hiding it nor proving
    /// its origin. For cursors where no key is configured.
    pub fn derived(label: &str) -> Self {
        Self::hashed("label", label.as_bytes())
    }

    /// Derives a secret for another use, which does not reveal the key.
    pub(crate) fn derive(&self, label: &str) -> [u8; 32] {
        Sha256::new().chain_update(self.bytes).chain_update(label).finalize().into()
    }

    /// Makes a keyed hash for another use, which does not reveal the key.
    pub(crate) fn mac(&self, label: &str) -> Hmac<Sha256> {
        let mut block = [0; 64];
        block[..32].copy_from_slice(&self.derive(label));
        Hmac::new(&block.into())
    }

    fn hashed(kind: &str, source: &[u8]) -> Self {
        let hash = Sha256::new().chain_update("mcp-resources seal ").chain_update(kind).chain_update([0]);
        Self { bytes: hash.chain_update(source).finalize().into() }
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seal").field("keys", &self.keys.len()).finish()
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey(..)")
    }
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShortSecret => write!(f, "a secret needs at least {} bytes", SealKey::MIN_SECRET),
            Self::TooLong => write!(f, "more than {} bytes cannot be sealed", Seal::MAX_PLAIN),
        }
    }
}

impl std::error::Error for SealError {}

/// An expanded key: one part encrypts, the other derives nonces.
#[derive(Clone)]
struct Cipher {
    aead: Aes256GcmSiv,
    nonces: Hmac<Sha256>,
}

impl Cipher {
    fn new(key: &SealKey) -> Self {
        let part = |label: &str| key.derive(label);
        Self { aead: Aes256GcmSiv::new(&part("encrypt").into()), nonces: key.mac("nonce") }
    }

    fn seal(&self, context: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        let mut nonces = self.nonces.clone();
        nonces.update(context);
        nonces.update(plain);
        let mut nonce = Nonce::default();
        nonce.copy_from_slice(nonces.finalize().into_bytes().get(..NONCE)?);
        let ciphertext = self.aead.encrypt(&nonce, Payload { msg: plain, aad: context }).ok()?;
        Some([nonce.as_slice(), &ciphertext].concat())
    }

    fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, ciphertext) = sealed.split_first_chunk::<NONCE>()?;
        self.aead.decrypt(&Nonce::from(*nonce), Payload { msg: ciphertext, aad: context }).ok()
    }
}

/// Encodes purpose and context as one text, unambiguously.
fn context(purpose: &str, aad: &[&[u8]]) -> Vec<u8> {
    // The count comes first, so that no context is a prefix of another. Otherwise a context could run into the
    // plaintext that follows it in the input of the nonce.
    let mut context = (aad.len() as u64).to_be_bytes().to_vec();
    for part in [PREFIX.as_bytes(), purpose.as_bytes()].into_iter().chain(aad.iter().copied()) {
        context.extend_from_slice(&(part.len() as u64).to_be_bytes());
        context.extend_from_slice(part);
    }
    context
}

#[cfg(test)]
mod tests {
    use super::*;

    const AAD: &[&[u8]] = &[b"alice", b"note://1"];

    fn key(secret: &str) -> SealKey {
        SealKey::from_secret(secret.as_bytes()).unwrap()
    }

    fn seal() -> Seal {
        Seal::new(&key("an old secret of ours"), &[])
    }

    #[test]
    fn opens_what_it_sealed_and_the_same_call_gives_the_same_bytes() {
        for plain in [&b""[..], b"x", &[7; Seal::MAX_PLAIN]] {
            let text = seal().seal("cursor", AAD, plain).unwrap();
            assert_eq!(text, seal().seal("cursor", AAD, plain).unwrap());
            assert_eq!(seal().open("cursor", AAD, &text).as_deref(), Some(plain));
        }
        assert_eq!(seal().seal("cursor", AAD, &[7; Seal::MAX_PLAIN + 1]), Err(SealError::TooLong));
    }

    #[test]
    fn the_text_is_url_safe_and_hides_the_plaintext() {
        let text = seal().seal("state", AAD, b"hidden://uri").unwrap();
        let body = text.strip_prefix("v1.").unwrap();
        assert!(body.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'), "{body}");
        let bytes = base64::decode_url(body).unwrap();
        assert_eq!(bytes.len(), NONCE + b"hidden://uri".len() + TAG);
        assert!(!bytes.windows(6).any(|part| part == b"hidden"));
    }

    // flipped bits, truncated texts, the empty text.
    #[test]
    fn a_changed_text_does_not_open() {
        let text = seal().seal("state", AAD, b"round 1").unwrap();
        let body = base64::decode_url(&text[PREFIX.len()..]).unwrap();
        for bit in 0..body.len() * 8 {
            let mut changed = body.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let changed = format!("{PREFIX}{}", base64::encode_url(&changed));
            assert_eq!(seal().open("state", AAD, &changed), None, "bit {bit}");
        }
        for len in 0..text.len() {
            assert_eq!(seal().open("state", AAD, &text[..len]), None, "{len} characters");
        }
        for other in ["garbage", "v1.", "v1.====", "v2.AAAA", "v1.é"] {
            assert_eq!(seal().open("state", AAD, other), None, "{other}");
        }
        assert_eq!(seal().open("state", AAD, &format!("{text}A")), None);
        assert_eq!(seal().open("state", AAD, &format!("v1.{}", "A".repeat(1 << 20))), None);
        assert_eq!(seal().open("state", AAD, &text).as_deref(), Some(&b"round 1"[..]));
    }

    // another purpose, another context, another key.
    #[test]
    fn opens_only_where_it_was_sealed_for() {
        let text = seal().seal("cursor", AAD, b"x").unwrap();
        assert_eq!(seal().open("state", AAD, &text), None);
        for aad in
            [&[][..], &["alice"], &["alicenote://1"], &["alicen", "ote://1"], &["alice", "note://1", ""]]
        {
            let aad: Vec<_> = aad.iter().map(|part| part.as_bytes()).collect();
            assert_eq!(seal().open("cursor", &aad, &text), None, "{aad:?}");
        }
        let stranger =
            Seal::new(&key("another secret of ours"), &[SealKey::derived("an old secret of ours")]);
        assert_eq!(stranger.open("cursor", AAD, &text), None);
    }

    /// Moving a part of the context into the plaintext gives another nonce and another text.
    #[test]
    fn context_and_plaintext_do_not_run_together() {
        let nonce = |text: &str| text[PREFIX.len()..PREFIX.len() + 16].to_owned();
        let one = seal().seal("p", &[b"ab"], b"c").unwrap();
        let other = seal().seal("p", &[b"a"], b"bc").unwrap();
        assert_ne!(nonce(&one), nonce(&other));
    }

    // texts sealed by an older key open until that key is removed.
    #[test]
    fn keys_rotate() {
        let old = key("the secret of last month");
        let new = key("the secret of this month");
        let text = Seal::new(&old, &[]).seal("state", AAD, b"x").unwrap();
        let both = Seal::new(&new, &[old]);
        assert_eq!(both.open("state", AAD, &text).as_deref(), Some(&b"x"[..]));
        let newer = both.seal("state", AAD, b"x").unwrap();
        assert_ne!(newer, text);
        let alone = Seal::new(&new, &[]);
        assert_eq!(alone.open("state", AAD, &newer).as_deref(), Some(&b"x"[..]));
        assert_eq!(alone.open("state", AAD, &text), None);
    }

    #[test]
    fn keys_are_checked_and_never_printed() {
        assert_eq!(SealKey::from_secret(b"fifteen bytes..").err(), Some(SealError::ShortSecret));
        let shown = format!("{:?} {:?}", key("a secret to be kept"), seal());
        assert_eq!(shown, "SealKey(..) Seal { keys: 1 }");
    }
}
