//! What PostgreSQL stores of a password (RFC 5802, RFC 7677).
//!
//! A server takes this in the place of the password. So the password is neither in
//! the statement nor in the server's log, and whoever reads them cannot log in.

use crate::secret::{NoRandom, Secret, random};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2};
use std::num::NonZeroU32;

/// Rounds of derivation: the server's own default.
const ROUNDS: NonZeroU32 = NonZeroU32::MIN.saturating_add(4_095);

/// Bytes of salt: the server's own default.
const SALT_BYTES: usize = 16;

/// The verifier of a password of ASCII characters, with a new salt each time.
///
/// # Errors
///
/// When the system gives no random numbers.
pub fn verifier(password: &Secret) -> Result<String, NoRandom> {
    let salt: [u8; SALT_BYTES] = random()?;
    Ok(with_salt(password, &salt))
}

fn with_salt(password: &Secret, salt: &[u8]) -> String {
    let mut salted = [0; digest::SHA256_OUTPUT_LEN];
    let secret = password.expose().as_bytes();
    pbkdf2::derive(
        pbkdf2::PBKDF2_HMAC_SHA256,
        ROUNDS,
        salt,
        secret,
        &mut salted,
    );
    let key = hmac::Key::new(hmac::HMAC_SHA256, &salted);
    let client = hmac::sign(&key, b"Client Key");
    let stored = digest::digest(&digest::SHA256, client.as_ref());
    let server = hmac::sign(&key, b"Server Key");
    format!(
        "SCRAM-SHA-256${ROUNDS}:{}${}:{}",
        STANDARD.encode(salt),
        STANDARD.encode(stored),
        STANDARD.encode(server)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The salt and password of the example in RFC 7677; a client that knows the
    /// password proves it to whoever holds this.
    #[test]
    fn the_verifier_fits_the_exchange_of_the_rfc() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = with_salt(&Secret::new("pencil"), &salt);
        let (_, keys) = verifier.rsplit_once('$').unwrap();
        let (stored, server) = keys.split_once(':').unwrap();
        let messages = b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let stored = STANDARD.decode(stored).unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, &stored);
        let signature = hmac::sign(&key, messages);
        let proof = STANDARD
            .decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
            .unwrap();
        let client: Vec<u8> = proof
            .iter()
            .zip(signature.as_ref())
            .map(|(a, b)| a ^ b)
            .collect();
        assert_eq!(digest::digest(&digest::SHA256, &client).as_ref(), stored);
        let server = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(server).unwrap());
        let signature = STANDARD.encode(hmac::sign(&server, messages));
        assert_eq!(signature, "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }
}
