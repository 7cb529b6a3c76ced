//! One record of a state file: a length and checksums, then what was written.
//!
//! A file begins with a line of text that says what it is. Each record after it is a
//! head of twelve bytes (length of the body, checksum of the body, checksum of these
//! two; little-endian) and its body. The head has a checksum of its own, so that a
//! record which the end of the file cuts off can be told from a damaged length.

use std::io::{self, Read};

use flate2::Crc;

/// How long the head of a record is.
const HEAD: usize = 12;

/// What is written to a state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Entry<'a> {
    /// A table is there, maybe without objects.
    Table { table: &'a str },
    /// An object was written.
    Put {
        version: u64,
        table: &'a str,
        key: &'a str,
        json: &'a [u8],
        /// What tells apart what was stored, where it is not what is shown.
        mark: Option<u64>,
    },
    /// An object was removed.
    Removed {
        version: u64,
        table: &'a str,
        key: &'a str,
    },
    /// All history up to a version was forgotten.
    Compacted { version: u64 },
    /// Somebody was given a token: who and for how long, in JSON.
    Token { grant: &'a [u8] },
    /// The file is whole: it holds so many records before this one.
    End { version: u64, records: u64 },
}

/// Why there is no further record.
#[derive(Debug)]
pub(crate) enum Flaw {
    /// The file ends within a record.
    Torn,
    /// What is there is no record.
    Damaged(&'static str),
    /// The file cannot be read.
    Unreadable(io::Error),
}

impl From<io::Error> for Flaw {
    fn from(error: io::Error) -> Self {
        Flaw::Unreadable(error)
    }
}

impl<'a> Entry<'a> {
    /// Appends the record to `to`. Nothing is appended where it is too long to be
    /// counted.
    pub(crate) fn encode(&self, to: &mut Vec<u8>) -> Result<(), io::Error> {
        let start = to.len();
        to.extend_from_slice(&[0; HEAD]);
        self.body(to);
        let too_long = || io::Error::other("an object is too large to be kept");
        let body = to.get(start + HEAD..).unwrap_or_default();
        let length = u32::try_from(body.len()).map_err(|_| too_long());
        let length = match length {
            Ok(length) => length.to_le_bytes(),
            Err(error) => {
                to.truncate(start);
                return Err(error);
            }
        };
        let sum = checksum(&[body]).to_le_bytes();
        let own = checksum(&[&length, &sum]).to_le_bytes();
        let head = length.iter().chain(&sum).chain(&own);
        for (slot, byte) in to.iter_mut().skip(start).zip(head) {
            *slot = *byte;
        }
        Ok(())
    }

    fn body(&self, to: &mut Vec<u8>) {
        match *self {
            Entry::Table { table } => {
                to.push(1);
                text(to, table);
            }
            Entry::Put {
                version,
                table,
                key,
                json,
                mark,
            } => {
                to.push(if mark.is_some() { 7 } else { 2 });
                mark.into_iter().for_each(|mark| number(to, mark));
                number(to, version);
                text(to, table);
                text(to, key);
                to.extend_from_slice(json);
            }
            Entry::Removed {
                version,
                table,
                key,
            } => {
                to.push(3);
                number(to, version);
                text(to, table);
                text(to, key);
            }
            Entry::Compacted { version } => {
                to.push(4);
                number(to, version);
            }
            Entry::Token { grant } => {
                to.push(5);
                to.extend_from_slice(grant);
            }
            Entry::End { version, records } => {
                to.push(6);
                number(to, version);
                number(to, records);
            }
        }
    }

    fn decode(body: &'a [u8]) -> Option<Self> {
        let (kind, rest) = body.split_first()?;
        let mut rest = Body(rest);
        Some(match kind {
            1 => Entry::Table {
                table: rest.text()?,
            },
            2 | 7 => Entry::Put {
                mark: match kind {
                    7 => Some(rest.number()?),
                    _ => None,
                },
                version: rest.number()?,
                table: rest.text()?,
                key: rest.text()?,
                json: rest.0,
            },
            3 => Entry::Removed {
                version: rest.number()?,
                table: rest.text()?,
                key: rest.text()?,
            },
            4 => Entry::Compacted {
                version: rest.number()?,
            },
            5 => Entry::Token { grant: rest.0 },
            6 => Entry::End {
                version: rest.number()?,
                records: rest.number()?,
            },
            _ => return None,
        })
    }
}

/// The records of a file, one after the other.
pub(crate) struct Records<R> {
    input: R,
    /// Where the next record begins.
    at: u64,
    /// Where the file ends.
    end: u64,
    body: Vec<u8>,
}

impl<R: Read> Records<R> {
    /// Those of `input`, which stands at byte `at` of a file of `end` bytes.
    pub(crate) fn new(input: R, at: u64, end: u64) -> Self {
        Records {
            input,
            at,
            end,
            body: Vec::new(),
        }
    }

    /// Where the next record begins: after a flaw, where the flawed one does.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// The next record; none where the file ends after the last one.
    pub(crate) fn next(&mut self) -> Result<Option<Entry<'_>>, Flaw> {
        let left = self.end.saturating_sub(self.at);
        if left == 0 {
            return Ok(None);
        }
        if left < HEAD as u64 {
            return Err(Flaw::Torn);
        }
        let mut head = [0; HEAD];
        self.input.read_exact(&mut head)?;
        let [length, sum, own] = numbers(head);
        if checksum(&[&length.to_le_bytes(), &sum.to_le_bytes()]) != own {
            // Some file systems leave zeros where a crash kept data from the disk.
            return Err(if head == [0; HEAD] && self.is_zero()? {
                Flaw::Torn
            } else {
                Flaw::Damaged("the head of a record does not have its checksum")
            });
        }
        let whole = u64::from(length) + HEAD as u64;
        if whole > left {
            return Err(Flaw::Torn);
        }
        self.body.clear();
        let mut body = self.input.by_ref().take(u64::from(length));
        body.read_to_end(&mut self.body)?;
        if checksum(&[&self.body]) != sum {
            let at_end = whole == left;
            // Of the last record a crash of the machine may have left any part.
            return Err(if at_end {
                Flaw::Torn
            } else {
                Flaw::Damaged("a record does not have its checksum")
            });
        }
        self.at += whole;
        match Entry::decode(&self.body) {
            Some(entry) => Ok(Some(entry)),
            None => {
                self.at -= whole;
                Err(Flaw::Damaged("a record is of no known kind"))
            }
        }
    }

    /// Whether what is left of the file is nothing but zeros.
    fn is_zero(&mut self) -> io::Result<bool> {
        let mut part = [0; 4096];
        loop {
            let read = self.input.read(&mut part)?;
            if read == 0 {
                return Ok(true);
            }
            if part.iter().take(read).any(|byte| *byte != 0) {
                return Ok(false);
            }
        }
    }
}

fn checksum(parts: &[&[u8]]) -> u32 {
    let mut sum = Crc::new();
    for part in parts {
        sum.update(part);
    }
    sum.sum()
}

/// The three numbers of a head.
fn numbers(head: [u8; HEAD]) -> [u32; 3] {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = head;
    [[a, b, c, d], [e, f, g, h], [i, j, k, l]].map(u32::from_le_bytes)
}

fn number(to: &mut Vec<u8>, number: u64) {
    to.extend_from_slice(&number.to_le_bytes());
}

/// A text and, before it, its length. A record with a longer one is too long itself.
fn text(to: &mut Vec<u8>, text: &str) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(text.as_bytes());
}

