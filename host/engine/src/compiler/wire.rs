//! What the two processes say to each other.
//!
//! ```text
//! report  b'R' files-and-network(1) system-calls(1)
//! answer  tag(1) length(8, little endian) body
//! ```
//!
//! The component itself needs no form: it is all of standard input. Whoever reads
//! believes nothing: the other side may have been taken over by the component.

use super::confine::{Confinement, Landlock};
use crate::load::{Counted, LoadError};
use crate::world::{WorldProblem, expected_export};
use std::io::{self, ErrorKind, Read};

/// The most machine code that is taken: eight times the largest component, where
/// ordinary ones become three to five times as large.
const ARTIFACT_BYTES: u64 = 256 << 20;

/// The most text that is taken; a condition holds a fraction of it.
const TEXT_BYTES: usize = 16 << 10;

const REPORT: u8 = b'R';
const ARTIFACT: u8 = b'A';
const TOO_LARGE: u8 = b'L';
const TOO_MANY: u8 = b'N';
const INVALID: u8 = b'I';
const WRONG_WORLD: u8 = b'W';
const COMPILE: u8 = b'C';
const COMPILE_MEMORY: u8 = b'M';

/// What a component became.
pub(super) type Answer = Result<Vec<u8>, LoadError>;

pub(super) fn report(confinement: Confinement) -> [u8; 3] {
    let landlock = match confinement.landlock {
        Landlock::None => 0,
        Landlock::Files => 1,
        Landlock::FilesAndNetwork => 2,
    };
    [REPORT, landlock, u8::from(confinement.system_calls)]
}

/// # Errors
///
/// When the other side ends or says something else.
pub(super) fn read_report(from: &mut impl Read) -> io::Result<Confinement> {
    let mut report = [0; 3];
    from.read_exact(&mut report)?;
    let [REPORT, landlock, system_calls @ (0 | 1)] = report else {
        return Err(malformed());
    };
    Ok(Confinement {
        landlock: match landlock {
            0 => Landlock::None,
            1 => Landlock::Files,
            2 => Landlock::FilesAndNetwork,
            _ => return Err(malformed()),
        },
        system_calls: system_calls == 1,
    })
}

/// The start of an answer, and the rest of it.
pub(super) fn answer(answer: &Answer) -> (Vec<u8>, &[u8]) {
    let (tag, body): (u8, Vec<u8>) = match answer {
        Ok(artifact) => {
            let mut head = vec![ARTIFACT];
            head.extend((artifact.len() as u64).to_le_bytes());
            return (head, artifact);
        }
        Err(LoadError::TooLarge { size, limit }) => (TOO_LARGE, numbers(&[*size, *limit])),
        Err(LoadError::TooMany { what, limit }) => {
            let what = match what {
                Counted::Imports => 0,
                Counted::Exports => 1,
                Counted::Definitions => 2,
                Counted::NameBytes => 3,
            };
            (TOO_MANY, numbers(&[what, *limit]))
        }
        Err(LoadError::Invalid { reason }) => (INVALID, cut(reason).to_vec()),
        Err(LoadError::WrongWorld { problems }) => (WRONG_WORLD, encode_problems(problems)),
        Err(LoadError::CompileMemory { limit }) => (COMPILE_MEMORY, numbers(&[*limit])),
        Err(error) => {
            let reason = match error {
                LoadError::Compile { reason } => reason.clone(),
                error => error.to_string(),
            };
            (COMPILE, cut(&reason).to_vec())
        }
    };
    let mut whole = vec![tag];
    whole.extend((body.len() as u64).to_le_bytes());
    whole.extend(body);
    (whole, &[])
}

/// # Errors
///
/// When the other side ends or says something else.
pub(super) fn read_answer(from: &mut impl Read) -> io::Result<Answer> {
    let mut head = [0; 9];
    from.read_exact(&mut head)?;
    let [tag, length @ ..] = head;
    let length = u64::from_le_bytes(length);
    let most = match tag {
        ARTIFACT => ARTIFACT_BYTES,
        // The texts of the problems, and their framing.
        _ => 2 * TEXT_BYTES as u64,
    };
    if length > most {
        return Err(malformed());
    }
    let mut body = Vec::new();
    body.try_reserve_exact(usize::try_from(length).map_err(|_| malformed())?)
        .map_err(|_| ErrorKind::OutOfMemory)?;
    from.take(length).read_to_end(&mut body)?;
    if body.len() as u64 != length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    if tag == ARTIFACT {
        return Ok(Ok(body));
    }
    decode_error(tag, &body).map(Err).ok_or_else(malformed)
}

fn decode_error(tag: u8, body: &[u8]) -> Option<LoadError> {
    Some(match tag {
        TOO_LARGE => {
            let [size, limit] = read_numbers(body)?;
            LoadError::TooLarge { size, limit }
        }
        TOO_MANY => {
            let [what, limit] = read_numbers(body)?;
            let what = match what {
                0 => Counted::Imports,
                1 => Counted::Exports,
                2 => Counted::Definitions,
                3 => Counted::NameBytes,
                _ => return None,
            };
            LoadError::TooMany { what, limit }
        }
        INVALID => LoadError::Invalid {
            reason: text(body)?,
        },
        WRONG_WORLD => LoadError::WrongWorld {
            problems: decode_problems(body)?,
        },
        COMPILE_MEMORY => {
            let [limit] = read_numbers(body)?;
            LoadError::CompileMemory { limit }
        }
        COMPILE => LoadError::Compile {
            reason: text(body)?,
        },
        _ => return None,
    })
}

