//! The lease of the one replica that writes, on the in-process API server.

use crate::support::{apply, config_map, config_maps, server};
use kube::client::Body;
use reeve_cluster::lease::TokioClock;
use reeve_cluster::transport::TransportError;
use reeve_cluster::{
    AccessCheck, Apply, Cluster, Create, Delete, Elector, ElectorSettings, Event, EventKind, Fence,
    Identity, LeaseName, LeaseTiming, Preconditions, Recorder, Resource, Role, WriteError,
};
use reeve_core::GroupVersionKind;
use reeve_core::waves::Propagation;
use reeve_sim::{Outage, Server};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// One replica: its election, which runs, and a cluster behind its fence.
struct Replica {
    role: watch::Receiver<Role>,
    fence: Fence,
    cluster: Cluster,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

fn settings(identity: &str) -> ElectorSettings {
    ElectorSettings {
        lease: LeaseName {
            namespace: "default".into(),
            name: "reeve".into(),
        },
        identity: identity.into(),
        timing: LeaseTiming::default(),
        clock: Arc::new(TokioClock::new()),
    }
}

impl Replica {
    fn start(server: &Server, identity: &str) -> Self {
        Self::of(server.client(), identity)
    }

    fn of(client: kube::Client, identity: &str) -> Self {
        let elector = Elector::new(Cluster::new(client.clone()), settings(identity));
        let (stop, stopped) = oneshot::channel();
        let (fence, role) = (elector.fence(), elector.role());
        Self {
            cluster: Cluster::new(client).with_fence(fence.clone()),
            fence,
            role,
            stop,
            task: tokio::spawn(elector.run(async {
                let _ = stopped.await;
            })),
        }
    }

    /// Waits until it leads, and says how long that took.
    async fn leads(&mut self) -> Duration {
        let start = Instant::now();
        let leader = |role: &Role| matches!(role, Role::Leader { .. });
        let Role::Leader { term } = *self.role.wait_for(leader).await.unwrap() else {
            unreachable!()
        };
        self.fence.arm(term).unwrap();
        start.elapsed()
    }

    fn follows(&self) -> Option<String> {
        match &*self.role.borrow() {
            Role::Follower { leader } => leader.clone(),
            role => panic!("it is {role}"),
        }
    }

