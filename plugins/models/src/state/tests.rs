//! Each row: what is observed, and what follows.

use super::*;

const OLD: &str = "0000old";
const NEW: &str = "1111new";

fn image(digit: char) -> Image {
    let digest = String::from(digit).repeat(64);
    Image::parse(&format!("r.example.com/models@sha256:{digest}")).unwrap()
}

fn digest(digit: char) -> Digest {
    image(digit).digest.unwrap()
}

/// The version of a key; its model is called as the key is.
fn version(key: &str) -> Version {
    Version {
        key: key.to_owned(),
        model_id: format!("model-{key}"),
        package: "sha256:x".to_owned(),
        base: Image::parse("r.example.com/pps:1").unwrap(),
        image: image('0'),
        artifact: None,
    }
}

/// Nothing serves.
fn nothing() -> Live {
    Live::default()
}

/// A Deployment of this key, and who answers.
fn live(key: &str, rollout: Rollout, answering: &[&str]) -> Live {
    Live {
        exists: true,
        version: Some(version(key)),
        rollout,
        answering: answering.iter().map(|key| version(key)).collect(),
        served: Some(1),
        sets: 1,
        ..Live::default()
    }
}

fn old() -> Live {
    live(OLD, Rollout::Done, &[OLD])
}

/// What is said of a build: how its Job stands, how many were lost, what is missing.
#[derive(Clone)]
struct Said {
    job: JobState,
    losses: usize,
    missing: Vec<String>,
    image: Option<Image>,
}

fn job(job: JobState) -> Said {
    Said {
        job,
        losses: 0,
        missing: Vec::new(),
        image: None,
    }
}

fn lost(losses: usize, job: JobState) -> Said {
    Said {
        losses,
        ..self::job(job)
    }
}

fn decided(live: &Live, said: Said) -> Decision {
    let repository = Image::parse("r.example.com/models").unwrap();
    decide(&Observed {
        stopped: false,
        busy: false,
        wanted: Ok(Wanted {
            key: NEW,
            image: said.image,
            repository: &repository,
            missing: said.missing,
            job: said.job,
            losses: said.losses,
        }),
        live,
    })
}

/// Phase, state and status, reason, and what is done about the build and the servers.
type Row = (
    Phase,
    &'static str,
    &'static str,
    &'static str,
    Build,
    Deploy,
);

fn check(what: &str, live: &Live, said: Said, expected: &Row) {
    let found = decided(live, said);
    let row = (
        found.phase,
        found.phase.state(),
        found.health.name(),
        found.reason,
        found.build,
        found.deploy.clone(),
    );
    assert_eq!(&row, expected, "{what}: {}", found.message);
    assert!(!found.message.is_empty(), "{what}");
}

fn active() -> JobState {
    JobState::Active { trouble: None }
}

fn failed() -> JobState {
    JobState::Failed {
        why: "BackoffLimitExceeded: it did".to_owned(),
    }
}

fn no_digest() -> JobState {
    JobState::NoDigest {
        said: "done".to_owned(),
    }
}

