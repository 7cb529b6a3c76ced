//! What stays as it is because nobody can tell whether it is still wanted.
//!
//! Bad input costs no more than what it is about. An answer that is not there, or that is
//! empty all of a sudden, is about all volumes that came of the ones before; a bucket
//! that cannot be read or used is about its own.

use crate::bucket::Which;
use crate::config::Class;
use crate::live::{Live, LiveClaim, LiveVolume};
use crate::pair::Pair;
use crate::source::Answer;
use crate::volume::{Claim, Volume};

/// A bucket that a Profile may be able to read, of which it cannot be told how.
pub(crate) struct Doubt<'a> {
    pub(crate) class: Class,
    /// The storage account that it is in.
    pub(crate) account: &'a str,
    pub(crate) which: Which,
}

/// Volumes and claims that nothing asks for and that stay all the same.
#[derive(Default)]
pub(crate) struct Held {
    pub(crate) volumes: Vec<Volume>,
    pub(crate) claims: Vec<Claim>,
    /// How many stay because an answer names no bucket, for each of the answers.
    pub(crate) emptied: Vec<usize>,
}

/// A bucket's volume, or a claim to one that is gone, of which less is known.
struct Subject<'a> {
    class: Class,
    /// What the bucket is called in it, in lower case.
    label: &'a str,
    volume: Option<&'a Volume>,
}

impl Held {
    pub(crate) fn of(
        profile: &str,
        live: &Live,
        pairs: &[Pair],
        answers: &[Answer<'_>],
        doubts: &[Doubt<'_>],
    ) -> Self {
        let mut held = Self {
            emptied: vec![0; answers.len()],
            ..Self::default()
        };
        for LiveVolume { volume, .. } in &live.volumes {
            let wanted = pairs.iter().any(|pair| pair.volume.name == volume.name);
            let subject = Subject::of(profile, &volume.name, Some(volume));
            if !wanted && let Some(class) = held.keeps(subject, answers, doubts) {
                // With its labels, whoever took them off.
                held.volumes.push(Volume {
                    profile: profile.to_owned(),
                    class: class.name().to_owned(),
                    ..volume.clone()
                });
            }
        }
        for LiveClaim { claim, .. } in &live.claims {
            if pairs.iter().any(|pair| pair.claim.name == claim.name) {
                continue;
            }
            // With its volume, or by itself where that is gone.
            let of_volume = held.volumes.iter().find(|held| held.name == claim.volume);
            let class = match live.volume(&claim.volume) {
                Some(_) => of_volume.map(|held| held.class.clone()),
                None => {
                    let subject = Subject::of(profile, &claim.volume, None);
                    let class = held.keeps(subject, answers, doubts);
                    class.map(|class| class.name().to_owned())
                }
            };
            if let Some(class) = class {
                held.claims.push(Claim {
                    class,
                    ..claim.clone()
                });
            }
        }
        held
    }

    /// The classification of what is kept.
    fn keeps(
        &mut self,
        subject: Option<Subject<'_>>,
        answers: &[Answer<'_>],
        doubts: &[Doubt<'_>],
    ) -> Option<Class> {
        let subject = subject?;
        // What is said of its storage account decides; of all accounts of its
        // classification, where nothing is or where it is not known.
        let of_class = |answer: &Answer<'_>| answer.class == subject.class;
        let is_own = |account: &str| subject.account() == Some(account);
        let mut accounts = answers.iter().filter(|answer| of_class(answer));
        let is_known = accounts.any(|answer| is_own(answer.account));
        let counts = |account: &str| !is_known || is_own(account);
        let decides = |answer: &&Answer<'_>| of_class(answer) && counts(answer.account);

        let mut deciding = answers.iter().filter(decides).peekable();
        if deciding.peek().is_some() && deciding.all(Answer::is_empty) {
            for (answer, count) in answers.iter().zip(&mut self.emptied) {
                *count += usize::from(decides(&answer));
            }
            return Some(subject.class);
        }
        let is_silent = |answer: &Answer<'_>| answer.says.is_err();
        let kept = answers.iter().filter(decides).any(is_silent)
            || doubts.iter().any(|doubt| {
                doubt.class == subject.class
                    && counts(doubt.account)
                    && subject.may_be(&doubt.which)
            });
        kept.then_some(subject.class)
    }
}

impl<'a> Subject<'a> {
    /// None where it is no bucket's, going by its name: a label can be taken off.
    fn of(profile: &str, name: &'a str, volume: Option<&'a Volume>) -> Option<Self> {
        let rest = name.strip_prefix(profile)?.strip_prefix("-fdi-")?;
        Class::ALL.into_iter().find_map(|class| {
            let label = rest.strip_prefix(class.name())?.strip_prefix('-')?;
            Some(Self {
                class,
                label,
                volume,
            })
        })
    }

    fn account(&self) -> Option<&str> {
        Some(self.volume?.source.attribute("storageAccount"))
    }

    /// Whether it may be of this bucket.
    fn may_be(&self, which: &Which) -> bool {
        let same = |one: &Option<String>, other: &str| one.as_deref() == Some(other);
        let is_label = || {
            let label = which.label.as_ref();
            label.is_some_and(|label| label.eq_ignore_ascii_case(self.label))
        };
        let is_place = || {
            self.volume.is_some_and(|volume| {
                same(&which.container, volume.source.attribute("containerName"))
                    && (which.folder.is_none() || same(&which.folder, volume.folder()))
            })
        };
        !which.is_known() || is_label() || is_place()
    }
}
