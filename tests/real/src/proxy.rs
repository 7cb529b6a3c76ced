//! A network between a client and the API server that can go wrong.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Result;

/// Passes connections on to a port of this machine. It understands nothing of what is
/// said on them: TLS is between the two ends.
///
/// Its threads end with the connections, and with the test's process.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Whether connections are taken at all.
    closed: AtomicBool,
    connections: Mutex<Vec<Arc<Connection>>>,
}

/// Both halves of a connection.
#[derive(Debug)]
struct Connection {
    client: TcpStream,
    server: TcpStream,
    /// Whether what the server says is lost from here on.
    silent: AtomicBool,
}

impl Proxy {
    /// A proxy on a port of its own.
    ///
    /// # Errors
    ///
    /// When no port can be had.
    pub fn start(to: u16) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::<Shared>::default();
        let state = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // One that cannot be passed on is closed, as by a server that is away.
                if !state.closed.load(Ordering::SeqCst) {
                    let _ = state.pass_on(client, to);
                }
            }
        });
        Ok(Self { port, shared })
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Loses everything that the server says from here on, on the connections that are
    /// open: they stay so, and the client hears no more, as when a device on the way has
    /// forgotten them. New connections work.
    pub fn silence(&self) {
        for connection in self.connections() {
            connection.silent.store(true, Ordering::SeqCst);
        }
    }

    /// Breaks the connections that are open.
    pub fn reset(&self) {
        for connection in self.connections() {
            connection.close();
        }
    }

    /// Takes no connections, and breaks those that are open, until [`Self::open`].
    pub fn close(&self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.reset();
    }

    /// Takes connections again.
    pub fn open(&self) {
        self.shared.closed.store(false, Ordering::SeqCst);
    }

    fn connections(&self) -> Vec<Arc<Connection>> {
        self.shared.list().clone()
    }
}

impl Shared {
    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Connection>>> {
        let list = self.connections.lock();
        list.unwrap_or_else(PoisonError::into_inner)
    }

    fn pass_on(self: &Arc<Self>, client: TcpStream, to: u16) -> io::Result<()> {
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, to))?;
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
        }
        let connection = Arc::new(Connection {
            client,
            server,
            silent: AtomicBool::new(false),
        });
        self.list().push(connection.clone());
        // It may have been closed since it was asked.
        if self.closed.load(Ordering::SeqCst) {
            connection.close();
        }
        for asks in [true, false] {
            let (shared, connection) = (self.clone(), connection.clone());
            thread::spawn(move || {
                // However it ends, it has ended for both.
                let _ = connection.copy(asks);
                connection.close();
                shared.list().retain(|one| !Arc::ptr_eq(one, &connection));
            });
        }
        Ok(())
    }
}

impl Connection {
    /// Passes on what one side says, until it has no more to say.
    fn copy(&self, asks: bool) -> io::Result<()> {
        let (mut from, mut to) = match asks {
            true => (&self.client, &self.server),
            false => (&self.server, &self.client),
        };
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let read = from.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            let lost = !asks && self.silent.load(Ordering::SeqCst);
            if !lost {
                to.write_all(&buffer[..read])?;
            }
        }
    }

    fn close(&self) {
        // It may be closed already.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::time::Duration;

    /// Somebody who repeats what is said to it.
    fn echo() -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                thread::spawn(move || {
                    let mut buffer = [0; 64];
                    while let Ok(read @ 1..) = client.read(&mut buffer) {
                        client.write_all(&buffer[..read]).unwrap();
                    }
                });
            }
        });
        port
    }

    /// What comes back of a word: it, silence, or the end of the connection.
    fn said(mut stream: &TcpStream) -> &'static str {
        stream
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        if stream.write_all(b"word").is_err() {
            return "closed";
        }
        let mut buffer = [0; 64];
        match stream.read(&mut buffer) {
            Ok(4) => "word",
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                "silence"
            }
            _ => "closed",
        }
    }

    #[test]
    fn connections_fall_silent_break_and_are_refused() {
        let proxy = Proxy::start(echo()).unwrap();
        let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
        let first = connect();
        assert_eq!(said(&first), "word");
        proxy.silence();
        assert_eq!(said(&first), "silence");
        let second = connect();
        assert_eq!((said(&second), said(&first)), ("word", "silence"));
        proxy.reset();
        assert_eq!((said(&second), said(&first)), ("closed", "closed"));
        let third = connect();
        assert_eq!(said(&third), "word");
        proxy.close();
        assert_eq!((said(&third), said(&connect())), ("closed", "closed"));
        proxy.open();
        assert_eq!(said(&connect()), "word");
    }
}
