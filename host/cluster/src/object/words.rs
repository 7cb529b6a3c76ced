//! The short texts of an object's metadata, in one allocation.
//!
//! A dozen boxed strings would cost more than what is in them: an object of one
//! kilobyte must not cost two.

/// Namespace, name, uid, version, owners and labels, one after the other.
#[derive(Clone)]
pub(super) struct Words {
    text: Box<str>,
    /// Where each of the first five parts ends; labels are the rest.
    ends: [u32; 5],
}

/// Between the keys and values of labels, and between owners: the API server
/// permits it in neither.
const SEPARATOR: char = '\0';

impl Words {
    pub(super) fn new<'a>(
        [namespace, name, uid, version]: [&str; 4],
        owners: impl Iterator<Item = &'a str> + Clone,
        labels: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    ) -> Self {
        let names: usize = [namespace, name, uid, version].map(str::len).iter().sum();
        let of_owners = owners.clone().map(|owner| owner.len() + 1);
        let of_labels = labels
            .clone()
            .map(|(key, value)| key.len() + value.len() + 2);
        // To the byte, so that it is one allocation.
        let bytes = names + of_owners.sum::<usize>() + of_labels.sum::<usize>();
        let mut text = String::with_capacity(bytes);
        let mut ends = [0; 5];
        for (end, part) in ends.iter_mut().zip([namespace, name, uid, version, ""]) {
            text.push_str(part);
            *end = length(&text);
        }
        for owner in owners {
            text.push_str(owner);
            text.push(SEPARATOR);
        }
        ends[4] = length(&text);
        for word in labels.flat_map(|(key, value)| [key, value]) {
            text.push_str(word);
            text.push(SEPARATOR);
        }
        Self {
            text: text.into_boxed_str(),
            ends,
        }
    }

    /// Empty for a cluster-scoped object.
    pub(super) fn namespace(&self) -> &str {
        self.part(0, self.ends[0])
    }

    pub(super) fn name(&self) -> &str {
        self.part(self.ends[0], self.ends[1])
    }

    pub(super) fn uid(&self) -> &str {
        self.part(self.ends[1], self.ends[2])
    }

    pub(super) fn version(&self) -> &str {
        self.part(self.ends[2], self.ends[3])
    }

    pub(super) fn owners(&self) -> impl Iterator<Item = &str> {
        words(self.part(self.ends[3], self.ends[4]))
    }

    pub(super) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut words = words(self.part(self.ends[4], length(&self.text)));
        std::iter::from_fn(move || Some((words.next()?, words.next()?)))
    }

    fn part(&self, start: u32, end: u32) -> &str {
        let range = start as usize..end as usize;
        self.text.get(range).unwrap_or_default()
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_terminator(SEPARATOR)
}

/// Metadata fits 32 bits by far: the API server takes no more than some
/// megabytes.
fn length(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_again() {
        for (parts, owners, labels) in [
            (["n", "a", "u", "7"], &[][..], &[][..]),
            (["", "a", "", ""], &["o"], &[("k", "")]),
            (
                ["n", "ü", "u", "7"],
                &["o1", "o2"],
                &[("a/b", "1"), ("c", ""), ("d", "ö")],
            ),
        ] {
            let words = Words::new(parts, owners.iter().copied(), labels.iter().copied());
            let got = [
                words.namespace(),
                words.name(),
                words.uid(),
                words.version(),
            ];
            assert_eq!(got, parts);
            assert_eq!(words.owners().collect::<Vec<_>>(), owners);
            assert_eq!(words.labels().collect::<Vec<_>>(), labels);
        }
    }
}
