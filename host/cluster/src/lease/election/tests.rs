//! Candidates on clocks of their own, with a network that loses, delays and
//! reorders, and an operator who meddles: never two who may write.

use super::*;
use proptest::prelude::*;

/// Milliseconds of true time.
type Millis = u64;

const CANDIDATES: usize = 3;

/// Clocks run at so many thousandths of true time. With a lease of 15 s and a
/// slack of 1 s, two clocks may differ by a fifteenth.
const RATES: std::ops::RangeInclusive<u64> = 968..=1_032;

/// The API server: one Lease with optimistic locking.
#[derive(Default)]
struct Api {
    lease: Option<Stored>,
    writes: u64,
    uids: u64,
}

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a few of them in a test")]
enum Request {
    Read,
    Write(Claim),
}

impl Api {
    fn answer(&mut self, request: &Request) -> Answer {
        match (request, &self.lease) {
            (Request::Read, Some(stored)) => Answer::Lease(stored.clone()),
            (Request::Read | Request::Write(Claim::Update(..)), None) => Answer::Absent,
            (Request::Write(Claim::Create(_)), Some(_)) => Answer::Failed,
            (Request::Write(Claim::Create(record)), None) => {
                self.uids += 1;
                self.store(record)
            }
            (Request::Write(Claim::Update(old, record)), Some(stored)) => {
                if (&old.uid, &old.version) != (&stored.uid, &stored.version) {
                    Answer::Failed
                } else if *record == stored.record {
                    // The real one writes nothing then, and keeps the version.
                    Answer::Lease(stored.clone())
                } else {
                    self.store(record)
                }
            }
        }
    }

    fn store(&mut self, record: &Record) -> Answer {
        self.writes += 1;
        let stored = Stored::bare(self.uids, self.writes, record);
        self.lease = Some(stored.clone());
        Answer::Lease(stored)
    }
}

struct Candidate {
    election: Election,
    rate: u64,
    offset: Duration,
    /// The request that it waits for, and when it was sent.
    waits: Option<(u64, Request, Moment)>,
    answer: Option<Answer>,
    /// When the request was sent that last renewed any of its terms.
    renewed: Option<Moment>,
}

impl Candidate {
    fn now(&self, time: Millis) -> Moment {
        let micros = u128::from(time) * u128::from(self.rate);
        Moment(self.offset + Duration::from_micros(u64::try_from(micros).unwrap()))
    }

    /// Whether it may begin a write.
    fn writes(&mut self, time: Millis) -> bool {
        let now = self.now(time);
        let term = self.election.term(now);
        self.renewed = term.map(|term| term.renewed).max(self.renewed);
        term.is_some()
    }

    /// Whether a write that it once began may still be under way.
    fn lingers(&self, time: Millis) -> bool {
        let hold = LeaseTiming::default().hold();
        let now = self.now(time);
        self.renewed
            .is_some_and(|renewed| now < renewed.after(hold))
    }
}

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    Pass(Millis),
    /// A candidate gets to run. One that does not sleeps, or is stopped.
    Run(usize),
    /// A candidate gets to run, and everything that it asks is answered at once.
    Round(usize),
    /// A candidate waits no longer.
    GiveUp(usize),
    /// The n-th request under way arrives, and its answer comes back or is lost.
    Arrive {
        request: usize,
        answered: bool,
    },
    /// The n-th request under way is lost.
    Lose(usize),
    /// Leaves, orderly; comes back as another process.
    Leave(usize),
    /// Somebody deletes the Lease.
    Delete,
    /// Somebody puts an empty one there.
    Blank,
    /// Somebody labels it.
    Touch,
}

fn step() -> impl Strategy<Value = Step> {
    let candidate = || 0..CANDIDATES;
    prop_oneof![
        6 => (0..3_000u64).prop_map(Step::Pass),
        4 => (0..20_000u64).prop_map(Step::Pass),
        20 => candidate().prop_map(Step::Run),
        15 => candidate().prop_map(Step::Round),
        1 => candidate().prop_map(Step::GiveUp),
        20 => (0..3usize, prop::bool::weighted(0.9))
            .prop_map(|(request, answered)| Step::Arrive { request, answered }),
        1 => (0..3usize).prop_map(Step::Lose),
        1 => candidate().prop_map(Step::Leave),
        1 => Just(Step::Delete),
        1 => Just(Step::Blank),
        1 => Just(Step::Touch),
    ]
}

struct World {
    time: Millis,
    api: Api,
    candidates: Vec<Candidate>,
    wires: Vec<(usize, u64, Request)>,
    requests: u64,
    processes: u64,
}

