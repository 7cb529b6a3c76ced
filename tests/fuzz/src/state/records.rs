//! Records of state files, written and found independently of the server.

use flate2::Crc;

/// What is before the body of a record: its length and two checksums.
const HEAD: usize = 12;

/// Where the records of a file begin, and where it ends.
pub(super) fn edges(bytes: &[u8]) -> Vec<usize> {
    let line = bytes.iter().position(|&byte| byte == b'\n');
    let mut at = line.map_or(bytes.len(), |line| line + 1);
    let mut edges = vec![at];
    while let Some(length) = bytes.get(at..at + 4).and_then(|four| four.try_into().ok()) {
        at += HEAD + u32::from_le_bytes(length) as usize;
        if at > bytes.len() {
            break;
        }
        edges.push(at);
    }
    edges
}

/// Records with right checksums, one for each line: the word for its kind, and what it
/// holds, with spaces between.
///
/// | Line | |
/// |---|---|
/// | `table TABLE` | |
/// | `put VERSION TABLE KEY JSON` | |
/// | `removed VERSION TABLE KEY` | |
/// | `compacted VERSION` | |
/// | `token JSON` | |
/// | `end VERSION RECORDS` | |
/// | anything else | the bytes of a body |
///
/// `+` is the version after the last one that a line named, or after `version`.
pub(super) fn forged(text: &[u8], mut version: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        let body = match std::str::from_utf8(line) {
            Ok(line) => body(line, &mut version),
            Err(_) => None,
        };
        seal(&body.unwrap_or_else(|| line.to_vec()), &mut out);
    }
    out
}

fn body(line: &str, last: &mut u64) -> Option<Vec<u8>> {
    let (word, rest) = line.split_once(' ')?;
    let mut number = |text: &str| {
        *last = match text {
            "+" => last.wrapping_add(1),
            text => text.parse().ok()?,
        };
        Some(last.to_le_bytes())
    };
    let mut out = Vec::new();
    match word {
        "table" => {
            out.push(1);
            name(&mut out, rest);
        }
        "put" => {
            let [version, table, key, json] = parts(rest)?;
            out.push(2);
            out.extend(number(version)?);
            name(&mut out, table);
            name(&mut out, key);
            out.extend_from_slice(json.as_bytes());
        }
        "removed" => {
            let [version, table, key] = parts(rest)?;
            out.push(3);
            out.extend(number(version)?);
            name(&mut out, table);
            name(&mut out, key);
        }
        "compacted" => {
            out.push(4);
            out.extend(number(rest)?);
        }
        "token" => {
            out.push(5);
            out.extend_from_slice(rest.as_bytes());
        }
        "end" => {
            let [version, records] = parts(rest)?;
            out.push(6);
            out.extend(number(version)?);
            out.extend(records.parse::<u64>().ok()?.to_le_bytes());
        }
        _ => return None,
    }
    Some(out)
}

/// So many parts of a text, the last of which may have spaces.
fn parts<const N: usize>(text: &str) -> Option<[&str; N]> {
    let parts: Vec<&str> = text.splitn(N, ' ').collect();
    parts.try_into().ok()
}

fn name(to: &mut Vec<u8>, text: &str) {
    to.extend_from_slice(&length(text.as_bytes()));
    to.extend_from_slice(text.as_bytes());
}

/// Writes a record: the length of its body, the checksums of the body and of these two,
/// and the body.
fn seal(body: &[u8], to: &mut Vec<u8>) {
    let head = [length(body), checksum(body)].concat();
    to.extend_from_slice(&head);
    to.extend_from_slice(&checksum(&head));
    to.extend_from_slice(body);
}

fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes()
}

fn checksum(bytes: &[u8]) -> [u8; 4] {
    let mut sum = Crc::new();
    sum.update(bytes);
    sum.sum().to_le_bytes()
}
