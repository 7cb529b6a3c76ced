//! Names that stand for addresses which were not granted, at once or later.

use crate::server::{Server, body, no_keys};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::Request;
use parking_lot::Mutex;
use reeve_outside::{Http, HttpLimits, Networks, Resolver};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

/// A name server that changes its mind: each question takes the next answer, and the
/// last one stays.
struct Fickle(Mutex<Vec<Vec<&'static str>>>);

impl Resolver for Fickle {
    fn resolve(&self, _host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let mut answers = self.0.lock();
        let answer = match answers.len() {
            1 => answers[0].clone(),
            _ => answers.remove(0),
        };
        let found = answer.iter().map(|text| text.parse().unwrap()).collect();
        Box::pin(async move { Ok(found) })
    }
}

async fn ask(server: &Server, networks: &[&str], answers: &[&[&'static str]]) -> Vec<String> {
    let mut rule = server.rule("service.example", "/");
    rule.networks = Networks::new(networks.iter().map(|text| text.parse().unwrap()).collect());
    let answers = answers.iter().map(|answer| answer.to_vec()).collect();
    let resolver = Arc::new(Fickle(Mutex::new(answers)));
    let client = Http::resolving(vec![rule], no_keys(), HttpLimits::default(), resolver);
    let mut found = Vec::new();
    for _ in 0..2 {
        let request = Request::get(server.url("service.example", "/"))
            // So that each request needs a connection of its own.
            .header("connection", "close")
            .body(Bytes::new());
        found.push(match client.send(request.unwrap()).await {
            Ok(response) => response.status().to_string(),
            Err(error) => error.to_string(),
        });
    }
    found
}

#[tokio::test]
async fn addresses_are_looked_at_before_each_connection() {
    let server = Server::https(&["service.example"], async |_, _| {
        let closing = http::Response::builder().header("connection", "close");
        closing.body(body("ok").into_body()).unwrap()
    })
    .await;
    let granted = &["127.0.0.1"][..];
    for (networks, answers, expected) in [
        // Loopback is reached where it is granted.
        (granted, &[&["127.0.0.1"][..]][..], ["200 OK", "200 OK"]),
        // Without a grant it is not.
        (
            &[],
            &[&["127.0.0.1"]],
            ["127.0.0.1, which is a loopback", "a loopback"],
        ),
        (&[], &[&["::ffff:127.0.0.1"]], ["a loopback", "a loopback"]),
        (
            &[],
            &[&["169.254.169.254"]],
            ["a link-local", "a link-local"],
        ),
        // A name that was good before and is not now.
        (
            granted,
            &[&["127.0.0.1"], &["169.254.169.254"]],
            ["200 OK", "169.254.169.254, which is not in the networks"],
        ),
        // Of several addresses only the good ones are tried.
        (
            granted,
            &[&["169.254.169.254", "127.0.0.1"]],
            ["200 OK", "200 OK"],
        ),
    ] {
        let found = ask(&server, networks, answers).await;
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                found.contains(expected),
                "{networks:?} {answers:?}: {found}"
            );
        }
    }
}
