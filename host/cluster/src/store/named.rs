//! Objects that are read one by one, by their names: which they are, and when each is
//! read again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A named object is read again within this time, so that what others do to it is
/// noticed then; where there are more than [`REREADS_A_SECOND`] can read in this time,
/// within the time that those take. Who watches would know at once, with the right to
/// see all objects of the kind.
pub const REREAD: Duration = Duration::from_secs(300);

/// So often named objects of one watch are read, once each has been: 6,000 of them within
/// [`REREAD`], which is a hundredth of what an API server of moderate size answers.
const REREADS_A_SECOND: u32 = 20;

/// One that is being deleted is read again after this time: somebody waits for its end.
pub(super) const REREAD_GOING: Duration = Duration::from_secs(2);

/// Namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectName {
    /// Its namespace; none for a cluster-scoped kind.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl ObjectName {
    /// The name of an object.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        Self {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }
}

/// What came of reading a name the last time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is known whether there is such an object.
    Read,
    /// It may not be read, in the API server's words.
    Refused(Arc<str>),
}

/// The names of one watch.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Whose names they are.
    holders: HashMap<String, BTreeSet<Arc<ObjectName>>>,
    entries: HashMap<Arc<ObjectName>, Entry>,
    /// When each is to be read next; not those that are being read.
    due: BTreeSet<(Instant, Arc<ObjectName>)>,
    /// How many have not been read since they came, or since all was doubted.
    unread: usize,
}

#[derive(Debug)]
struct Entry {
    holders: usize,
    read: bool,
    due: Option<Instant>,
    /// Counts what became known of the object from elsewhere.
    told: u64,
}

/// A name that is being read, and what was known when that began.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) name: Arc<ObjectName>,
    told: u64,
}

/// What follows from the answer to a reading.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// It is news.
    News,
    /// Something newer is known, or nobody names the object any more.
    Overtaken,
}

impl Names {
    /// Makes these the names of a holder. Returns those that nobody names any more.
    pub(super) fn set(
        &mut self,
        holder: &str,
        names: &BTreeSet<ObjectName>,
        now: Instant,
    ) -> Vec<Arc<ObjectName>> {
        let before = self.holders.remove(holder).unwrap_or_default();
        let mut held = BTreeSet::new();
        for name in names {
            let known = self.entries.get_key_value(name);
            let name = known.map_or_else(|| Arc::new(name.clone()), |(name, _)| name.clone());
            if !before.contains(&name) {
                self.hold(&name, now);
            }
            held.insert(name);
        }
        let gone = before.difference(&held).filter(|name| self.release(name));
        let gone = gone.cloned().collect::<Vec<_>>();
        if !held.is_empty() {
            self.holders.insert(holder.to_owned(), held);
        }
        gone
    }

