//! A name server of one process, whose answers can change.
//!
//! A system has one list of name servers, `/etc/resolv.conf` (`resolv.conf(5)`), and they
//! are asked on port 53. So the process has that file to itself, and the server an address
//! of its own in the loopback network, where that port is free.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use reeve_test_support::skipped;
use tempfile::TempDir;

use crate::pod::UNSHARE;

/// Puts the file $0 where name servers are listed, and becomes its arguments.
const ENTER: &str = r#"
set -e
mount --bind "$0" /etc/resolv.conf
exec "$@"
"#;

/// How long the server waits for a question before it looks whether it is to end.
const TURN: Duration = Duration::from_millis(100);

/// A name server that knows one name. It ends when this is dropped.
#[derive(Debug)]
pub struct Names {
    answers: Arc<Mutex<Vec<Ipv4Addr>>>,
    ends: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
    folder: TempDir,
}

impl Names {
    /// Serves a name, which has no addresses yet. None, loudly, where this system does not
    /// let a program have name servers of its own.
    pub fn serve(name: &'static str) -> Option<Self> {
        let why = match Self::try_serve(name) {
            Ok(names) => return Some(names),
            Err(error) => format!("{error:#}"),
        };
        skipped(&format!("names do not change their addresses: {why}"));
        None
    }

    fn try_serve(name: &'static str) -> Result<Self> {
        let socket = free_socket()?;
        let SocketAddr::V4(address) = socket.local_addr()? else {
            bail!("the server has no address");
        };
        let folder = tempfile::tempdir()?;
        let list = format!(
            "nameserver {}\noptions timeout:2 attempts:2\n",
            address.ip()
        );
        fs::write(folder.path().join(LIST), &list)?;
        let answers = Arc::new(Mutex::new(Vec::new()));
        let ends = Arc::new(AtomicBool::new(false));
        let names = Self {
            answers: answers.clone(),
            ends: ends.clone(),
            server: Some(thread::spawn(move || {
                serve(&socket, name, &answers, &ends);
            })),
            folder,
        };
        let mut command = Command::new("env");
        command
            .args(names.before())
            .args(["cat", "/etc/resolv.conf"]);
        let tried = command.output().context("unshare")?;
        let shown = String::from_utf8_lossy(&tried.stdout);
        let said = String::from_utf8_lossy(&tried.stderr);
        ensure!(shown == list, "no mounts of its own: {said}{shown}");
        Ok(names)
    }

    /// The addresses that the name has from now on; with none, there is no such name.
    pub fn set(&self, addresses: &[Ipv4Addr]) {
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner) = addresses.to_vec();
    }

    /// What `env` is given before a program, so that it asks this server.
    pub(crate) fn before(&self) -> Vec<String> {
        let list = self.folder.path().join(LIST);
        let mut before = UNSHARE.map(str::to_owned).to_vec();
        before.extend(["sh", "-c", ENTER].map(str::to_owned));
        before.push(list.display().to_string());
        before
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

const LIST: &str = "resolv.conf";

fn free_socket() -> Result<UdpSocket> {
    let mut last = None;
    for number in 1..=254 {
        match UdpSocket::bind((Ipv4Addr::new(127, 53, 53, number), 53)) {
            Ok(socket) => {
                socket.set_read_timeout(Some(TURN))?;
                return Ok(socket);
            }
            Err(error) => last = Some(error),
        }
    }
    let last = last.map(|error| error.to_string()).unwrap_or_default();
    bail!("port 53 cannot be had: {last}")
}

fn serve(socket: &UdpSocket, name: &str, answers: &Mutex<Vec<Ipv4Addr>>, ends: &AtomicBool) {
    let mut message = [0; 512];
    while !ends.load(Ordering::Relaxed) {
        let Ok((length, whom)) = socket.recv_from(&mut message) else {
            continue;
        };
        let answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = answer(&message[..length], name, &answers) {
            let _ = socket.send_to(&answer, whom);
        }
    }
}

/// The answer to a question (RFC 1035, section 4), to be kept for no time.
fn answer(question: &[u8], name: &str, addresses: &[Ipv4Addr]) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    const ADDRESS: [u8; 2] = [0, 1];
    let labels = name.split('.').flat_map(|label| {
        let length = u8::try_from(label.len()).unwrap_or_default();
        [&[length][..], label.as_bytes()].concat()
    });
    let labels: Vec<u8> = labels.chain([0]).collect();
    let asked = question.get(HEADER..)?;
    let end = asked.iter().position(|byte| *byte == 0)? + 1;
    let kind = asked.get(end..end + 2)?;
    let known = asked[..end].eq_ignore_ascii_case(&labels) && !addresses.is_empty();
    let addresses = match known && kind == ADDRESS {
        true => addresses,
        false => &[],
    };
    let mut answer = question.get(..2)?.to_vec();
    // A response that recursion was wanted for and is available to; 3 is "no such name".
    answer.extend([0x81, if known { 0x80 } else { 0x83 }]);
    answer.extend([0, 1, 0, u8::try_from(addresses.len()).ok()?, 0, 0, 0, 0]);
    answer.extend(asked.get(..end + 4)?);
    for address in addresses {
        // The name of the question, an address of the Internet, for no time, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(address.octets());
    }
    Some(answer)
}
