//! Values that are to be nowhere but where they belong, and a search for them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reeve_core::Digest;
use std::collections::{BTreeSet, HashMap};

/// So much of a value is enough to know it by: texts are cut.
const PIECE: usize = 12;

/// Values that nothing else looks like, by what they are.
#[derive(Default)]
pub(super) struct Canaries {
    names: BTreeSet<String>,
    /// Forms, by how they begin.
    forms: HashMap<[u8; BEGINNING], Vec<Form>>,
}

/// How long the beginning of a form is by which it is looked for.
const BEGINNING: usize = 8;

struct Form {
    text: String,
    /// Of which value.
    name: String,
}

/// A value that nothing else looks like, the same for the same name.
pub(super) fn canary(name: &str) -> String {
    let digest = Digest::of(name.as_bytes()).to_string();
    let (_, hex) = digest.split_once(':').unwrap();
    hex[..32].to_owned()
}

impl Canaries {
    /// Minds a value from now on: its beginning, middle and end, each in all the forms in which it
    /// may be found.
    pub(super) fn mind(&mut self, name: &str, value: &str) {
        let middle = value.len() / 2 - PIECE / 2;
        let pieces = [
            &value[..PIECE],
            &value[middle..middle + PIECE],
            &value[value.len() - PIECE..],
        ];
        for text in pieces.iter().flat_map(|piece| forms(piece)) {
            let beginning = text.as_bytes()[..BEGINNING].try_into().unwrap();
            let name = name.to_owned();
            self.forms
                .entry(beginning)
                .or_default()
                .push(Form { text, name });
        }
        self.names.insert(name.to_owned());
    }

    /// Makes a value of this name, and minds it.
    pub(super) fn make(&mut self, name: &str) -> String {
        let value = canary(name);
        self.mind(name, &value);
        value
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.names.iter().cloned().collect()
    }

    /// Which of them are in a text.
    pub(super) fn found_in(&self, text: &str) -> Vec<&str> {
        let mut found = BTreeSet::new();
        for (at, beginning) in text.as_bytes().array_windows().enumerate() {
            for form in self.forms.get(beginning).into_iter().flatten() {
                if text.as_bytes()[at..].starts_with(form.text.as_bytes()) {
                    found.insert(form.name.as_str());
                }
            }
        }
        found.into_iter().collect()
    }
}

/// A text as it is, in base64 and in base64 of that, as hexadecimal digits and as numbers.
fn forms(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned()];
    for once in in_base64(text) {
        forms.extend(in_base64(&once));
        forms.push(once);
    }
    let bytes = text.bytes();
    forms.push(bytes.clone().map(|byte| format!("{byte:02x}")).collect());
    let numbers: Vec<String> = bytes.map(|byte| byte.to_string()).collect();
    forms.extend([", ", ","].map(|between| numbers.join(between)));
    forms
}

/// What of a text is the same in base64 whatever stands before and after it, in both alphabets.
fn in_base64(text: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let bytes = [&vec![0; before][..], text.as_bytes()].concat();
        let whole = bytes.len() / 3 * 3;
        let encoded = STANDARD.encode(&bytes[..whole]);
        // Of what stands before there is something in the first few.
        let form = encoded[(before * 8).div_ceil(6)..].to_owned();
        let url_safe = form.replace('+', "-").replace('/', "_");
        if url_safe != form {
            forms.push(url_safe);
        }
        forms.push(form);
    }
    forms
}

#[test]
fn canaries_are_found_in_all_their_forms() {
    let mut canaries = Canaries::default();
    let value = canaries.make("one");
    canaries.make("other");
    for before in ["", "a", "ab", "abc"] {
        let text = format!("{before}{value}\n");
        let once = STANDARD.encode(&text);
        let cut = &text[..before.len() + PIECE];
        let twice = STANDARD.encode(format!("{before}{once}"));
        for text in [&text, &once, &twice, cut, &format!("{:?}", text.as_bytes())] {
            assert_eq!(canaries.found_in(text), ["one"], "{before}: {text}");
        }
    }
    assert_eq!(canaries.found_in(&canary("third")), [""; 0]);
}