impl World {
    fn new(clocks: &[(u64, u64)]) -> Self {
        let mut world = Self {
            time: 0,
            api: Api::default(),
            candidates: Vec::new(),
            wires: Vec::new(),
            requests: 0,
            processes: 0,
        };
        for (rate, offset) in clocks {
            let candidate = Candidate {
                election: world.process(),
                rate: *rate,
                offset: Duration::from_millis(*offset),
                waits: None,
                answer: None,
                renewed: None,
            };
            world.candidates.push(candidate);
        }
        world
    }

    fn process(&mut self) -> Election {
        self.processes += 1;
        Election::new(
            format!("process {}", self.processes),
            LeaseTiming::default(),
        )
    }

    /// The wall clock stands still, which must not matter.
    fn wall() -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn send(&mut self, index: usize, request: Request) {
        self.requests += 1;
        let candidate = &mut self.candidates[index];
        candidate.waits = Some((self.requests, request.clone(), candidate.now(self.time)));
        candidate.answer = None;
        self.wires.push((index, self.requests, request));
    }

    fn run(&mut self, index: usize) {
        let candidate = &mut self.candidates[index];
        let now = candidate.now(self.time);
        if let Some((_, request, sent)) = &candidate.waits {
            let Some(answer) = candidate.answer.take() else {
                return;
            };
            match request {
                Request::Read => candidate.election.saw(answer, now),
                Request::Write(claim) => candidate.election.claimed(claim, answer, *sent, now),
            }
            candidate.waits = None;
        }
        if candidate.election.must_read(now) && candidate.election.doubtful {
            return self.send(index, Request::Read);
        }
        match candidate.election.claim(now, Self::wall()) {
            Some(claim) => self.send(index, Request::Write(claim)),
            None => self.send(index, Request::Read),
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Pass(millis) => self.time += millis,
            Step::Run(index) => self.run(index),
            Step::Round(index) => {
                // A look, a claim, and what came of it.
                for _ in 0..3 {
                    let request = self.wires.iter().position(|(i, ..)| *i == index);
                    if let Some(request) = request {
                        self.take(&Step::Arrive {
                            request,
                            answered: true,
                        });
                    }
                    self.run(index);
                }
            }
            Step::GiveUp(index) => {
                let candidate = &mut self.candidates[index];
                let now = candidate.now(self.time);
                match candidate.waits.take() {
                    Some((_, Request::Read, _)) => candidate.election.saw(Answer::Failed, now),
                    Some((_, Request::Write(claim), sent)) => {
                        candidate
                            .election
                            .claimed(&claim, Answer::Failed, sent, now);
                    }
                    None => {}
                }
            }
            Step::Arrive { request, answered } => {
                if request < self.wires.len() {
                    let (index, number, request) = self.wires.remove(request);
                    let answer = self.api.answer(&request);
                    let candidate = &mut self.candidates[index];
                    let awaited = matches!(candidate.waits, Some((n, ..)) if n == number);
                    if answered && awaited {
                        candidate.answer = Some(answer);
                    }
                }
            }
            Step::Lose(request) => {
                if request < self.wires.len() {
                    self.wires.remove(request);
                }
            }
            Step::Leave(index) => {
                let election = self.process();
                let candidate = &mut self.candidates[index];
                // Only when nothing that it wrote can be under way any more, which
                // it knows: it has waited for that.
                candidate.renewed = None;
                if let Some(claim) = candidate.election.release(Self::wall()) {
                    self.wires.push((index, 0, Request::Write(claim)));
                }
                let candidate = &mut self.candidates[index];
                candidate.election = election;
                candidate.waits = None;
            }
            Step::Delete => self.api.lease = None,
            Step::Blank => {
                self.api.uids += 1;
                self.api.store(&Record::default());
            }
            Step::Touch => {
                if let Some(stored) = self.api.lease.take() {
                    self.api.store(&stored.record);
                }
            }
        }
    }

    /// Nobody may write while another may, or has something under way.
    fn check(&mut self) -> Result<(), TestCaseError> {
        let time = self.time;
        for index in 0..self.candidates.len() {
            if !self.candidates[index].writes(time) {
                continue;
            }
            for (other, candidate) in self.candidates.iter().enumerate() {
                prop_assert!(
                    other == index || !candidate.lingers(time),
                    "{index} and {other} at {time}"
                );
            }
        }
        Ok(())
    }
}

