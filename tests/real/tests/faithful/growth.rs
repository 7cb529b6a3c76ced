//! Whether bad input leaves anything behind: what the embedded server refuses is sent
//! to it again and again.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use hyper::Request;
use kube::client::Body;
use reeve_sim::{Config, Server};

use crate::corpus;
use crate::exchange::{Endpoint, LONG_PATH, Message};
use crate::play::{Outcome, Player};
use crate::suite::folder;

/// How often each request is sent when nothing else is asked for, which
/// `REEVE_GROWTH_ROUNDS` does; and those with long bodies, which take long.
const ROUNDS: usize = 40;
const LONG_ROUNDS: usize = 1;
const LONG: usize = 16 * 1024;
/// After so many rounds most has grown to its size.
const WARM: usize = 10;
/// In so many parts memory is looked at in all others. What is made once, by time or by
/// the allocator, grows in one of them; what is left behind grows in each.
const PARTS: usize = 3;
/// By how much memory may grow in the part in which it grows least, in bytes: less than
/// the smallest object for each request that is refused.
const GROWTH: usize = 1024 * 1024;
/// What takes so long is waited for, by the server, and is sent as rarely.
const SLOW: Duration = Duration::from_millis(200);
/// The files with requests that are mostly refused.
const FILES: [&str; 7] = [
    "bad-input/",
    "hostile-input/",
    "limits/",
    "lists/",
    "old-versions/",
    "patches/",
    "wrong-input/",
];
/// How many of them there are at least; and some in each file.
const REFUSED: usize = 40;
/// Tells this program to measure itself, with nothing else in it.
const ALONE: &str = "REEVE_GROWTH_ALONE";

/// The memory of this process, in bytes.
fn resident() -> Result<usize> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: usize = kilobytes.context("no size of this process")?.parse()?;
    Ok(kilobytes * 1024)
}

/// Somebody with all rights, in the process of the server.
struct Inside(kube::Client);

impl Inside {
    /// The status and the body of an answer.
    async fn send(&self, message: &Message) -> Result<(u16, Vec<u8>)> {
        let mut request = Request::builder()
            .method(message.method.as_str())
            .uri(&message.path);
        for (name, value) in &message.headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(message.body.to_vec()))?;
        let answer = self.0.send(request).await?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await?;
        Ok((status, body.to_vec()))
    }

    /// Sends all of them so often; each has to be refused.
    async fn again(&self, messages: &[&Message], rounds: usize) -> Result<()> {
        for _ in 0..rounds {
            for message in messages {
                let (status, _) = self.send(message).await?;
                ensure!(
                    status >= 400,
                    "{} {} is taken now",
                    message.method,
                    message.path
                );
            }
        }
        Ok(())
    }

    /// All objects with their versions, as they would be saved.
    async fn state(&self) -> Result<Vec<u8>> {
        let message = Message {
            method: "GET".to_owned(),
            path: "/debug/snapshot".to_owned(),
            ..Message::default()
        };
        let (status, body) = self.send(&message).await?;
        ensure!(status == 200, "no snapshot: {status}");
        Ok(body)
    }
}

