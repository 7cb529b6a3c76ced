//! PostgreSQL, as the system has it.

use std::env;
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::parts::HELPERS;
use crate::ports::free_port;
use crate::server::{Server, listens};

/// A second or two; tests run beside builds.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// Names the folder with `initdb`, `postgres` and `psql`, where they are found nowhere
/// else.
const VARIABLE: &str = "REEVE_POSTGRES";

/// Where Debian and its descendants keep each version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// A running PostgreSQL that is reached over TLS only, on a loopback port, as
/// `localhost`. It logs every statement.
#[derive(Debug)]
pub struct Postgres {
    // Ends before its data goes.
    server: Option<Server>,
    programs: PathBuf,
    /// What `env` is given to become the server.
    arguments: Vec<String>,
    port: u16,
    password: String,
    folder: TempDir,
}

/// A session that is held open.
#[derive(Debug)]
pub struct HeldSession {
    // It ends when its input does.
    input: Option<ChildStdin>,
    process: Child,
}

impl Postgres {
    /// The superuser.
    pub const ADMIN: &str = "admin";

    /// Whether the system has it.
    pub fn is_installed() -> bool {
        programs().is_ok()
    }

    /// Starts one with a certificate for `localhost` and its key, both PEM, and a
    /// password for [`Postgres::ADMIN`].
    ///
    /// # Errors
    ///
    /// When it is not installed, or does not become ready; the message has the end of
    /// its log.
    pub fn start(certificate: &str, key: &str, password: &str) -> Result<Self> {
        let programs = programs()?;
        let folder = tempfile::Builder::new()
            .prefix("reeve-postgres-")
            .tempdir()?;
        let path = folder.path();
        let data = path.join("data");
        fs::create_dir(&data)?;
        fs::write(path.join("password"), password)?;
        fs::write(path.join(CERTIFICATE), certificate)?;
        fs::write(path.join(KEY), key)?;
        fs::set_permissions(path.join(KEY), Permissions::from_mode(0o600))?;
        let account = Account::of_this_process()?;
        account.give(path)?;
        let mut init = account.command(&programs.join("initdb"));
        init.arg("--pgdata")
            .arg(&data)
            .args(["--username", Self::ADMIN, "--auth=scram-sha-256"])
            .arg(format!("--pwfile={}", path.join("password").display()))
            .args(["--no-sync", "--no-locale", "--encoding=UTF8"])
            .current_dir(path);
        finish(init, "").context("initdb")?;
        // Nobody comes without TLS.
        fs::write(
            data.join("pg_hba.conf"),
            "hostssl all all 127.0.0.1/32 scram-sha-256\n",
        )?;
        let port = free_port()?;
        let mut arguments = account.arguments(&programs.join("postgres"));
        arguments.extend(["-D".to_owned(), data.display().to_string()]);
        for (name, value) in [
            ("listen_addresses", "127.0.0.1".to_owned()),
            ("port", port.to_string()),
            ("unix_socket_directories", String::new()),
            ("ssl", "on".to_owned()),
            (
                "ssl_cert_file",
                path.join(CERTIFICATE).display().to_string(),
            ),
            ("ssl_key_file", path.join(KEY).display().to_string()),
            ("fsync", "off".to_owned()),
            ("log_statement", "all".to_owned()),
        ] {
            arguments.extend(["-c".to_owned(), format!("{name}={value}")]);
        }
        let mut postgres = Self {
            server: None,
            programs,
            arguments,
            port,
            password: password.to_owned(),
            folder,
        };
        postgres.resume()?;
        Ok(postgres)
    }

