//! Keys and signatures that openssl made, with the commands beside them: what they are
//! must not hang on what made them here.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const MESSAGE: &[u8] = b"a component";

/// `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`.
const P256: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgN0tWM8y35SXPI9VE
U0BdeKtsiKZcJ2R/6Gt4qs/bwP+hRANCAAQU9gKEiIlVanU68mxQ/Q3hgjY9p4kl
+wnrN2JbpuyGOFFBoTBH7K5N4VVyjkoEfEmqP12SmnTaSXnPnaMhhqKs
-----END PRIVATE KEY-----
";

/// `openssl pkey -pubout` of it.
const P256_PUBLIC: &str = "\
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEFPYChIiJVWp1OvJsUP0N4YI2PaeJ
JfsJ6zdiW6bshjhRQaEwR+yuTeFVco5KBHxJqj9dkpp02kl5z52jIYairA==
-----END PUBLIC KEY-----
";

/// `openssl pkey -traditional` of it.
const P256_OLD: &str = "\
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIDdLVjPMt+UlzyPVRFNAXXirbIimXCdkf+hreKrP28D/oAoGCCqGSM49
AwEHoUQDQgAEFPYChIiJVWp1OvJsUP0N4YI2PaeJJfsJ6zdiW6bshjhRQaEwR+yu
TeFVco5KBHxJqj9dkpp02kl5z52jIYairA==
-----END EC PRIVATE KEY-----
";

/// `openssl dgst -sha256 -sign` with it, in base64.
const P256_SIGNATURE: &str = "MEUCIQCluDU5nZprSU0nKpbyJQMeQI3SqIWDhFPKBNEACsZUQwIgPeofMR8hiDNqWxDz5ClqKzphMNCcI7mKcu3Tc9K4hHQ=";

/// `openssl genpkey -algorithm ed25519`.
const ED25519_PRIVATE: &str = "\
-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIGGzMwlgVN2sKODCH8v8niANrxMLqmuTBpvgWT2PXaau
-----END PRIVATE KEY-----
";

/// `openssl pkey -pubout` of it.
const ED25519_PUBLIC: &str = "\
-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAxWAIO0C85+jPtJk4rwZF0zHnpogTr7qgPCj3a25ZA/k=
-----END PUBLIC KEY-----
";

/// `openssl pkeyutl -sign -rawin` with it, in base64.
const ED25519_SIGNATURE: &str =
    "FNeXYpdIA5gMD2KS+yHQ3vWan59x1rrT+bU93oStBD/Be9DBvlvwSYxv4t9lEl+c101atJ1X3p/HU80wSLVDDA==";

/// A key on another curve.
const P384: &str = "\
-----BEGIN PRIVATE KEY-----
MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDAe38TxymXf0tMdJxAg
oBETvfCLl0RcOLSdN/Isyay/n9XDOJSWXt/esG2xplxjOPuhZANiAAR4eIsDunU6
Zz7kh5Gijc1JeLUKr2wIrwHAo8t/tqEKoa/qtyofprVQZ0Io5VsWfG/hSCx6iFs/
D5ARCrlAGO6D3EHPAmseYVaFheUcBbDVcWT4ocueIjHPM1k1TVYZg3w=
-----END PRIVATE KEY-----
";

/// Its public half.
const P384_PUBLIC: &str = "\
-----BEGIN PUBLIC KEY-----
MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEeHiLA7p1Omc+5IeRoo3NSXi1Cq9sCK8B
wKPLf7ahCqGv6rcqH6a1UGdCKOVbFnxv4UgseohbPw+QEQq5QBjug9xBzwJrHmFW
hYXlHAWw1XFk+KHLniIxzzNZNU1WGYN8
-----END PUBLIC KEY-----
";

/// A key of another kind.
const RSA_PUBLIC: &str = "\
-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC11xWNdMN/+XvJgesqUCqHsmZH
ielCw9IOte9lUOZl2qhNDjwUQMvYAonQ/l0ogdZ9sR/XfAKnUH9281vDKckuSKS3
PAXIrRWDDCsZgxMWPmVvBIIOQU+s0HSxCPetECRZAIv2tnu9X5qGJ1n/K370OY5Q
muON743KiMBHSLHorQIDAQAB
-----END PUBLIC KEY-----
";