/// What is left of a body.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn number(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn text(&mut self) -> Option<&'a str> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (text, rest) =
            rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRIES: [Entry<'static>; 7] = [
        Entry::Table { table: "pods" },
        Entry::Put {
            version: 7,
            table: "pods",
            key: "default/a",
            json: b"{}",
            mark: None,
        },
        Entry::Put {
            version: 7,
            table: "jobs.batch",
            key: "default/a",
            json: b"{}",
            mark: Some(u64::MAX),
        },
        Entry::Removed {
            version: 8,
            table: "pods",
            key: "default/a",
        },
        Entry::Compacted { version: 8 },
        Entry::Token {
            grant: b"{\"a\":1}",
        },
        Entry::End {
            version: 8,
            records: 5,
        },
    ];

    fn encoded() -> (Vec<u8>, Vec<u64>) {
        let (mut bytes, mut starts) = (Vec::new(), Vec::new());
        for entry in ENTRIES {
            starts.push(bytes.len() as u64);
            entry.encode(&mut bytes).unwrap();
        }
        (bytes, starts)
    }

    /// How many records are read, where the next one would begin, and the flaw.
    fn read(bytes: &[u8]) -> (usize, u64, Option<String>) {
        let mut records = Records::new(bytes, 0, bytes.len() as u64);
        let mut count = 0;
        loop {
            let flaw = match records.next() {
                Ok(Some(entry)) => {
                    assert_eq!(Some(&entry), ENTRIES.get(count));
                    count += 1;
                    continue;
                }
                Ok(None) => None,
                Err(Flaw::Torn) => Some("torn".to_owned()),
                Err(Flaw::Damaged(why)) => Some(why.to_owned()),
                Err(Flaw::Unreadable(error)) => Some(error.to_string()),
            };
            return (count, records.at(), flaw);
        }
    }

    #[test]
    fn records_are_read_as_they_are_written() {
        let (bytes, _) = encoded();
        assert_eq!(read(&bytes), (7, bytes.len() as u64, None));
    }

    #[test]
    fn what_the_end_cuts_off_is_torn_wherever_it_is_cut() {
        let (bytes, starts) = encoded();
        for end in 0..bytes.len() {
            let whole = starts
                .iter()
                .skip(1)
                .filter(|start| **start <= end as u64)
                .count();
            let (count, at, flaw) = read(&bytes[..end]);
            assert_eq!((count, at), (whole, starts[whole]), "cut at {end}");
            let expected = (at != end as u64).then(|| "torn".to_owned());
            assert_eq!(flaw, expected, "cut at {end}");
        }
        let mut zeros = bytes.clone();
        zeros.extend_from_slice(&[0; 5000]);
        assert_eq!(
            read(&zeros),
            (7, bytes.len() as u64, Some("torn".to_owned()))
        );
    }

    #[test]
    fn every_changed_bit_of_all_but_the_last_record_is_damage() {
        let (bytes, starts) = encoded();
        let last = usize::try_from(starts[6]).unwrap();
        for at in 0..last {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                let (count, place, flaw) = read(&bytes);
                let flaw = flaw.unwrap();
                assert!(flaw.contains("checksum"), "bit {bit} of byte {at}: {flaw}");
                assert!(place <= at as u64 && count < 6, "byte {at}");
            }
        }
    }
}