/// One entry for each problem: its sort, the length of its name in four bytes, the
/// name. Problems beyond what fits are left out; there is always one.
fn encode_problems(problems: &[WorldProblem]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for problem in problems {
        let (sort, name) = match problem {
            WorldProblem::MissingExport { .. } => (0, ""),
            WorldProblem::OtherGeneration { found } => (1, found.as_str()),
            WorldProblem::UnknownImport { name } => (2, name.as_str()),
            WorldProblem::WrongType { detail } => (3, detail.as_str()),
        };
        let name = cut(name);
        if !bytes.is_empty() && bytes.len() + name.len() > TEXT_BYTES {
            break;
        }
        bytes.push(sort);
        bytes.extend(u32::try_from(name.len()).unwrap_or(0).to_le_bytes());
        bytes.extend(name);
    }
    bytes
}

fn decode_problems(mut bytes: &[u8]) -> Option<Vec<WorldProblem>> {
    let mut problems = Vec::new();
    while let [sort, a, b, c, d, rest @ ..] = bytes {
        let length = usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])).ok()?;
        let (name, rest) = rest.split_at_checked(length)?;
        let name = text(name)?;
        problems.push(match sort {
            0 => WorldProblem::MissingExport {
                name: expected_export(),
            },
            1 => WorldProblem::OtherGeneration { found: name },
            2 => WorldProblem::UnknownImport { name },
            3 => WorldProblem::WrongType { detail: name },
            _ => return None,
        });
        bytes = rest;
    }
    (bytes.is_empty() && !problems.is_empty()).then_some(problems)
}

/// The beginning of a text, as much of it as is taken.
fn cut(text: &str) -> &[u8] {
    &text.as_bytes()[..text.floor_char_boundary(TEXT_BYTES)]
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

fn numbers(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn read_numbers<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let (numbers, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return None;
    }
    let numbers: &[[u8; 8]; N] = numbers.try_into().ok()?;
    Some(numbers.map(u64::from_le_bytes))
}

fn malformed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "it said something else")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_arrives_as_it_was() {
        let reason = || "because".to_owned();
        let name = || "a:b/c".to_owned();
        for sent in [
            Ok(b"code".to_vec()),
            Err(LoadError::TooLarge { size: 3, limit: 2 }),
            Err(LoadError::TooMany {
                what: Counted::Definitions,
                limit: 7,
            }),
            Err(LoadError::Invalid { reason: reason() }),
            Err(LoadError::Compile { reason: reason() }),
            Err(LoadError::CompileMemory { limit: 9 }),
            Err(LoadError::WrongWorld {
                problems: vec![
                    WorldProblem::MissingExport {
                        name: expected_export(),
                    },
                    WorldProblem::OtherGeneration { found: name() },
                    WorldProblem::UnknownImport { name: name() },
                    WorldProblem::WrongType { detail: name() },
                ],
            }),
        ] {
            let (head, body) = answer(&sent);
            let whole = [&head, body].concat();
            assert_eq!(read_answer(&mut &*whole).unwrap(), sent);
            let truncated = &whole[..whole.len() - 1];
            assert!(read_answer(&mut &*truncated).is_err(), "{sent:?}");
        }
    }

    #[test]
    fn every_report_arrives_as_it_was() {
        for landlock in [Landlock::None, Landlock::Files, Landlock::FilesAndNetwork] {
            for system_calls in [false, true] {
                let sent = Confinement {
                    landlock,
                    system_calls,
                };
                assert_eq!(read_report(&mut &report(sent)[..]).unwrap(), sent);
            }
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let problems = vec![
            WorldProblem::UnknownImport {
                name: "é".repeat(TEXT_BYTES),
            };
            100
        ];
        let (head, _) = answer(&Err(LoadError::WrongWorld { problems }));
        let Ok(Err(LoadError::WrongWorld { problems })) = read_answer(&mut &*head) else {
            panic!("it should be read");
        };
        assert_eq!(problems.len(), 1);
        assert!(problems[0].to_string().len() < TEXT_BYTES + 200);
    }

    /// What a compiler that was taken over may say.
    #[test]
    fn nonsense_is_refused() {
        let frame =
            |tag: u8, length: u64, body: &[u8]| [&[tag][..], &length.to_le_bytes(), body].concat();
        for bytes in [
            frame(b'A', u64::MAX, b""),
            frame(b'A', 5, b"code"),
            frame(b'?', 0, b""),
            frame(b'I', 1 << 20, b""),
            frame(b'I', 1, b"\xff"),
            frame(b'N', 16, &numbers(&[4, 1])),
            frame(b'N', 8, &numbers(&[1])),
            frame(b'W', 0, b""),
            frame(b'W', 5, &[3, 9, 0, 0, 0]),
            frame(b'W', 5, &[9, 0, 0, 0, 0]),
            frame(b'W', 3, &[0, 0, 0]),
        ] {
            assert!(read_answer(&mut &*bytes).is_err(), "{bytes:?}");
        }
        for report in [[b'X', 0, 0], [b'R', 3, 0], [b'R', 0, 2]] {
            assert!(read_report(&mut &report[..]).is_err());
        }
    }
}