/// `openssl pkcs8 -topk8` with a password.
const ENCRYPTED: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAiCPaLSdUKASAICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEGgDYJGw8UUwSoR9QNhGpBAEgZAE
Hg3rt4PhjNUfYlgZACG1iBdRV5ufKXm+CSgPu7R7Ownn86utMgIa14zMmG8uzzwb
4FjSXQTdYCKmp8XizsfIPYDqE2edSqZ6yx2QCgRBdHZE6n/Lxlw6dPy791wmQyDt
NQJmQFUX9YPwpLsnJdP8O9vtfXqLmrRrAASzmOW4DCYf1my45HIPsyDN/iIvIxk=
-----END ENCRYPTED PRIVATE KEY-----
";

/// Start of `openssl pkey -pubin -outform DER | sha256sum`.
const P256_FINGERPRINT: &str = "909c8b577c";

/// Start of `openssl pkey -pubin -outform DER | sha256sum`.
const ED25519_FINGERPRINT: &str = "c385834e17";

fn one(text: &str) -> VerifyingKey {
    VerifyingKey::read_all(text).unwrap().remove(0)
}

#[test]
fn signatures_of_openssl_are_verified() {
    for (private, public, signature) in [
        (P256, P256_PUBLIC, P256_SIGNATURE),
        (ED25519_PRIVATE, ED25519_PUBLIC, ED25519_SIGNATURE),
    ] {
        let key = one(public);
        let made = STANDARD.decode(signature).unwrap();
        let own = SigningKey::read(private).unwrap().sign(MESSAGE).unwrap();
        for signature in [&made, &own] {
            assert!(key.verifies(MESSAGE, signature), "{key:?}");
            assert!(!key.verifies(b"other", signature), "{key:?}");
            for index in 0..signature.len() {
                let mut spoiled = signature.clone();
                spoiled[index] ^= 1;
                assert!(!key.verifies(MESSAGE, &spoiled), "{key:?} {index}");
            }
            let long = [&signature[..], &[0; MAX_SIGNATURE_BYTES]].concat();
            assert!(!key.verifies(MESSAGE, &long));
            assert!(!key.verifies(MESSAGE, &signature[1..]));
            assert!(!key.verifies(MESSAGE, &[]));
        }
    }
    // Neither kind takes what the other made.
    let p256 = STANDARD.decode(P256_SIGNATURE).unwrap();
    let ed25519 = STANDARD.decode(ED25519_SIGNATURE).unwrap();
    assert!(!one(ED25519_PUBLIC).verifies(MESSAGE, &p256));
    assert!(!one(P256_PUBLIC).verifies(MESSAGE, &ed25519));
}

#[test]
fn several_keys_are_read_and_known_by_their_digests() {
    let both = VerifyingKey::read_all(&format!("{P256_PUBLIC}\n{ED25519_PUBLIC}")).unwrap();
    let known: Vec<String> = both.iter().map(VerifyingKey::fingerprint).collect();
    assert_eq!(known, [P256_FINGERPRINT, ED25519_FINGERPRINT]);
}

#[test]
fn what_is_no_key_says_what_would_be() {
    let mut twisted = P256_PUBLIC.to_owned();
    twisted = twisted.replace("MFkw", "MFkx");
    let many = P256_PUBLIC.repeat(MAX_KEYS + 1);
    for (text, says) in [
        ("", "no public key is in it"),
        ("junk", "no public key is in it"),
        (P256, "it holds a `PRIVATE KEY`"),
        (RSA_PUBLIC, "neither ECDSA on P-256 nor Ed25519"),
        (P384_PUBLIC, "neither ECDSA on P-256 nor Ed25519"),
        (&twisted, "neither ECDSA on P-256 nor Ed25519"),
        (&many, "more than 32 keys"),
    ] {
        let error = VerifyingKey::read_all(text).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
    for (text, says) in [
        ("", "no private key is in it"),
        (P256_PUBLIC, "no private key is in it"),
        (P256_OLD, "openssl pkcs8 -topk8"),
        (ENCRYPTED, "it is encrypted"),
        (P384, "it must be of ECDSA on P-256"),
    ] {
        let error = SigningKey::read(text).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
}
