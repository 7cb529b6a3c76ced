//! Ports that nobody else takes.
//!
//! A port that was free when it was looked at is soon somebody else's: programs of tests
//! run side by side, and the system hands out what it finds free. So ports are taken from
//! below those that Linux hands out by itself (32,768 to 60,999 by default, `ip(7)`), and
//! each is this process's for as long as it lives, by a lock on a file that is named
//! after it.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::process;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};

use crate::parts;

const PORTS: Range<u16> = 20_000..32_000;

/// The locks of this process.
static TAKEN: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A loopback port that nobody listens on, and that no other process gets from here while
/// this one lives.
///
/// # Errors
///
/// When the folder of locks cannot be written, or all ports are taken.
pub(crate) fn free_port() -> Result<u16> {
    let folder = parts::cache_folder()?.with_file_name("ports");
    fs::create_dir_all(&folder)?;
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    // Not all begin at the same one.
    let begin = process::id() as usize * 37 + taken.len();
    for number in 0..PORTS.len() {
        let Some(port) = PORTS.clone().nth((begin + number) % PORTS.len()) else {
            continue;
        };
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(folder.join(port.to_string()))?;
        // Of this process too, a lock is held by one of its files only.
        let is_free = || TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        if lock.try_lock().is_ok() && is_free() {
            taken.push(lock);
            return Ok(port);
        }
    }
    bail!(
        "all ports from {} to {} are taken",
        PORTS.start,
        PORTS.end - 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_port_is_given_out_twice() {
        let ports: BTreeSet<u16> = (0..50).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.len(), 50);
        assert!(ports.iter().all(|port| PORTS.contains(port)));
        // As another process would ask.
        let folder = parts::cache_folder().unwrap().with_file_name("ports");
        for port in ports {
            let file = File::open(folder.join(port.to_string())).unwrap();
            assert!(file.try_lock().is_err(), "{port}");
        }
    }
}