#[test]
fn a_first_model_is_built_and_served_or_errored() {
    use Phase::*;
    let nothing = nothing();
    let image = image('1');
    let launching = |phase, reason, build| {
        (
            phase,
            "launching",
            "unknown",
            reason,
            build,
            Deploy::Nothing,
        )
    };
    let errored = |reason| {
        (
            Errored,
            "errored",
            "failing",
            reason,
            Build::Left,
            Deploy::Nothing,
        )
    };
    let deploying = (
        Deploying,
        "launching",
        "unknown",
        "Deploying",
        Build::Left,
        Deploy::Wanted(image.clone()),
    );
    for (what, said, expected) in [
        (
            "no Job",
            job(JobState::Absent),
            launching(Pending, "Pending", Build::Made),
        ),
        (
            "a Job that goes",
            job(JobState::Going),
            launching(Pending, "Pending", Build::Removed),
        ),
        (
            "a Job at it",
            job(active()),
            launching(Building, "Building", Build::Made),
        ),
        (
            "a pod that cannot start",
            job(JobState::Active {
                trouble: Some("ErrImagePull".to_owned()),
            }),
            launching(Building, "BuildWaiting", Build::Made),
        ),
        (
            "a Job that was lost once",
            lost(1, JobState::Absent),
            launching(Pending, "Rebuilding", Build::Made),
        ),
        (
            "a Job that was lost twice",
            lost(2, JobState::Absent),
            errored("BuildLost"),
        ),
        (
            "a pod that was lost",
            job(JobState::Unread),
            launching(Pending, "Rebuilding", Build::Removed),
        ),
        (
            "a pod that was lost again",
            lost(1, JobState::Unread),
            errored("BuildLost"),
        ),
        (
            "an eviction",
            job(JobState::Evicted),
            launching(Pending, "Rebuilding", Build::Removed),
        ),
        (
            "another eviction",
            lost(1, JobState::Evicted),
            errored("BuildEvicted"),
        ),
        ("no digest", job(no_digest()), errored("DigestInvalid")),
        ("a failure", job(failed()), errored("BuildFailed")),
        (
            "a digest",
            job(JobState::Complete(digest('1'))),
            deploying.clone(),
        ),
        (
            "an image that is known",
            Said {
                image: Some(image.clone()),
                ..job(JobState::Absent)
            },
            deploying,
        ),
        (
            "a Secret that is not there",
            Said {
                missing: vec!["no Secret".to_owned()],
                ..job(JobState::Absent)
            },
            errored("PrerequisiteMissing"),
        ),
        // Who builds already has all that it needs.
        (
            "a Secret that is deleted meanwhile",
            Said {
                missing: vec!["no Secret".to_owned()],
                ..job(active())
            },
            launching(Building, "Building", Build::Made),
        ),
    ] {
        check(what, &nothing, said, &expected);
    }
}

#[test]
fn a_replacement_leaves_the_old_model_in_place_until_the_new_one_serves() {
    use Phase::*;
    let old = old();
    let image = image('1');
    let replacing = |reason, build| {
        (
            Replacing,
            "replacingModel",
            "passing",
            reason,
            build,
            Deploy::Kept,
        )
    };
    let warning = |reason| (Ready, "ready", "warning", reason, Build::Left, Deploy::Kept);
    for (what, said, expected) in [
        (
            "no Job",
            job(JobState::Absent),
            replacing("Pending", Build::Made),
        ),
        (
            "a Job at it",
            job(active()),
            replacing("Building", Build::Made),
        ),
        (
            "a pod that was lost",
            job(JobState::Unread),
            replacing("Rebuilding", Build::Removed),
        ),
        ("a failure", job(failed()), warning("BuildFailed")),
        ("no digest", job(no_digest()), warning("DigestInvalid")),
        (
            "a Job that was lost twice",
            lost(2, JobState::Absent),
            warning("BuildLost"),
        ),
        (
            "a Secret that is not there",
            Said {
                missing: vec!["no Secret".to_owned()],
                ..job(JobState::Absent)
            },
            warning("PrerequisiteMissing"),
        ),
        (
            "a digest",
            job(JobState::Complete(digest('1'))),
            (
                Replacing,
                "replacingModel",
                "passing",
                "Deploying",
                Build::Left,
                Deploy::Wanted(image),
            ),
        ),
    ] {
        let found = decided(&old, said.clone());
        assert!(found.old_model_in_use, "{what}");
        assert_eq!(
            found.current_model.as_deref(),
            Some("model-0000old"),
            "{what}"
        );
        check(what, &old, said, &expected);
    }
    // Nobody answers any more, so there is nothing to be proud of.
    let dead = live(OLD, Rollout::Progressing, &[]);
    check(
        "a failure where nothing answers",
        &dead,
        job(failed()),
        &(
            Degraded,
            "errored",
            "failing",
            "BuildFailed",
            Build::Left,
            Deploy::Kept,
        ),
    );
    check(
        "a build where nothing answers",
        &dead,
        job(active()),
        &(
            Replacing,
            "replacingModel",
            "failing",
            "Building",
            Build::Made,
            Deploy::Kept,
        ),
    );
}

