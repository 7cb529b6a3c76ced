//! Which pack waits for which, and whether that can come to an end.

use crate::catalog;
use crate::pack::Spec;

/// What each pack says, by name, and its place in the order of packs.
pub(crate) struct Specs<'a>(Vec<Said<'a>>);

struct Said<'a> {
    name: &'a str,
    spec: &'a Spec,
    wave: i64,
}

impl<'a> Specs<'a> {
    pub(crate) fn get(&self, name: &str) -> Option<&'a Spec> {
        self.find(name).map(|one| one.spec)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.0.iter().map(|one| one.name)
    }

    /// The wave of a pack: what it says, or else the usual one, and at least that of each
    /// pack that it needs by name.
    pub(crate) fn wave(&self, name: &str) -> i64 {
        self.find(name).map_or(i64::MIN, |one| one.wave)
    }

    /// Whether a pack comes after another because it says a wave. Such packs are in no
    /// circle: what needs a pack by name has no lower wave.
    pub(crate) fn is_later(&self, name: &str, other: &str) -> bool {
        let says = self.get(name).is_some_and(|spec| spec.wave.is_some());
        says && catalog::find(other).is_some() && self.wave(other) < self.wave(name)
    }

    /// Sees to it that no pack has a lower wave than one that it needs by name.
    fn raise(&mut self) {
        // Each round brings one of the waves that there are one step on.
        for _ in 0..self.0.len() {
            let highest = |one: &Said<'_>| {
                let needs = named(one.name, one.spec).into_iter();
                needs.map(|need| self.wave(need)).fold(one.wave, i64::max)
            };
            let waves: Vec<i64> = self.0.iter().map(highest).collect();
            let mut rises = false;
            for (one, wave) in self.0.iter_mut().zip(waves) {
                rises |= one.wave != wave;
                one.wave = wave;
            }
            if !rises {
                return;
            }
        }
    }

    fn find(&self, name: &str) -> Option<&Said<'a>> {
        self.0.iter().find(|one| one.name == name)
    }
}

impl<'a> FromIterator<(&'a str, &'a Spec)> for Specs<'a> {
    fn from_iter<T: IntoIterator<Item = (&'a str, &'a Spec)>>(specs: T) -> Self {
        let mut all = Self(Vec::new());
        for (name, spec) in specs {
            let usual = catalog::find(name).map_or(0, |pack| pack.wave);
            let wave = spec.wave.unwrap_or(usual);
            all.0.push(Said { name, spec, wave });
        }
        all.raise();
        all
    }
}

/// The packs that one needs by name: those in `dependsOn`, or else those that a pack of
/// its name needs.
pub(crate) fn named<'a>(name: &str, spec: &'a Spec) -> Vec<&'a str> {
    match (&spec.depends_on, catalog::find(name)) {
        (Some(named), _) => named.iter().map(String::as_str).collect(),
        (None, Some(pack)) => pack.needs.to_vec(),
        (None, None) => Vec::new(),
    }
}

/// The packs that one waits for: those that it needs by name; and where it says a wave,
/// all that have a lower one.
pub(crate) fn needs<'a>(name: &str, packs: &Specs<'a>) -> Vec<&'a str> {
    let Some(spec) = packs.get(name) else {
        return Vec::new();
    };
    let mut needs = named(name, spec);
    for Said {
        name: other, spec, ..
    } in &packs.0
    {
        if spec.is_enabled() && packs.is_later(name, other) && !needs.contains(other) {
            needs.push(other);
        }
    }
    needs
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
        "packs wait for one another in a circle: {}; take one of these out of dependsOn",
        circle.join(" -> ")
    )
}