    fn hold(&mut self, name: &Arc<ObjectName>, now: Instant) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.holders += 1;
            return;
        }
        let entry = Entry {
            holders: 1,
            read: false,
            due: Some(now),
            told: 0,
        };
        self.entries.insert(name.clone(), entry);
        self.due.insert((now, name.clone()));
        self.unread += 1;
    }

    /// Returns whether that was the last holder.
    fn release(&mut self, name: &Arc<ObjectName>) -> bool {
        let Some(entry) = self.entries.get_mut(name) else {
            return false;
        };
        entry.holders -= 1;
        if entry.holders > 0 {
            return false;
        }
        if let Some(due) = entry.due {
            self.due.remove(&(due, name.clone()));
        }
        self.unread -= usize::from(!entry.read);
        self.entries.remove(name);
        true
    }

    /// The names of a holder.
    pub(super) fn of(&self, holder: &str) -> BTreeSet<ObjectName> {
        let names = self.holders.get(holder).into_iter().flatten();
        names.map(|name| (**name).clone()).collect()
    }

    pub(super) fn holds(&self, name: &ObjectName) -> bool {
        self.entries.contains_key(name)
    }

    /// Whether a name is held and has not been read since it was, or was doubted.
    pub(super) fn is_doubted(&self, name: &ObjectName) -> bool {
        self.entries.get(name).is_some_and(|entry| !entry.read)
    }

    /// Whether each name was read.
    pub(super) fn all_read(&self) -> bool {
        self.unread == 0
    }

    /// Up to so many of those that are due, which count as being read from now on; or
    /// else when the next one is.
    pub(super) fn take_due(
        &mut self,
        now: Instant,
        most: usize,
    ) -> Result<Vec<Reading>, Option<Instant>> {
        let mut taken = Vec::new();
        while taken.len() < most {
            match self.due.first() {
                Some((due, _)) if *due <= now => {}
                next if taken.is_empty() => return Err(next.map(|(due, _)| *due)),
                _ => break,
            }
            if let Some((_, name)) = self.due.pop_first()
                && let Some(entry) = self.entries.get_mut(&name)
            {
                entry.due = None;
                let told = entry.told;
                taken.push(Reading { name, told });
            }
        }
        Ok(taken)
    }

    /// Ends a reading that was answered. `fraction`, in 0..1, spreads what was read at
    /// once; `going` says whether the object is being deleted.
    pub(super) fn answered(
        &mut self,
        reading: &Reading,
        now: Instant,
        going: bool,
        fraction: f64,
    ) -> Answered {
        let count = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let Some(entry) = self.entries.get_mut(&reading.name) else {
            return Answered::Overtaken;
        };
        if entry.due.is_some() {
            // Doubted, or named anew, since.
            return Answered::Overtaken;
        }
        if entry.told != reading.told {
            entry.due = Some(now);
            self.due.insert((now, reading.name.clone()));
            return Answered::Overtaken;
        }
        self.unread -= usize::from(!entry.read);
        entry.read = true;
        let pause = if going {
            REREAD_GOING
        } else {
            let least = Duration::from_secs((count / REREADS_A_SECOND).into());
            REREAD.max(least).mul_f64(0.75 + fraction / 4.0)
        };
        entry.due = Some(now + pause);
        self.due.insert((now + pause, reading.name.clone()));
        Answered::News
    }

    /// Ends a reading that was not answered: it is due again at once.
    pub(super) fn unanswered(&mut self, reading: &Reading, now: Instant) {
        self.hasten(&reading.name, now);
    }

    /// Notes that something became known of an object from elsewhere.
    pub(super) fn told(&mut self, name: &ObjectName) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.told += 1;
        }
    }

    /// Has a name read at this time.
    pub(super) fn hasten(&mut self, name: &ObjectName, at: Instant) {
        let Some((name, _)) = self.entries.get_key_value(name) else {
            return;
        };
        let name = name.clone();
        if let Some(entry) = self.entries.get_mut(&name) {
            if let Some(due) = entry.due.replace(at) {
                self.due.remove(&(due, name.clone()));
            }
            self.due.insert((at, name));
        }
    }

    /// Doubts the names of a holder: each is to be read anew, also where it is being read.
    pub(super) fn doubt_of(&mut self, holder: &str, now: Instant) {
        let names = self.holders.get(holder).into_iter().flatten();
        let names: Vec<Arc<ObjectName>> = names.cloned().collect();
        for name in &names {
            if let Some(entry) = self.entries.get_mut(name) {
                self.unread += usize::from(entry.read);
                entry.read = false;
            }
            self.hasten(name, now);
        }
    }

    /// Doubts everything: each is to be read anew.
    pub(super) fn doubt(&mut self, now: Instant) {
        self.unread = self.entries.len();
        self.due.clear();
        for (name, entry) in &mut self.entries {
            entry.read = false;
            entry.due = Some(now);
            self.due.insert((now, name.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> BTreeSet<ObjectName> {
        let names = text.split_whitespace();
        names.map(|name| ObjectName::new(Some("a"), name)).collect()
    }

    fn shown(readings: &Result<Vec<Reading>, Option<Instant>>) -> String {
        let readings = readings.as_ref().map(Vec::as_slice).unwrap_or_default();
        let names = readings.iter().map(|one| one.name.name.as_str());
        names.collect::<Vec<_>>().join(" ")
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_read_at_once_and_then_from_time_to_time() {
        let now = Instant::now();
        let mut known = Names::default();
        known.set("unit", &names("x y z"), now);
        assert!(!known.all_read());
        let first = known.take_due(now, 2);
        assert_eq!(shown(&first), "x y");
        let second = known.take_due(now, 2);
        assert_eq!(shown(&second), "z");
        assert_eq!(known.take_due(now, 2).unwrap_err(), None);
        let readings = first.unwrap().into_iter().chain(second.unwrap());
        for (index, reading) in readings.enumerate() {
            let going = index == 2;
            let fraction = [0.0, 1.0, 0.0][index];
            assert_eq!(
                known.answered(&reading, now, going, fraction),
                Answered::News
            );
        }
        assert!(known.all_read());
        // The one that is going is looked at soon, the others within the time.
        assert_eq!(
            known.take_due(now, 2).unwrap_err(),
            Some(now + REREAD_GOING)
        );
        assert_eq!(shown(&known.take_due(now + REREAD.mul_f64(0.75), 9)), "z x");
        assert_eq!(shown(&known.take_due(now + REREAD, 9)), "y");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_from_before_our_own_write_is_none() {
        let now = Instant::now();
        let mut known = Names::default();
        known.set("unit", &names("x"), now);
        let reading = known.take_due(now, 1).unwrap().remove(0);
        known.told(&reading.name);
        assert_eq!(
            known.answered(&reading, now, false, 0.0),
            Answered::Overtaken
        );
        assert!(!known.all_read());
        let reading = known.take_due(now, 1).unwrap().remove(0);
        known.doubt(now);
        assert_eq!(
            known.answered(&reading, now, false, 0.0),
            Answered::Overtaken
        );
        let reading = known.take_due(now, 1).unwrap().remove(0);
        known.unanswered(&reading, now);
        let reading = known.take_due(now, 1).unwrap().remove(0);
        assert_eq!(known.answered(&reading, now, false, 0.0), Answered::News);
        assert!(known.all_read());
    }

    #[tokio::test(start_paused = true)]
    async fn what_one_holder_doubts_is_read_anew() {
        let now = Instant::now();
        let mut known = Names::default();
        known.set("unit", &names("x y"), now);
        known.set("other", &names("y z"), now);
        for reading in known.take_due(now, 9).unwrap() {
            known.answered(&reading, now, false, 0.0);
        }
        assert!(known.all_read());
        known.doubt_of("nobody", now);
        assert!(known.take_due(now, 9).is_err());
        known.doubt_of("unit", now);
        assert!(!known.all_read());
        let doubted = |name: &str| known.is_doubted(&ObjectName::new(Some("a"), name));
        assert_eq!(
            ["x", "y", "z", "u"].map(doubted),
            [true, true, false, false]
        );
        let first = known.take_due(now, 9);
        assert_eq!(shown(&first), "x y");
        // What is answered now may be from before.
        known.doubt_of("unit", now);
        for reading in first.unwrap() {
            let answered = known.answered(&reading, now, false, 0.0);
            assert_eq!(answered, Answered::Overtaken);
        }
        for reading in known.take_due(now, 9).unwrap() {
            let answered = known.answered(&reading, now, false, 0.0);
            assert_eq!(answered, Answered::News);
        }
        assert!(known.all_read());
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_goes_with_its_last_holder() {
        let now = Instant::now();
        let mut known = Names::default();
        let gone = |gone: Vec<Arc<ObjectName>>| {
            let names = gone.iter().map(|name| name.name.clone());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(gone(known.set("a", &names("x y"), now)), "");
        assert_eq!(gone(known.set("b", &names("y z"), now)), "");
        assert_eq!(gone(known.set("a", &names("z"), now)), "x");
        assert_eq!(known.of("a"), names("z"));
        assert_eq!(gone(known.set("b", &names(""), now)), "y");
        let reading = known.take_due(now, 9).unwrap();
        assert_eq!(reading.len(), 1);
        assert_eq!(gone(known.set("a", &names(""), now)), "z");
        assert_eq!(
            known.answered(&reading[0], now, false, 0.0),
            Answered::Overtaken
        );
        assert!(known.all_read());
        assert!(known.entries.is_empty() && known.holders.is_empty() && known.due.is_empty());
    }
}