/// A Deployment says nothing of that by being there.
#[test]
fn what_never_served_is_launched_and_not_replaced() {
    use Phase::*;
    let never = Live {
        served: None,
        ..live(OLD, Rollout::Progressing, &[])
    };
    let launching =
        |phase, reason, build, deploy| (phase, "launching", "unknown", reason, build, deploy);
    let errored = |reason| {
        (
            Errored,
            "errored",
            "failing",
            reason,
            Build::Left,
            Deploy::Kept,
        )
    };
    for (what, said, expected) in [
        (
            "no Job",
            job(JobState::Absent),
            launching(Pending, "Pending", Build::Made, Deploy::Kept),
        ),
        (
            "a Job at it",
            job(active()),
            launching(Building, "Building", Build::Made, Deploy::Kept),
        ),
        (
            "a digest",
            job(JobState::Complete(digest('1'))),
            launching(
                Deploying,
                "Deploying",
                Build::Left,
                Deploy::Wanted(image('1')),
            ),
        ),
        ("a failure", job(failed()), errored("BuildFailed")),
        (
            "a Job that was lost twice",
            lost(2, JobState::Absent),
            errored("BuildLost"),
        ),
    ] {
        check(what, &never, said, &expected);
    }
}

#[test]
fn a_rollout_is_told_by_who_answers() {
    use Phase::*;
    let stuck = || Rollout::Stuck("it timed out".to_owned());
    let short = || Rollout::Short {
        available: 1,
        wanted: 2,
    };
    for (what, rollout, answering, phase, state, status, reason, old_in_use, model) in [
        (
            "done",
            Rollout::Done,
            &[NEW][..],
            Ready,
            "ready",
            "passing",
            "Serving",
            false,
            Some("model-1111new"),
        ),
        (
            "none wanted",
            Rollout::Idle,
            &[],
            Ready,
            "ready",
            "unknown",
            "NoServers",
            false,
            None,
        ),
        (
            "starting",
            Rollout::Progressing,
            &[],
            Deploying,
            "launching",
            "unknown",
            "Deploying",
            false,
            None,
        ),
        (
            "more servers",
            Rollout::Progressing,
            &[NEW],
            Deploying,
            "launching",
            "passing",
            "Deploying",
            false,
            Some("model-1111new"),
        ),
        (
            "old ones serve",
            Rollout::Progressing,
            &[OLD],
            Replacing,
            "replacingModel",
            "passing",
            "Deploying",
            true,
            Some("model-0000old"),
        ),
        (
            "both serve",
            Rollout::Progressing,
            &[NEW, OLD],
            Replacing,
            "replacingModel",
            "passing",
            "Deploying",
            true,
            Some("model-0000old"),
        ),
        (
            "short",
            short(),
            &[NEW],
            Degraded,
            "errored",
            "warning",
            "ServersMissing",
            false,
            Some("model-1111new"),
        ),
        (
            "stuck",
            stuck(),
            &[],
            Errored,
            "errored",
            "failing",
            "RolloutFailed",
            false,
            None,
        ),
        (
            "stuck, old ones serve",
            stuck(),
            &[OLD],
            Ready,
            "ready",
            "warning",
            "RolloutFailed",
            true,
            Some("model-0000old"),
        ),
        (
            "stuck, some serve",
            stuck(),
            &[NEW],
            Degraded,
            "errored",
            "warning",
            "RolloutFailed",
            false,
            Some("model-1111new"),
        ),
    ] {
        let live = live(NEW, rollout, answering);
        // Whatever became of the Job by now.
        for job in [JobState::Absent, failed(), active()] {
            let found = decided(&live, lost(2, job));
            assert_eq!(found.phase, phase, "{what}");
            assert_eq!(found.phase.state(), state, "{what}");
            assert_eq!(found.health.name(), status, "{what}");
            assert_eq!(found.reason, reason, "{what}");
            assert_eq!(found.old_model_in_use, old_in_use, "{what}");
            assert_eq!(found.current_model.as_deref(), model, "{what}");
            assert_eq!(found.deploy, Deploy::Wanted(image('0')), "{what}");
            assert_eq!(found.build, Build::Left, "{what}");
        }
    }
}

