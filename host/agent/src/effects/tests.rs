//! Tests of when effects are due, and of what becomes of them.

use super::*;

impl Effects {
    fn get(&self, key: &str) -> Option<&Effect> {
        self.0.get(key)
    }
}

fn action(input: &str, retire: bool) -> Action {
    Action {
        key: "db".into(),
        name: "database".into(),
        input: input.into(),
        secrets: vec![],
        verify: None,
        retire,
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Effects of which the one asked for was carried out at 1000.
fn carried(retire: bool) -> Effects {
    let mut effects = Effects::default();
    effects.want(&[action("1", retire)]);
    let effect = effects.get_mut("db").unwrap();
    effect.begun = true;
    let fingerprint = effect.fingerprint(&BTreeMap::new());
    effect.carried_out(fingerprint, r#"{"a":1}"#.into(), at(1000));
    effects.recorded();
    effects
}

#[test]
fn an_effect_is_carried_out_once_and_then_looked_at() {
    let mut effects = Effects::default();
    effects.want(&[action("1", false)]);
    assert_eq!(effects.get("db").unwrap().due(at(1000)), Due::Now);
    let mut effects = carried(false);
    effects.want(&[action("1", false)]);
    let effect = effects.get("db").unwrap();
    assert_eq!(effect.due(at(1001)), Due::At(at(1600)));
    assert_eq!(effect.due(at(1600)), Due::Now);
    assert_eq!(effects.next(false), Some(at(1600)));
    assert_eq!(effects.write()[0].state, "InPlace");
    effects.want(&[action("2", false)]);
    assert_eq!(effects.get("db").unwrap().due(at(1001)), Due::Now);
    assert_eq!(effects.write()[0].state, "Pending");
    assert_eq!(
        effects.facts()[0].value,
        r#"{"a":1}"#,
        "a fact stays meanwhile"
    );
}

#[test]
fn failures_are_tried_again_with_growing_delays() {
    let mut effects = Effects::default();
    effects.want(&[action("1", false)]);
    let effect = effects.get_mut("db").unwrap();
    let mut delays = Vec::new();
    for _ in 0..4 {
        effect.failed("no".into(), at(1000));
        let delay = effect.not_before.unwrap().duration_since(at(1000));
        delays.push(delay.as_millis());
    }
    assert_eq!(delays, [500, 1000, 2000, 4000]);
    assert_eq!(effects.get("db").unwrap().due(at(1000)), Due::At(at(1004)));
    // Another request is another attempt.
    effects.want(&[action("2", false)]);
    assert_eq!(effects.get("db").unwrap().due(at(1000)), Due::Now);
    effects.get_mut("db").unwrap().failed("no".into(), at(1000));
    effects.try_anew();
    assert_eq!(effects.get("db").unwrap().due(at(1000)), Due::Now);
}

#[test]
fn what_is_asked_for_no_more_stays_or_is_taken_away() {
    let mut effects = carried(false);
    let kept = effects.want(&[]);
    assert_eq!((kept.len(), effects.is_empty()), (1, true));

    let mut effects = carried(true);
    assert!(effects.want(&[]).is_empty());
    assert_eq!(effects.get("db").unwrap().due(at(1001)), Due::Now);
    // Asked for again before it was taken away.
    effects.want(&[action("1", true)]);
    assert_eq!(effects.get("db").unwrap().due(at(1001)), Due::At(at(1600)));

    // What was never begun leaves nothing.
    let mut effects = Effects::default();
    effects.want(&[action("1", true)]);
    assert!(effects.want(&[]).is_empty());
    assert!(effects.is_empty());
}

#[test]
fn a_fact_stays_while_its_effect_is_made_again() {
    let mut effects = carried(true);
    effects.get_mut("db").unwrap().gone();
    effects.want(&[action("1", true)]);
    assert_eq!(effects.get("db").unwrap().due(at(1001)), Due::Now);
    assert_eq!(effects.write()[0].state, "Pending");
    // Over a restart, too.
    let effects = Effects::read(&effects.write());
    assert_eq!(effects.get("db").unwrap().pending(), Some(Verb::Apply));
    assert_eq!(effects.facts()[0].value, r#"{"a":1}"#);
}

#[test]
fn a_person_has_forgotten_what_is_not_wanted() {
    let mut effects = carried(true);
    let written = effects.write();
    let token = forget_token(&written[0].request, written[0].applied_at.as_deref());
    let tokens = BTreeSet::from([token]);
    assert!(effects.forget(&tokens).is_empty(), "it is asked for");
    effects.want(&[]);
    assert!(
        effects
            .forget(&BTreeSet::from(["db".to_owned()]))
            .is_empty()
    );
    assert_eq!(effects.forget(&tokens), [action("1", true)]);
    assert!(effects.is_empty());
}

fn numbered(keys: std::ops::Range<usize>, bytes: usize) -> Vec<Action> {
    let numbered = keys.map(|key| Action {
        key: format!("{key:03}"),
        input: format!("{:?}", "x".repeat(bytes)),
        ..action("1", true)
    });
    numbered.collect()
}

/// Takes these in, and begins what there is room for. Returns how many there is not.
fn refused(effects: &mut Effects, actions: &[Action]) -> usize {
    effects.want(actions);
    let refused = effects.refused(actions).count();
    effects
        .0
        .values_mut()
        .for_each(|effect| effect.begun = true);
    refused
}

#[test]
fn what_is_to_be_taken_away_does_not_grow_without_bound() {
    let mut effects = Effects::default();
    for (asked, expected) in [(0..32, 0), (32..64, 0), (64..96, 32), (64..96, 32)] {
        let actions = numbered(asked.clone(), 1);
        assert_eq!(refused(&mut effects, &actions), expected, "{asked:?}");
        assert!(effects.0.len() <= MAX_KEPT);
    }
    let text = effects.no_room("envoy-1");
    for part in [
        "64 effects",
        "64 of them are asked for no more",
        "Unit envoy-1",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // As soon as one is gone, there is room for one.
    effects.remove("000");
    assert_eq!(refused(&mut effects, &numbered(64..96, 1)), 31);
    // What is kept and asked for again needs none.
    assert_eq!(refused(&mut effects, &numbered(32..64, 1)), 0);
}

#[test]
fn what_does_not_fit_into_an_object_is_not_begun() {
    let mut effects = Effects::default();
    let actions = numbered(0..32, 30 << 10);
    assert_eq!(refused(&mut effects, &actions), 0);
    let more = numbered(32..64, 30 << 10);
    let left = refused(&mut effects, &more);
    assert!((1..32).contains(&left), "{left}");
    let written = serde_json::to_vec(&effects.write()).unwrap().len();
    assert!(written <= MAX_WRITTEN + MAX_KEPT, "{written}");
    // One that is begun and asked for otherwise stays as it was made.
    let larger = numbered(32..33, 300 << 10);
    assert_eq!(refused(&mut effects, &larger), 1);
    let kept = effects.get("032").unwrap();
    assert_eq!((kept.wanted, &kept.action), (true, &more[0]));
}

#[test]
fn a_word_is_good_once_and_for_one_thing() {
    let mut effects = Effects::default();
    effects.want(&[action("1", true)]);
    let first = effects.unapproved();
    assert_eq!(first[0].verb, Verb::Apply);
    assert_eq!(
        effects.next(true),
        None,
        "it waits for the word, not for a time"
    );
    assert_eq!(effects.next(false), Some(Timestamp::UNIX_EPOCH));
    effects.approve(&first);
    assert!(effects.unapproved().is_empty());
    assert_eq!(effects.next(true), Some(Timestamp::UNIX_EPOCH));
    // It stands while attempts fail, and falls with another request.
    effects.get_mut("db").unwrap().failed("no".into(), at(1000));
    effects.want(&[action("1", true)]);
    assert!(effects.unapproved().is_empty());
    effects.want(&[action("2", true)]);
    let second = effects.unapproved();
    assert_ne!(second, first);
    effects.approve(&first);
    assert_eq!(effects.unapproved(), second, "that was another request");
    effects.approve(&second);
    let effect = effects.get_mut("db").unwrap();
    effect.begun = true;
    let fingerprint = effect.fingerprint(&BTreeMap::new());
    effect.carried_out(fingerprint, "1".into(), at(1001));
    // Gone: that takes another word.
    effects.get_mut("db").unwrap().gone();
    assert_eq!(effects.unapproved(), second);
    effects.approve(&second);
    // A word to make it is none to take it away.
    effects.want(&[]);
    assert_eq!(effects.unapproved()[0].verb, Verb::Retire);
}

#[test]
fn what_a_restart_needs_survives_it() {
    let mut effects = carried(true);
    effects.want(&[]);
    let pending = effects.unapproved();
    effects.approve(&pending);
    effects.get_mut("db").unwrap().failed("no".into(), at(1001));
    let mut read = Effects::read(&effects.write());
    // A restart is a new attempt.
    assert_eq!(read.get("db").unwrap().due(at(1001)), Due::Now);
    read.get_mut("db").unwrap().not_before = effects.get("db").unwrap().not_before;
    assert_eq!(read, effects);
}
