//! The server: what all requests share, and how it is made.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

use crate::access::Rights;
use crate::actors::{Actors, Stage};
use crate::client::{self, InProcess};
use crate::clock::Clock;
use crate::controllers::Controllers;
use crate::counter::{Counter, Requests};
use crate::definitions::Accepted;
use crate::faults::{Fault, Faults};
use crate::identity::Identity;
use crate::random::Random;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::services::{self, Addresses};
use crate::state::Kept;
use crate::store::{Object, Store};
use crate::tokens::Tokens;
use crate::{bootstrap, definitions};

/// How a server is made. `Config::default()` is a server on the wall clock.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where timestamps come from, and by what watches last, history grows old and actors
    /// wait.
    pub clock: Clock,
    /// Where UIDs, name suffixes and tokens come from: the same seed gives the
    /// same ones. Chance when absent.
    pub seed: Option<u64>,
    /// How many changes of each resource are kept for watches, pages and exact
    /// reads; what is older has expired.
    pub history: usize,
    /// How often history is forgotten, by the clock: each time, pages and exact reads of
    /// what was before the time before have expired, and a watch cannot begin before a
    /// change that is older than this, unless that is one of the last hundred of its
    /// resource. Five minutes, as with the real server's `--etcd-compaction-interval`.
    pub compaction_interval: Duration,
    /// How often a watch that allows bookmarks gets one.
    pub bookmark_interval: Duration,
    /// Who makes workloads run; nobody when absent.
    pub actors: Option<Actors>,
    /// Whether who makes webhooks that are stored here and never asked is warned of that.
    /// The real server asks them, and has no such warning.
    pub warns_of_no_effect: bool,
    /// Whether webhooks are asked about requests, and those of definitions to convert
    /// objects: those on the loopback, no others. A request then waits for them.
    pub asks_webhooks: bool,
    /// Whether namespaces are kept up as by the controllers of a real cluster: what is
    /// used of their ResourceQuotas is counted, and once the server is served, each has
    /// its certificate in the ConfigMap `kube-root-ca.crt`. Both are written some time
    /// after what they follow.
    pub keeps_up_namespaces: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            clock: Clock::system(),
            seed: None,
            history: 10_000,
            compaction_interval: Duration::from_secs(300),
            bookmark_interval: Duration::from_secs(60),
            actors: None,
            warns_of_no_effect: false,
            asks_webhooks: false,
            keeps_up_namespaces: true,
        }
    }
}

/// A Kubernetes API server in this process. Cheap to clone; the clones are one
/// server, which ends with the last of them and of its clients.
///
/// Making one needs no runtime. Its background controllers (garbage collection,
/// namespace lifecycle, service accounts) start with the first request, on the
/// runtime that the request runs on, and end with the server.
#[derive(Debug, Clone)]
pub struct Server {
    pub(crate) shared: Arc<Shared>,
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: Arc<Store>,
    pub(crate) registry: Registry,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) rights: Rights,
    pub(crate) addresses: Addresses,
    pub(crate) accepted: Accepted,
    pub(crate) faults: Faults,
    pub(crate) counter: Counter,
    pub(crate) controllers: Controllers,
    pub(crate) actors: Stage,
    pub(crate) bookmark_interval: Duration,
    compaction_interval: Duration,
    pub(crate) warns_of_no_effect: bool,
    pub(crate) asks_webhooks: bool,
    pub(crate) keeps_up_namespaces: bool,
    /// The certificate of the server, once it is served.
    pub(crate) certificate: Mutex<Option<Arc<str>>>,
    /// Held by who counts or charges what ResourceQuotas bound.
    pub(crate) counting: Mutex<()>,
    /// What outlives the process, where anything does.
    pub(crate) kept: OnceLock<Kept>,
}

impl Server {
    /// A server with the namespaces, roles and service accounts that every
    /// cluster starts with. Everything in it is gone with the process;
    /// [`Server::open`] makes one that is not.
    pub fn new(config: Config) -> Self {
        let server = Server::with_store(Store::new(config.history), config);
        bootstrap::fill(&server.shared);
        // Nobody can have seen a version from before there was a server.
        server.shared.store.compact();
        server
    }

    /// A server of what is in `store`.
    pub(crate) fn with_store(store: Store, config: Config) -> Self {
        store.grows_old(config.clock.clone(), config.compaction_interval);
        let shared = Arc::new(Shared {
            store: Arc::new(store),
            registry: Registry::new(config.asks_webhooks),
            clock: config.clock.separate(),
            random: Random::new(config.seed),
            tokens: Arc::default(),
            rights: Rights::default(),
            addresses: Addresses::default(),
            accepted: Accepted::default(),
            faults: Faults::new(Random::new(config.seed)),
            counter: Counter::default(),
            controllers: Controllers::default(),
            actors: Stage::new(config.actors),
            bookmark_interval: config.bookmark_interval,
            compaction_interval: config.compaction_interval,
            warns_of_no_effect: config.warns_of_no_effect,
            asks_webhooks: config.asks_webhooks,
            keeps_up_namespaces: config.keeps_up_namespaces,
            certificate: Mutex::default(),
            counting: Mutex::default(),
            kept: OnceLock::new(),
        });
        Server { shared }
    }

