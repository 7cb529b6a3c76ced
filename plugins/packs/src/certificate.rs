//! As much of certificates and private keys as tells whether two belong together, and
//! for which hosts a certificate is.
//!
//! A component has no library of X.509 that would not be larger than all the rest of
//! it. What cannot be told from here is [`Pair::Unknown`], not a refusal.

use crate::forms;

/// The first certificate of a chain.
pub(crate) struct Certificate {
    /// The algorithm of its key, as an object identifier.
    algorithm: Vec<u8>,
    /// Its public key as the algorithm writes it.
    public: Vec<u8>,
    /// The host names that it is for, some perhaps with a `*` in front.
    names: Vec<String>,
}

/// What a private key is to a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    Matches,
    Other,
    /// The key does not say what its public key is.
    Unknown,
    /// It is no private key.
    Unreadable,
}

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const CONTEXT_0: u8 = 0xa0;
const CONTEXT_1: u8 = 0xa1;
const CONTEXT_3: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;

/// The first certificate in a PEM text.
pub(crate) fn parse(pem: &[u8]) -> Option<Certificate> {
    let der = block(pem, "CERTIFICATE")?;
    let mut certificate = Reader(&der).expect(SEQUENCE)?;
    let mut body = certificate.expect(SEQUENCE)?;
    // Its version is only there if it is not the first.
    let mut first = body.next()?;
    if first.0 == CONTEXT_0 {
        first = body.next()?;
    }
    (first.0 == INTEGER).then_some(())?;
    // How it is signed, by whom, for how long, and for whom.
    for _ in 0..4 {
        body.expect(SEQUENCE)?;
    }
    let mut key = body.expect(SEQUENCE)?;
    let algorithm = key.expect(SEQUENCE)?.expect(IDENTIFIER)?.0.to_vec();
    let public = bits(&key.expect(BIT_STRING)?)?.to_vec();
    let mut names = Vec::new();
    while let Some((tag, content)) = body.next() {
        if tag == CONTEXT_3 {
            names = alternative_names(Reader(content)).unwrap_or_default();
        }
    }
    Some(Certificate {
        algorithm,
        public,
        names,
    })
}

fn alternative_names(mut extensions: Reader<'_>) -> Option<Vec<String>> {
    let mut extensions = extensions.expect(SEQUENCE)?;
    let mut names = Vec::new();
    while let Some((SEQUENCE, extension)) = extensions.next() {
        let mut extension = Reader(extension);
        if extension.expect(IDENTIFIER)?.0 != SUBJECT_ALT_NAME {
            continue;
        }
        // It may say that it is critical before it says what it is.
        let mut content = extension.next()?;
        if content.0 != OCTET_STRING {
            content = extension.next()?;
        }
        let mut all = Reader(content.1).expect(SEQUENCE)?;
        while let Some((tag, name)) = all.next() {
            if tag == DNS_NAME {
                names.push(String::from_utf8_lossy(name).to_ascii_lowercase());
            }
        }
    }
    Some(names)
}

impl Certificate {
    /// Whether it is for a host, as browsers read it: the star of `*.example.com`
    /// stands for one label.
    pub(crate) fn covers(&self, host: &str) -> bool {
        self.names.iter().any(|name| match name.strip_prefix("*.") {
            Some(parent) => host.split_once('.').is_some_and(|(_, rest)| rest == parent),
            None => name == host,
        })
    }

    /// What the private key in a PEM text is to it.
    pub(crate) fn pair(&self, pem: &[u8]) -> Pair {
        self.compare(pem).unwrap_or(Pair::Unreadable)
    }

    fn compare(&self, pem: &[u8]) -> Option<Pair> {
        if let Some(der) = block(pem, "RSA PRIVATE KEY") {
            return self.compare_rsa(&der);
        }
        if let Some(der) = block(pem, "EC PRIVATE KEY") {
            return self.compare_ec(&der);
        }
        let der = block(pem, "PRIVATE KEY")?;
        let mut key = Reader(&der).expect(SEQUENCE)?;
        key.expect(INTEGER)?;
        let algorithm = key.expect(SEQUENCE)?.expect(IDENTIFIER)?.0;
        let inner = key.expect(OCTET_STRING)?.0;
        match algorithm {
            RSA => self.compare_rsa(inner),
            EC => self.compare_ec(inner),
            other if other == self.algorithm => Some(Pair::Unknown),
            _ => Some(Pair::Other),
        }
    }

    fn compare_rsa(&self, der: &[u8]) -> Option<Pair> {
        let mut key = Reader(der).expect(SEQUENCE)?;
        key.expect(INTEGER)?;
        let modulus = key.expect(INTEGER)?.0;
        if self.algorithm != RSA {
            return Some(Pair::Other);
        }
        let public = Reader(&self.public).expect(SEQUENCE)?.expect(INTEGER)?.0;
        Some(equal(modulus == public))
    }

    fn compare_ec(&self, der: &[u8]) -> Option<Pair> {
        let mut key = Reader(der).expect(SEQUENCE)?;
        key.expect(INTEGER)?;
        key.expect(OCTET_STRING)?;
        if self.algorithm != EC {
            return Some(Pair::Other);
        }
        while let Some((tag, content)) = key.next() {
            if tag == CONTEXT_1 {
                let public = bits(&Reader(content).expect(BIT_STRING)?)?;
                return Some(equal(public == self.public));
            }
        }
        Some(Pair::Unknown)
    }
}

fn equal(equal: bool) -> Pair {
    if equal { Pair::Matches } else { Pair::Other }
}

/// The bytes of a bit string, which are preceded by how many bits are not used.
fn bits<'a>(string: &Reader<'a>) -> Option<&'a [u8]> {
    string.0.strip_prefix(&[0])
}

/// The first block of this label in a PEM text (RFC 7468).
fn block(pem: &[u8], label: &str) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(pem).ok()?;
    let (begin, end) = (
        format!("-----BEGIN {label}-----"),
        format!("-----END {label}-----"),
    );
    let mut lines = text.lines().map(str::trim);
    lines.find(|line| *line == begin)?;
    let mut body = String::new();
    for line in lines {
        if line == end {
            return forms::decode(&body);
        }
        body.push_str(line);
    }
    None
}

/// What is left of a text in DER (X.690).
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Tag and content of the next element.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let length = match usize::from(first) {
            short @ 0..=0x7f => short,
            // Four bytes of length are more than any certificate has.
            long @ 0x81..=0x84 => {
                let bytes = rest.get(..long & 0x7f)?;
                rest = rest.get(long & 0x7f..)?;
                bytes
                    .iter()
                    .fold(0, |length, byte| length << 8 | usize::from(*byte))
            }
            _ => return None,
        };
        let content = rest.get(..length)?;
        self.0 = rest.get(length..)?;
        Some((tag, content))
    }

    /// The content of the next element, which has this tag.
    fn expect(&mut self, tag: u8) -> Option<Reader<'a>> {
        let (found, content) = self.next()?;
        (found == tag).then_some(Reader(content))
    }
}