    /// Starts it again after [`Postgres::stop`], on its port and with its data.
    ///
    /// # Errors
    ///
    /// As [`Postgres::start`].
    pub fn resume(&mut self) -> Result<()> {
        let supervise = HELPERS.get()?.join("supervise");
        let (env, folder, port) = (Path::new("env"), self.folder.path(), self.port);
        let server = Server::start("postgres", &supervise, env, &self.arguments, folder)?;
        let server = self.server.insert(server);
        server.wait_until(READY_TIMEOUT, || listens(port))?;
        // It listens before it lets anybody in.
        let begun = Instant::now();
        while let Err(error) = self.admin("SELECT 1") {
            if begun.elapsed() > READY_TIMEOUT {
                return Err(error.context("it lets nobody in"));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Ends it; its data stays. Sessions that are open for longer than it is given to end
    /// make that a crash.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs a script as the superuser, and returns what it selects: a line for each
    /// row, columns separated by `|`.
    ///
    /// # Errors
    ///
    /// When a statement fails; the message has the server's own.
    pub fn admin(&self, script: &str) -> Result<String> {
        self.as_user(Self::ADMIN, &self.password, "postgres", script)
    }

    /// As [`Postgres::admin`], as another user in a database. The server's name is
    /// verified.
    ///
    /// # Errors
    ///
    /// When the user may not log in, or a statement fails.
    pub fn as_user(
        &self,
        user: &str,
        password: &str,
        database: &str,
        script: &str,
    ) -> Result<String> {
        let psql = self.psql(user, password, database);
        finish(psql, script)
    }

    /// Opens a session as the superuser, runs statements in it, and leaves it open, with
    /// the locks that they took.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub fn hold(&self, statements: &str) -> Result<HeldSession> {
        let mut psql = self.psql(Self::ADMIN, &self.password, "postgres");
        let mut process = psql
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start psql")?;
        let mut input = process.stdin.take().context("no input")?;
        input.write_all(statements.as_bytes())?;
        input.write_all(b"\n\\echo held\n")?;
        input.flush()?;
        let output = process.stdout.take().context("no output")?;
        let mut said = String::new();
        BufReader::new(output).read_line(&mut said)?;
        ensure!(said.trim() == "held", "psql said {said:?}");
        Ok(HeldSession {
            input: Some(input),
            process,
        })
    }

    fn psql(&self, user: &str, password: &str, database: &str) -> Command {
        let roots = self.folder.path().join(CERTIFICATE);
        let mut psql = Command::new(self.programs.join("psql"));
        psql.arg(format!(
            "host=localhost port={} user={user} dbname={database} sslmode=verify-full \
             sslrootcert={}",
            self.port,
            roots.display()
        ))
        .args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet"])
        .arg("--set=ON_ERROR_STOP=1")
        .env("PGPASSWORD", password)
        .env("PGCONNECT_TIMEOUT", "10");
        psql
    }

    /// All that it has logged: every statement, and who came.
    ///
    /// # Errors
    ///
    /// When it does not run, or its log cannot be read.
    pub fn log(&self) -> Result<String> {
        self.server.as_ref().context("it does not run")?.log()
    }
}

impl Drop for HeldSession {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}

const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";

/// As whom the server runs: it refuses to be root.
struct Account {
    name: Option<&'static str>,
}

impl Account {
    /// This process's own, or the one that the package has made if that is root.
    fn of_this_process() -> Result<Self> {
        let id = finish(command("id", &["-u"]), "")?;
        Ok(Self {
            name: (id.trim() == "0").then_some("postgres"),
        })
    }

    /// Lets the account have a folder and what is in it.
    fn give(&self, folder: &Path) -> Result<()> {
        let Some(name) = self.name else {
            return Ok(());
        };
        let mut chown = command("chown", &["-R", name]);
        chown.arg(folder);
        finish(chown, "")
            .map(drop)
            .with_context(|| format!("postgres does not run as root, and needs an account {name}"))
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("env");
        command.args(self.arguments(program));
        command
    }

    /// What `env` is given to become the program.
    fn arguments(&self, program: &Path) -> Vec<String> {
        let program = program.display().to_string();
        match self.name {
            None => vec![program],
            Some(name) => vec![
                "setpriv".to_owned(),
                format!("--reuid={name}"),
                format!("--regid={name}"),
                "--clear-groups".to_owned(),
                program,
            ],
        }
    }
}

/// The folder with the programs.
fn programs() -> Result<PathBuf> {
    let has_all = |folder: &PathBuf| {
        let all = ["initdb", "postgres", "psql"];
        all.iter().all(|name| folder.join(name).is_file())
    };
    if let Some(folder) = env::var_os(VARIABLE).map(PathBuf::from) {
        ensure!(
            has_all(&folder),
            "{VARIABLE} is {} and should be the folder with initdb, postgres and psql",
            folder.display()
        );
        return Ok(folder);
    }
    let versions = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            Some((number, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    let newest_first = versions.into_iter().rev().map(|(_, folder)| folder);
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders = newest_first.chain(env::split_paths(&path));
    folders.find(has_all).with_context(|| {
        format!(
            "PostgreSQL is not installed; install its server (Debian: `apt-get install \
             postgresql`), or name the folder with initdb, postgres and psql in {VARIABLE}"
        )
    })
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Runs a program with an input to its end, and returns what it printed.
fn finish(mut command: Command, input: &str) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that ends before it has read says why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!(
            "{program}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}