/// What is known to be built is not told to be launched while its servers cannot start.
#[test]
fn servers_that_cannot_start_are_told_at_once() {
    use Phase::*;
    let said = || Said {
        missing: vec!["no Secret".to_owned()],
        image: Some(image('0')),
        ..job(JobState::Absent)
    };
    let row = |phase, state, status, deploy| {
        (
            phase,
            state,
            status,
            "PrerequisiteMissing",
            Build::Left,
            deploy,
        )
    };
    let errored = |deploy| row(Errored, "errored", "failing", deploy);
    let warning = |deploy| row(Ready, "ready", "warning", deploy);
    let wanted = || Deploy::Wanted(image('0'));
    check(
        "nothing serves",
        &nothing(),
        said(),
        &errored(Deploy::Nothing),
    );
    check("another serves", &old(), said(), &warning(Deploy::Kept));
    let mut starting = live(NEW, Rollout::Progressing, &[]);
    starting.served = None;
    check("they start", &starting, said(), &errored(wanted()));
    let replacing = live(NEW, Rollout::Progressing, &[OLD]);
    check(
        "they start beside others",
        &replacing,
        said(),
        &warning(wanted()),
    );
    assert!(decided(&replacing, said()).old_model_in_use);
}

#[test]
fn a_stop_ends_the_build_first() {
    for (what, live, busy, phase, deploy) in [
        (
            "a build and servers",
            old(),
            true,
            Phase::Stopping,
            Deploy::Kept,
        ),
        (
            "a build alone",
            nothing(),
            true,
            Phase::Stopping,
            Deploy::Nothing,
        ),
        ("servers", old(), false, Phase::Stopping, Deploy::Nothing),
        (
            "what is left of servers",
            Live {
                sets: 1,
                ..nothing()
            },
            false,
            Phase::Stopping,
            Deploy::Nothing,
        ),
        ("nothing", nothing(), false, Phase::Stopped, Deploy::Nothing),
    ] {
        let found = decide(&Observed {
            stopped: true,
            busy,
            wanted: Err(vec!["whatever is wanted".to_owned()]),
            live: &live,
        });
        assert_eq!((found.phase, &found.deploy), (phase, &deploy), "{what}");
        assert_eq!(found.build, Build::Left, "{what}");
        assert_eq!(found.health, Health::Unknown, "{what}");
    }
}

#[test]
fn what_makes_no_sense_is_told_and_costs_nothing_that_serves() {
    let invalid = |live: &Live| {
        decide(&Observed {
            stopped: false,
            busy: false,
            wanted: Err(vec!["one".to_owned(), "two".to_owned()]),
            live,
        })
    };
    let found = invalid(&nothing());
    assert_eq!(
        (found.phase, found.health),
        (Phase::Errored, Health::Failing)
    );
    assert_eq!((found.reason, &*found.message), ("Invalid", "one; two"));
    let found = invalid(&old());
    assert_eq!((found.phase, found.health), (Phase::Ready, Health::Warning));
    assert_eq!(found.message, "the earlier model goes on serving: one; two");
    assert_eq!((found.deploy, found.old_model_in_use), (Deploy::Kept, true));
}

#[test]
fn states_and_numbers_are_those_of_the_management_agent() {
    for (health, name, code) in [
        (Health::Passing, "passing", 0),
        (Health::Failing, "failing", 1),
        (Health::Warning, "warning", 2),
        (Health::Unknown, "unknown", 3),
    ] {
        assert_eq!((health.name(), health.code()), (name, code));
    }
    for (phase, name, state) in [
        (Phase::Pending, "Pending", "launching"),
        (Phase::Building, "Building", "launching"),
        (Phase::Deploying, "Deploying", "launching"),
        (Phase::Ready, "Ready", "ready"),
        (Phase::Degraded, "Degraded", "errored"),
        (Phase::Replacing, "Replacing", "replacingModel"),
        (Phase::Stopping, "Stopping", "shuttingDown"),
        (Phase::Stopped, "Stopped", "stopped"),
        (Phase::Errored, "Errored", "errored"),
    ] {
        assert_eq!((phase.name(), phase.state()), (name, state));
    }
}