/// What of the corpus is refused, over a socket and inside; the rest is done.
async fn refused(server: &Server, inside: &Inside) -> Result<Vec<Message>> {
    let serving = server
        .serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        .await?;
    let certificate = serving.certificate().as_bytes();
    let endpoint = Endpoint::new(serving.address(), certificate, serving.token())?;
    let scenarios = corpus::read(&folder().join("corpus"))?;
    let mut refused: Vec<(&str, Message)> = Vec::new();
    for (index, scenario) in scenarios.iter().enumerate() {
        let mut files = FILES.into_iter();
        let Some(file) = files.find(|file| scenario.name.starts_with(file)) else {
            continue;
        };
        let namespace = format!("grow{index}x");
        let mut player = Player::new(&endpoint, &namespace).await?;
        for step in &scenario.steps {
            // Some steps only look at what comes.
            let message = step.target().map(|_| player.message(step)).transpose()?;
            let outcome = player.step(step).await?;
            if let (Some(message), Outcome::Answer(answer)) = (message, outcome)
                && answer.status >= 400
                // What libraries cannot send is refused before the server's own code.
                && message.path.len() <= LONG_PATH
                && step.until.is_none()
            {
                refused.push((file, message));
            }
        }
    }
    // What is about credentials is none here, and what was refused for the sake of
    // something that is gone is taken now, and may be what others are refused for.
    loop {
        let before = refused.len();
        let mut still = Vec::with_capacity(before);
        for (file, message) in refused {
            if inside.send(&message).await?.0 >= 400 {
                still.push((file, message));
            }
        }
        refused = still;
        if refused.len() == before {
            break;
        }
    }
    for file in FILES {
        let count = refused.iter().filter(|(of, _)| *of == file).count();
        println!("{file}: {count} refused requests");
        ensure!(count > 0, "{file}: nothing is refused");
    }
    ensure!(
        refused.len() >= REFUSED,
        "{} requests are refused",
        refused.len()
    );
    Ok(refused.into_iter().map(|(_, message)| message).collect())
}

/// Those that are short and refused at once, and the rest.
async fn parted<'a>(
    inside: &Inside,
    messages: &'a [Message],
) -> Result<(Vec<&'a Message>, Vec<&'a Message>)> {
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for message in messages {
        let started = Instant::now();
        inside.send(message).await?;
        let is_long = message.body.len() > LONG || message.path.len() > LONG;
        if is_long || started.elapsed() > SLOW {
            long.push(message);
        } else {
            short.push(message);
        }
    }
    Ok((short, long))
}

async fn measured() -> Result<()> {
    let rounds: usize = match env::var("REEVE_GROWTH_ROUNDS") {
        Ok(text) => text.parse()?,
        Err(_) => ROUNDS,
    };
    ensure!(rounds >= WARM + PARTS, "{rounds} rounds are too few");
    let server = Server::new(Config::default());
    let inside = Inside(server.client());
    let refused = refused(&server, &inside).await?;
    let (short, long) = parted(&inside, &refused).await?;
    let long_path = |message: &&&Message| message.path.len() > LONG;
    println!(
        "{} short and {} long requests are refused, {} of those for long paths",
        short.len(),
        long.len(),
        long.iter().filter(long_path).count()
    );
    ensure!(long.iter().any(|m| m.path.len() > LONG) && long.iter().any(|m| m.body.len() > LONG));
    inside.again(&long, LONG_ROUNDS).await?;
    inside.again(&short, WARM).await?;
    let before = inside.state().await?;
    let part = (rounds - WARM) / PARTS;
    let mut grown = usize::MAX;
    for _ in 0..PARTS {
        let size = resident()?;
        inside.again(&short, part).await?;
        grown = grown.min(resident()?.saturating_sub(size));
    }
    ensure!(
        inside.state().await? == before,
        "objects or versions changed"
    );
    let sent = short.len() * part;
    println!("{sent} refused requests: {grown} bytes more");
    ensure!(
        grown <= GROWTH,
        "after {sent} refused requests the process has {grown} bytes more"
    );
    Ok(())
}

#[test]
fn what_is_refused_leaves_nothing_behind() -> Result<()> {
    if env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        return runtime.block_on(measured());
    }
    // The other tests of this program would be measured, too.
    let output = Command::new(env::current_exe()?)
        .args(["growth::what_is_refused_leaves_nothing_behind", "--exact"])
        .arg("--nocapture")
        .env(ALONE, "1")
        .output()?;
    let (told, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    println!("{told}");
    ensure!(output.status.success(), "{told}{errors}");
    ensure!(told.contains("refused requests: "), "nothing was measured");
    Ok(())
}