    fn is_fenced(&self) -> bool {
        self.fence.check().is_err()
    }
}

fn leases() -> Resource {
    Resource {
        kind: GroupVersionKind::new("coordination.k8s.io", "v1", "Lease"),
        plural: "leases".into(),
        namespaced: true,
    }
}

async fn lease(server: &Server) -> Value {
    let cluster = Cluster::new(server.client());
    let lease = cluster.get(&leases(), Some("default"), "reeve").await;
    lease.unwrap().unwrap().value()["spec"].clone()
}

const LEASE: Duration = Duration::from_secs(15);
/// A look at the lease, with its jitter.
const LOOK: Duration = Duration::from_millis(2_500);

#[tokio::test(start_paused = true)]
async fn one_leads_and_the_other_takes_over() {
    let server = server();
    let mut one = Replica::start(&server, "one");
    // Nobody knows who held a Lease that is not there.
    let took = one.leads().await;
    assert!((LEASE..LEASE + LOOK).contains(&took), "{took:?}");
    let mut two = Replica::start(&server, "two");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(two.follows().as_deref(), Some("one"));
    assert!(two.is_fenced() && !one.is_fenced());
    let spec = lease(&server).await;
    assert_eq!(spec["leaseDurationSeconds"], 15);
    assert_eq!(spec["leaseTransitions"], 0);

    // One that is killed keeps the lease for its time.
    one.task.abort();
    let took = two.leads().await;
    assert!((LEASE - LOOK..LEASE + LOOK).contains(&took), "{took:?}");
    assert!(one.is_fenced());
    let spec = lease(&server).await;
    assert_eq!(
        (&spec["holderIdentity"], &spec["leaseTransitions"]),
        (&json!("two"), &json!(1))
    );

    // One that leaves hands it over.
    let mut three = Replica::start(&server, "three");
    sleep(Duration::from_secs(5)).await;
    two.stop.send(()).unwrap();
    two.task.await.unwrap();
    assert_eq!(lease(&server).await["holderIdentity"], "");
    let took = three.leads().await;
    assert!(took < LOOK, "{took:?}");
    assert_eq!(lease(&server).await["leaseTransitions"], 2);
}

#[tokio::test(start_paused = true)]
async fn who_cannot_renew_does_not_lead() {
    let server = server();
    let mut one = Replica::start(&server, "one");
    one.leads().await;
    for outage in [Outage::Refused, Outage::Unavailable] {
        sleep(Duration::from_secs(60)).await;
        server.faults().set_outage(outage);
        sleep(Duration::from_millis(7_900)).await;
        assert!(!one.is_fenced(), "an attempt may fail");
        sleep(Duration::from_millis(2_200)).await;
        assert!(one.is_fenced());
        assert!(matches!(*one.role.borrow(), Role::Follower { .. }));
        server.faults().set_outage(Outage::None);
        // Nobody else has taken it meanwhile: the next term is another, though.
        one.leads().await;
    }
    assert_eq!(*one.role.borrow(), Role::Leader { term: 3 });
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_deleted_makes_no_second_leader() {
    let server = server();
    let mut one = Replica::start(&server, "one");
    one.leads().await;
    let mut two = Replica::start(&server, "two");
    sleep(Duration::from_secs(5)).await;
    let admin = Cluster::new(server.client());
    let leases = leases();
    let delete = Delete {
        resource: &leases,
        namespace: Some("default"),
        name: "reeve",
        uid: None,
        resource_version: None,
        propagation: Propagation::Background,
        dry_run: false,
        identity: None,
    };
    admin.delete(delete).await.unwrap();
    let start = Instant::now();
    tokio::select! {
        _ = one.leads() => {}
        _ = two.leads() => {}
    }
    let led = [one.is_fenced(), two.is_fenced()];
    assert_eq!(led.iter().filter(|fenced| !**fenced).count(), 1);
    assert!(
        start.elapsed() >= LEASE || !one.is_fenced(),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_follower_sends_no_write_whichever_it_is() {
    let server = server();
    let maps = config_maps();
    let cluster = Cluster::new(server.client());
    apply(&cluster, &config_map("one", "web", "1")).await;
    let follower = Replica::start(&server, "one");
    // It has yet to wait for the lease that it has made.
    sleep(Duration::from_secs(5)).await;
    server.reset_requests();
    let cluster = &follower.cluster;
    let body = config_map("one", "web", "2");
    let request = Apply {
        resource: &maps,
        namespace: Some("default"),
        name: "one",
        body: (&body).into(),
        onto: Preconditions::default(),
        manager: "reeve/one",
        force: true,
        strict: true,
        dry_run: false,
        identity: None,
    };
    let delete = Delete {
        resource: &maps,
        namespace: Some("default"),
        name: "one",
        uid: None,
        resource_version: None,
        propagation: Propagation::Background,
        dry_run: false,
        identity: None,
    };
    let create = Create {
        resource: &maps,
        namespace: Some("default"),
        name: "one",
        body: &body,
        manager: "reeve",
        identity: None,
    };
    let reference = maps.reference(Some("default"), "one");
    let event = Event {
        involved: &reference,
        uid: "u",
        kind: EventKind::Normal,
        reason: "Reason",
        action: "Action",
        message: "message",
        at: UNIX_EPOCH,
    };
    let recorder = Recorder::new(cluster.clone(), "test");
    for (what, refused) in [
        ("apply", cluster.apply(request).await.map(drop)),
        ("status", cluster.apply_status(request).await.map(drop)),
        ("delete", cluster.delete(delete).await.map(drop)),
        ("create", cluster.create(create).await.map(drop)),
        ("event", recorder.record(&event).await.map(drop)),
    ] {
        let error = refused.unwrap_err();
        assert!(
            matches!(error, WriteError::NotLeader { .. }),
            "{what}: {error}"
        );
        assert!(error.is_not_leader());
        assert!(
            error
                .to_string()
                .ends_with("this replica is not the leader"),
            "{error}"
        );
    }
    assert_eq!(server.requests().writes(), 0);

    // What changes nothing is everybody's.
    let dry_run = true;
    cluster.apply(Apply { dry_run, ..request }).await.unwrap();
    cluster.delete(Delete { dry_run, ..delete }).await.unwrap();
    cluster.get(&maps, Some("default"), "one").await.unwrap();
    let check = AccessCheck {
        verb: "get",
        resource: &maps,
        subresource: None,
        namespace: None,
        name: None,
    };
    let account = Identity::service_account("default", "nobody");
    assert!(!cluster.allowed(&account, check).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_write_without_an_answer_is_given_up_with_the_lease() {
    let server = server();
    let mut one = Replica::start(&server, "one");
    one.leads().await;
    // Takes requests, and answers none.
    let silent = tower::service_fn(|_: http::Request<Body>| {
        std::future::pending::<Result<http::Response<Body>, std::io::Error>>()
    });
    let cluster = Cluster::new(kube::Client::new(silent, "default")).with_fence(one.fence.clone());
    let maps = config_maps();
    let body = config_map("one", "web", "2");
    let request = || Apply {
        resource: &maps,
        namespace: Some("default"),
        name: "one",
        body: (&body).into(),
        onto: Preconditions::default(),
        manager: "reeve/one",
        force: true,
        strict: true,
        dry_run: false,
        identity: None,
    };
    // A lease that is renewed lets it wait for its own time.
    let error = cluster.apply(request()).await.unwrap_err();
    assert!(!error.is_not_leader(), "{error}");

    let start = Instant::now();
    one.task.abort();
    let error = cluster.apply(request()).await.unwrap_err();
    let took = start.elapsed();
    let end = LeaseTiming::default().hold();
    assert!((end - LOOK..end).contains(&took), "{took:?}");
    assert!(error.is_not_leader());
    let WriteError::Unreachable { source, .. } = &error else {
        panic!("{error}");
    };
    assert!(matches!(source, TransportError::Abandoned), "{source}");
}

/// The lease is not given back over a write whose end is not known.
#[tokio::test(start_paused = true)]
async fn a_lease_with_a_write_under_way_runs_out() {
    let server = server();
    let mut one = Replica::start(&server, "one");
    one.leads().await;
    let silent = tower::service_fn(|_: http::Request<Body>| {
        std::future::pending::<Result<http::Response<Body>, std::io::Error>>()
    });
    let cluster = Cluster::new(kube::Client::new(silent, "default")).with_fence(one.fence.clone());
    let write = tokio::spawn(async move {
        let body = config_map("one", "web", "2");
        apply(&cluster, &body).await
    });
    sleep(Duration::from_millis(1)).await;
    one.stop.send(()).unwrap();
    one.task.await.unwrap();
    assert_eq!(lease(&server).await["holderIdentity"], "one");
    assert!(one.fence.check().is_err());
    write.abort();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_may_not_be_had_is_not_had() {
    let server = server();
    let client = server.client_as("nobody", ["system:authenticated"]);
    let replica = Replica::of(client, "one");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(replica.follows(), None);
    assert!(replica.is_fenced());
    // Nor does leaving take long.
    let start = Instant::now();
    replica.stop.send(()).unwrap();
    replica.task.await.unwrap();
    assert!(start.elapsed() < LOOK, "{:?}", start.elapsed());
}