    /// A server with the same objects, which goes its own way from here on another
    /// clock: a template is filled once and used often. It costs a small part of
    /// writing the objects again, since the two share them.
    ///
    /// Uids go on as they do here, requests are counted from zero, and tokens,
    /// failures and the state folder stay behind. What the background controllers still have to do,
    /// those of the fork do too.
    pub fn fork(&self, clock: Clock) -> Self {
        let shared = &self.shared;
        // Before the store: they may then know less than it holds, which they will
        // see, and never more.
        let controllers = shared.controllers.fork();
        let store = shared.store.fork();
        store.grows_old(clock.clone(), shared.compaction_interval);
        Server {
            shared: Arc::new(Shared {
                store: Arc::new(store),
                registry: shared.registry.fork(),
                clock: clock.separate(),
                random: shared.random.fork(),
                tokens: Arc::default(),
                rights: shared.rights.fork(),
                // Read from the store again.
                addresses: Addresses::default(),
                accepted: Accepted::default(),
                faults: Faults::new(shared.random.fork()),
                counter: Counter::default(),
                controllers,
                actors: Stage::new(shared.actors.settings()),
                bookmark_interval: shared.bookmark_interval,
                compaction_interval: shared.compaction_interval,
                warns_of_no_effect: shared.warns_of_no_effect,
                asks_webhooks: shared.asks_webhooks,
                keeps_up_namespaces: shared.keeps_up_namespaces,
                certificate: Mutex::default(),
                counting: Mutex::default(),
                kept: OnceLock::new(),
            }),
        }
    }

    /// A client with all rights, without a socket in between.
    pub fn client(&self) -> kube::Client {
        self.client_of(Identity::admin())
    }

    /// A client of `user` in `groups` (and in `system:authenticated`). A service
    /// account is named `system:serviceaccount:NAMESPACE:NAME` and brings its
    /// groups itself when none are given.
    pub fn client_as<G: Into<String>>(
        &self,
        user: &str,
        groups: impl IntoIterator<Item = G>,
    ) -> kube::Client {
        self.client_of(client::identity(user, groups))
    }

    /// A client of a caller described in full.
    pub fn client_of(&self, identity: Identity) -> kube::Client {
        kube::Client::new(InProcess::new(self.shared.clone(), identity), "default")
    }

    /// A new bearer token, for a client over a socket. It holds for as long as the
    /// server's state does.
    pub fn token(&self, identity: Identity) -> String {
        let shared = &self.shared;
        let token = shared.random.token();
        let now = shared.clock.now();
        // One that cannot be kept is refused when it is brought; why is logged.
        let _ = shared
            .tokens
            .grant(token.clone(), identity, None, Vec::new(), Vec::new(), now);
        token
    }

    /// Lets these actors make workloads run from now on, or nobody. They look at
    /// everything that is there, and begin with the next request.
    pub fn set_actors(&self, actors: Option<Actors>) {
        self.shared.actors.set(actors);
    }

    /// Makes the server's clock jump by so many milliseconds, back where they are
    /// negative, as clocks do that are set right. What waits for a time that has
    /// come by this is done at once.
    pub fn jump_clock(&self, milliseconds: i64) {
        self.shared.jump_clock(milliseconds);
    }

    /// The switches that make the server fail.
    pub fn faults(&self) -> Faults {
        self.shared.faults.clone()
    }

    /// Puts these faults in place of those that are on. A jump of the clock happens
    /// at once.
    pub fn set_faults(&self, faults: Vec<Fault>) {
        self.shared.set_faults(faults);
    }

    /// What was asked of the server so far.
    pub fn requests(&self) -> Requests {
        self.shared.counter.snapshot()
    }

    /// How many requests so far would have changed a stored object, as
    /// [`Requests::writes`] counts them.
    pub fn writes(&self) -> u64 {
        self.shared.counter.writes()
    }

    /// Starts counting requests from zero.
    pub fn reset_requests(&self) {
        self.shared.counter.reset();
    }

    /// Forgets the history of all resources, as etcd's compaction does: watches
    /// that start at an older version, and pages of older lists, get 410.
    pub fn compact(&self) {
        self.shared.store.compact();
    }
}

impl Default for Server {
    fn default() -> Self {
        Server::new(Config::default())
    }
}

impl Shared {
    fn jump_clock(&self, milliseconds: i64) {
        self.clock.jump(milliseconds);
        self.actors.nudge();
    }

    /// Puts these faults in place of those that are on.
    pub(crate) fn set_faults(&self, faults: Vec<Fault>) {
        for by in faults.iter().filter_map(Fault::jump) {
            self.jump_clock(by);
        }
        let lasting = faults.into_iter().filter(|fault| fault.jump().is_none());
        self.faults.set(lasting.collect());
    }

    /// Follows up a write, before its caller is answered: a definition is served
    /// and a role counts from then on.
    pub(crate) fn committed(self: &Arc<Self>, resource: &Resource, object: &Object, removed: bool) {
        self.rights.committed(resource, object, removed);
        services::committed(self, resource, object, removed);
        if definitions::is_definition(resource) {
            definitions::committed(self, object, removed);
        }
    }
}
