//! Certificates and keys as OpenSSL writes them.

use crate::certificate::{Pair, parse};

const RSA: &str = include_str!("pem/rsa.crt");
const EC: &str = include_str!("pem/ec.crt");
const ED25519: &str = include_str!("pem/ed25519.crt");
const RSA_KEY: &str = include_str!("pem/rsa.key");
const RSA_PKCS1: &str = include_str!("pem/rsa-pkcs1.key");
const EC_KEY: &str = include_str!("pem/ec.key");
const EC_SEC1: &str = include_str!("pem/ec-sec1.key");
const ED25519_KEY: &str = include_str!("pem/ed25519.key");

#[test]
fn keys_are_told_from_those_of_others() {
    for (certificate, key, pair) in [
        (RSA, RSA_KEY, Pair::Matches),
        (RSA, RSA_PKCS1, Pair::Matches),
        (RSA, EC_KEY, Pair::Other),
        (RSA, EC_SEC1, Pair::Other),
        (RSA, ED25519_KEY, Pair::Other),
        (EC, EC_KEY, Pair::Matches),
        (EC, EC_SEC1, Pair::Matches),
        (EC, RSA_KEY, Pair::Other),
        (EC, RSA_PKCS1, Pair::Other),
        (ED25519, ED25519_KEY, Pair::Unknown),
        (ED25519, RSA_KEY, Pair::Other),
        (EC, RSA, Pair::Unreadable),
        (EC, "", Pair::Unreadable),
    ] {
        let certificate = parse(certificate.as_bytes()).unwrap();
        assert_eq!(certificate.pair(key.as_bytes()), pair, "{key}");
    }
    // One bit of the modulus is another.
    let mut other = RSA_PKCS1.to_owned();
    let at = other.find('\n').unwrap() + 30;
    let flipped = if &other[at..=at] == "A" { "B" } else { "A" };
    other.replace_range(at..=at, flipped);
    let certificate = parse(RSA.as_bytes()).unwrap();
    assert_eq!(certificate.pair(other.as_bytes()), Pair::Other);
}

#[test]
fn the_first_certificate_of_a_chain_counts() {
    let chain = format!("Bag Attributes\n{EC}{RSA}");
    let certificate = parse(chain.as_bytes()).unwrap();
    assert_eq!(certificate.pair(EC_KEY.as_bytes()), Pair::Matches);
}

#[test]
fn hosts_are_those_that_it_names() {
    let certificate = parse(EC.as_bytes()).unwrap();
    for (host, covered) in [
        ("ws.example.com", true),
        ("a.apps.example.com", true),
        ("a.b.apps.example.com", false),
        ("apps.example.com", false),
        ("example.com", false),
        ("ec", false),
    ] {
        assert_eq!(certificate.covers(host), covered, "{host}");
    }
    // It has a name of its own, and none that counts.
    assert!(!parse(ED25519.as_bytes()).unwrap().covers("ed"));
}

#[test]
fn nothing_that_is_cut_short_is_a_certificate_or_an_end() {
    let lines: Vec<&str> = EC.lines().collect();
    let body: String = lines[1..lines.len() - 1].concat();
    for length in 0..body.len() {
        let text = format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----",
            &body[..length]
        );
        assert!(parse(text.as_bytes()).is_none(), "{length}");
    }
    for text in ["", "-----BEGIN CERTIFICATE-----", "\u{fffd}"] {
        assert!(parse(text.as_bytes()).is_none());
    }
}
