//! Which pack waits for which, and whether that can come to an end.

use crate::catalog;
use crate::pack::Spec;

/// What each pack says, by name.
pub(crate) struct Specs<'a>(Vec<(&'a str, &'a Spec)>);

impl<'a> Specs<'a> {
    pub(crate) fn get(&self, name: &str) -> Option<&'a Spec> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, spec)| *spec)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.0.iter().map(|(name, _)| *name)
    }
}

impl<'a> FromIterator<(&'a str, &'a Spec)> for Specs<'a> {
    fn from_iter<T: IntoIterator<Item = (&'a str, &'a Spec)>>(specs: T) -> Self {
        Self(specs.into_iter().collect())
    }
}

/// The packs that one waits for.
///
/// They are those that it names in `dependsOn`, or else those that a pack of its name
/// needs; and where it has a `wave`, all that have a lower one.
pub(crate) fn needs<'a>(name: &str, packs: &Specs<'a>) -> Vec<&'a str> {
    let Some(spec) = packs.get(name) else {
        return Vec::new();
    };
    let mut needs: Vec<&str> = match (&spec.depends_on, catalog::find(name)) {
        (Some(named), _) => named.iter().map(String::as_str).collect(),
        (None, Some(pack)) => pack.needs.to_vec(),
        (None, None) => Vec::new(),
    };
    if let Some(wave) = spec.wave {
        for (other, spec) in &packs.0 {
            let before = spec.wave.is_some_and(|other| other < wave);
            if before && spec.is_enabled() && !needs.contains(other) {
                needs.push(other);
            }
        }
    }
    needs
}

/// The packs that wait for one.
pub(crate) fn dependents<'a>(name: &str, packs: &Specs<'a>) -> Vec<&'a str> {
    let waits = |other: &&str| needs(other, packs).contains(&name);
    packs.names().filter(waits).collect()
}

/// The first circle that leads on from a pack, its first pack once more at its end.
pub(crate) fn circle<'a>(name: &'a str, packs: &Specs<'a>) -> Option<Vec<&'a str>> {
    let mut done = Vec::new();
    follow(name, packs, &mut Vec::new(), &mut done)
}

fn follow<'a>(
    name: &'a str,
    packs: &Specs<'a>,
    way: &mut Vec<&'a str>,
    done: &mut Vec<&'a str>,
) -> Option<Vec<&'a str>> {
    if let Some(start) = way.iter().position(|before| *before == name) {
        let mut circle = way.split_off(start);
        circle.push(name);
        return Some(circle);
    }
    if done.contains(&name) {
        return None;
    }
    way.push(name);
    for next in needs(name, packs) {
        if let Some(circle) = follow(next, packs, way, done) {
            return Some(circle);
        }
    }
    way.pop();
    done.push(name);
    None
}

/// What is said of a circle.
pub(crate) fn describe(circle: &[&str]) -> String {
    format!(
        "packs wait for one another in a circle: {}; take one of these out of dependsOn, or \
         change a wave",
        circle.join(" -> ")
    )
}