fn clocks() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((RATES, 0..1_000_000u64), CANDIDATES)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_two_who_may_write(
        clocks in clocks(),
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let mut world = World::new(&clocks);
        for step in &steps {
            world.take(step);
            world.check()?;
        }
    }

    /// With a network that works, somebody leads soon whatever came before.
    #[test]
    fn somebody_leads_in_the_end(
        clocks in clocks(),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut world = World::new(&clocks);
        for step in &steps {
            world.take(step);
        }
        let end = world.time + 60_000;
        while world.time < end {
            for index in 0..CANDIDATES {
                // Asked and answered, twice: a look and a claim.
                for _ in 0..2 {
                    world.run(index);
                    while !world.wires.is_empty() {
                        world.take(&Step::Arrive { request: 0, answered: true });
                    }
                    if world.candidates[index].answer.is_none() {
                        world.take(&Step::GiveUp(index));
                    }
                }
                world.check()?;
            }
            world.time += 2_000;
        }
        let leaders = world.candidates.iter_mut().filter_map(|c| c.writes(world.time).then_some(()));
        prop_assert_eq!(leaders.count(), 1);
    }
}

/// Drives one candidate against the API server as it is.
fn ask(election: &mut Election, api: &mut Api, now: Moment) {
    if election.must_read(now) {
        let answer = api.answer(&Request::Read);
        election.saw(answer, now);
    }
    if let Some(claim) = election.claim(now, World::wall()) {
        let answer = api.answer(&Request::Write(claim.clone()));
        election.claimed(&claim, answer, now, now);
    }
}

fn at(seconds: u64) -> Moment {
    Moment(Duration::from_secs(seconds))
}

fn candidate(name: &str) -> Election {
    Election::new(name.to_owned(), LeaseTiming::default())
}

#[test]
fn a_lease_that_is_given_back_is_taken_at_once_and_counted() {
    let (mut api, mut one, mut two) = (Api::default(), candidate("one"), candidate("two"));
    ask(&mut one, &mut api, at(0));
    assert_eq!(
        one.term(at(0)),
        None,
        "somebody may have held one that was deleted"
    );
    ask(&mut two, &mut api, at(1));
    ask(&mut one, &mut api, at(15));
    assert_eq!(one.term(at(15)).map(|term| term.number), Some(1));
    ask(&mut two, &mut api, at(16));
    assert_eq!((two.term(at(16)), two.holder()), (None, Some("one")));

    let claim = one.release(World::wall()).unwrap();
    assert_eq!(one.term(at(17)), None);
    api.answer(&Request::Write(claim));
    ask(&mut two, &mut api, at(18));
    assert_eq!(two.term(at(18)).map(|term| term.number), Some(1));
    let record = &api.lease.as_ref().unwrap().record;
    assert_eq!((&*record.holder, record.transitions), ("two", 1));
}

#[test]
fn a_term_that_lapsed_is_another_when_it_is_got_back() {
    let (mut api, mut one) = (Api::default(), candidate("one"));
    ask(&mut one, &mut api, at(0));
    ask(&mut one, &mut api, at(15));
    ask(&mut one, &mut api, at(17));
    assert_eq!(one.term(at(26)).map(|term| term.number), Some(1));
    assert_eq!(one.term(at(27)), None, "ten seconds after the last renewal");
    ask(&mut one, &mut api, at(27));
    assert_eq!(one.term(at(27)).map(|term| term.number), Some(2));
    let record = &api.lease.as_ref().unwrap().record;
    assert_eq!(record.transitions, 0, "it never changed hands");
}

#[test]
fn an_answer_that_comes_late_makes_no_leader() {
    let (mut api, mut one) = (Api::default(), candidate("one"));
    ask(&mut one, &mut api, at(0));
    one.saw(api.answer(&Request::Read), at(15));
    let claim = one.claim(at(15), World::wall()).unwrap();
    let answer = api.answer(&Request::Write(claim.clone()));
    one.claimed(&claim, answer, at(15), at(25));
    assert_eq!(one.term(at(25)), None);
}

#[test]
fn the_holders_own_duration_counts() {
    let (mut api, mut two) = (Api::default(), candidate("two"));
    api.store(&Record {
        holder: "one".into(),
        duration: 60,
        ..Record::default()
    });
    ask(&mut two, &mut api, at(0));
    assert_eq!(two.chance(), Some(at(60)));
    ask(&mut two, &mut api, at(59));
    assert_eq!(two.term(at(59)), None);
    ask(&mut two, &mut api, at(60));
    assert!(two.term(at(60)).is_some());
}
