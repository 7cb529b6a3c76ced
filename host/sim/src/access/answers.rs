//! Questions about access that were answered before, in the same words.
//!
//! Whoever acts for others asks what they may, over and over. The answer follows from the
//! question, from who asks where that is about himself, and from the roles and bindings; so
//! it is given again for as long as these stay the same.

use std::sync::Arc;

use bytes::Bytes;
use foldhash::HashMap;
use parking_lot::Mutex;

use super::Rights;
use crate::identity::Identity;

/// So many answers are remembered: a thousand plugins ask seldom enough to be answered anew.
const REMEMBERED: usize = 512;
/// None is whose question and answer are longer than this together, so that all of them
/// take a megabyte.
const LONGEST: usize = 2048;

/// Whom a question is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Whom<'a> {
    /// Whom it names.
    Named,
    /// Who asks it.
    Asker(&'a Identity),
}

/// The answers, by the bytes of their questions.
type Said = HashMap<Box<[u8]>, Bytes>;

/// Answers that follow from the same roles and bindings. Servers share them for as long as
/// they have the same ones.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    named: Said,
    askers: HashMap<Identity, Said>,
    /// How many answers there are.
    count: usize,
}

impl Answers {
    /// What was answered to this question.
    pub(crate) fn get(&self, whom: Whom<'_>, question: &[u8]) -> Option<Bytes> {
        let known = self.0.lock();
        let said = match whom {
            Whom::Named => &known.named,
            Whom::Asker(user) => known.askers.get(user)?,
        };
        said.get(question).cloned()
    }

    fn put(&self, whom: Whom<'_>, question: &[u8], answer: Bytes) {
        let asker = match whom {
            Whom::Named => 0,
            Whom::Asker(user) => user.bytes(),
        };
        if asker + question.len() + answer.len() > LONGEST {
            return;
        }
        let mut known = self.0.lock();
        if known.count >= REMEMBERED {
            *known = Known::default();
        }
        let said = match whom {
            Whom::Named => &mut known.named,
            Whom::Asker(user) => known.askers.entry(user.clone()).or_default(),
        };
        if said.insert(question.into(), answer).is_none() {
            known.count += 1;
        }
    }
}

impl Rights {
    /// What was answered since a role or binding changed.
    pub(crate) fn answers(&self) -> Arc<Answers> {
        self.answers.lock().clone()
    }

    /// Keeps an answer that was found out after `answers` were had. It follows from other
    /// rules where some have changed since, and is not kept then.
    pub(crate) fn remember(
        &self,
        answers: &Arc<Answers>,
        whom: Whom<'_>,
        question: &[u8],
        answer: &Bytes,
    ) {
        // Nothing changes while this is held.
        let _policy = self.policy.read();
        if Arc::ptr_eq(answers, &self.answers.lock()) {
            answers.put(whom, question, answer.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let answers = Answers::default();
        let user = Identity::user("joe", [""; 0]);
        let long = vec![b' '; LONGEST];
        answers.put(Whom::Named, &long, Bytes::from_static(b"{}"));
        assert_eq!(answers.get(Whom::Named, &long), None);
        for number in 0..=REMEMBERED {
            let whom = match number % 2 {
                0 => Whom::Named,
                _ => Whom::Asker(&user),
            };
            let question = number.to_string();
            answers.put(whom, question.as_bytes(), Bytes::from_static(b"{}"));
            assert!(answers.get(whom, question.as_bytes()).is_some());
        }
        assert_eq!(answers.0.lock().count, 1);
        assert_eq!(answers.get(Whom::Named, b"0"), None);
    }

    #[test]
    fn an_answer_about_one_is_none_about_another() {
        let answers = Answers::default();
        let (joe, ann) = (
            Identity::user("joe", [""; 0]),
            Identity::user("ann", [""; 0]),
        );
        answers.put(Whom::Asker(&joe), b"?", Bytes::from_static(b"yes"));
        assert!(answers.get(Whom::Asker(&joe), b"?").is_some());
        assert_eq!(answers.get(Whom::Asker(&ann), b"?"), None);
        assert_eq!(answers.get(Whom::Named, b"?"), None);
    }

    #[test]
    fn what_was_found_out_before_a_change_is_not_kept() {
        let rights = Rights::default();
        let before = rights.answers();
        rights.change(|_| ());
        rights.remember(&before, Whom::Named, b"?", &Bytes::from_static(b"yes"));
        assert_eq!(before.get(Whom::Named, b"?"), None);
        assert_eq!(rights.answers().get(Whom::Named, b"?"), None);
    }
}
