//! The ModelDeployments that are wanted, by a list and what there is already.

use reeve_sdk::prelude::*;

use crate::config::Supervisor;
use crate::deployment::{Spec, is_stopped};
use crate::entry::{Entry, Said};
use crate::list::{List, Listed};
use crate::live::{Found, Live};
use crate::names::{LONGEST_NAME, is_id, name_of};
use crate::package::Index;

/// What is wanted for a prediction environment.
pub(crate) struct Wanted {
    /// By name, and in this order.
    pub(crate) specs: Vec<(String, Spec)>,
    /// How many deployments are listed for it.
    pub(crate) listed: usize,
    /// How many of them cannot be used.
    pub(crate) unusable: usize,
    /// Why not.
    pub(crate) problems: Problems,
}

/// What decides.
pub(crate) struct Sources<'a> {
    pub(crate) supervisor: &'a Supervisor,
    pub(crate) index: Option<&'a Index>,
    pub(crate) live: &'a Live,
}

/// An entry of the prediction environment whose id can be read.
struct Known<'a> {
    id: &'a str,
    /// None where the id makes none.
    name: Option<String>,
    entry: &'a Entry,
}

impl Wanted {
    /// What a list asks for in the prediction environment of this id.
    pub(crate) fn of(environment: &str, list: &List, sources: &Sources<'_>) -> Self {
        let mut wanted = Self {
            specs: Vec::new(),
            listed: 0,
            unusable: 0,
            problems: Problems::about(
                "Deployments that cannot be used",
                "What there is of them stays as it is.",
            ),
        };
        let known = list
            .entries
            .iter()
            .filter(|(_, one)| one.is_of(environment));
        let known = known.map(|(id, entry)| Known {
            id,
            name: name_of(id).filter(|_| is_id(id)),
            entry,
        });
        let known: Vec<Known<'_>> = known.collect();
        for one in &known {
            wanted.add(one, &known, sources);
        }
        let used = wanted.unusable;
        // Whose it is cannot be read, and it was one of ours.
        for (id, entry) in &list.entries {
            let mut own = sources.live.of(None, id).peekable();
            if entry.environment.text().is_some() || entry.unmanaged || own.peek().is_none() {
                continue;
            }
            wanted.cannot(format!(
                "deployment `{id}`: {}: no id of a prediction environment; give the deployment one",
                sources.supervisor.fields.environment_id
            ));
            for found in own {
                wanted.keep(found, found.kept());
            }
        }
        let odd = wanted.unusable - used;
        let nameless = list.nameless.iter();
        let nameless = nameless.filter(|listed| listed.entry.is_of(environment));
        let before = wanted.unusable;
        for listed in nameless {
            wanted.cannot(said_of(listed, sources));
        }
        // Any of those that are listed no more may be one without an id.
        if wanted.unusable > before {
            for found in &sources.live.own {
                wanted.keep(found, found.kept());
            }
        }
        wanted.listed = known.len() + odd + wanted.unusable - before;
        wanted
    }

    fn add(&mut self, known: &Known<'_>, all: &[Known<'_>], sources: &Sources<'_>) {
        let Known { id, entry, .. } = known;
        let supervisor = sources.supervisor;
        let usable = usable_name(known, all, sources);
        let spec = usable.clone().and_then(|name| {
            let spec = Spec::of_entry(id, entry, supervisor, sources.index)?;
            Ok((name, spec))
        });
        let stopped = usable.is_ok() && is_stopped(entry, supervisor) == Ok(true);
        match spec {
            Ok((name, spec)) => {
                self.put(name, spec);
            }
            // Nothing of its model is needed to stop it.
            Err(_) if stopped => {
                for found in sources.live.of(known.name.as_deref(), id) {
                    let stopped = Some(true);
                    let kept = found.kept();
                    self.keep(found, Spec { stopped, ..kept });
                }
            }
            Err(problem) => {
                self.cannot(format!("deployment `{id}`: {problem}"));
                for found in sources.live.of(known.name.as_deref(), id) {
                    self.keep(found, found.kept());
                }
            }
        }
    }

    fn cannot(&mut self, problem: String) {
        self.unusable += 1;
        self.problems.add(problem);
    }

    /// Wants a ModelDeployment to be like this.
    fn put(&mut self, name: String, spec: Spec) {
        match self.place(&name) {
            Ok(at) => {
                if let Some(known) = self.specs.get_mut(at) {
                    known.1 = spec;
                }
            }
            Err(at) => self.specs.insert(at, (name, spec)),
        }
    }

    /// The same, unless it is to be otherwise.
    fn keep(&mut self, found: &Found, spec: Spec) {
        if let Err(at) = self.place(found.name()) {
            self.specs.insert(at, (found.name().to_owned(), spec));
        }
    }

    /// Where a name is, or would be.
    fn place(&self, name: &str) -> Result<usize, usize> {
        self.specs
            .binary_search_by(|(known, _)| known.as_str().cmp(name))
    }
}

/// The name of the ModelDeployment, if it can be had.
fn usable_name(
    known: &Known<'_>,
    all: &[Known<'_>],
    sources: &Sources<'_>,
) -> Result<String, String> {
    let pointer = &sources.supervisor.fields.id;
    if !is_id(known.id) {
        return Err(format!(
            "{pointer}: cannot be part of a path; use at most 63 letters, digits, `-` and `_`, with \
             a letter or digit at both ends"
        ));
    }
    let Some(name) = &known.name else {
        return Err(format!(
            "{pointer}: makes no name of a ModelDeployment, which has at most {LONGEST_NAME} \
             characters; use a shorter one"
        ));
    };
    let mut others = all.iter().filter(|other| other.id != known.id);
    if let Some(other) = others.find(|other| other.name.as_ref() == Some(name)) {
        return Err(format!(
            "{pointer}: gives the ModelDeployment the name {name}, as does deployment `{}`; use ids \
             that differ by more than case, `-` and `_`",
            other.id
        ));
    }
    if let Some(other) = sources.live.taken(name, known.id) {
        return Err(format!(
            "{pointer}: ModelDeployment {other}, which was not made for this PredictionEnvironment, \
             has {}; delete it, or give it another",
            match other == name {
                true => "the name that is needed",
                false => "this id",
            }
        ));
    }
    Ok(name.clone())
}

fn said_of(listed: &Listed, sources: &Sources<'_>) -> String {
    let what = match listed.entry.id {
        Said::Odd => "is neither a text nor a whole number",
        _ => "is missing",
    };
    format!(
        "entry {} of the list: {} {what}; give the deployment an id. Until then none is withdrawn",
        listed.position, sources.supervisor.fields.id
    )
}
