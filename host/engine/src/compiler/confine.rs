//! What a compiler gives up before it reads the first byte of a component.
//!
//! Everything here works for an unprivileged process in a pod of the *restricted*
//! profile: no user namespace, no capability. What the kernel does not have is left
//! out and said; what it has and refuses is an error.

use crate::config::CompileLimits;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::fmt;
use std::io;

/// What confines a compiler, beside the limits on its memory and time, its empty
/// environment and the missing credentials, which hold everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// What Landlock keeps it from.
    pub landlock: Landlock,
    /// Whether seccomp leaves it only the system calls that compiling takes, so
    /// that another one ends it. They contain none that opens, connects, starts
    /// or signals anything, and none that makes memory executable.
    pub system_calls: bool,
}

/// What Landlock keeps a compiler from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Landlock {
    /// The kernel does not have it.
    None,
    /// From all files.
    Files,
    /// From all files and from TCP, as of Linux 6.7; as of 6.12 from signals to
    /// other processes and from their abstract sockets too.
    FilesAndNetwork,
}

impl Confinement {
    /// Whether all of it holds that this version knows.
    pub fn is_whole(&self) -> bool {
        self.landlock == Landlock::FilesAndNetwork && self.system_calls
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let landlock = match self.landlock {
            Landlock::None => "no Landlock",
            Landlock::Files => "Landlock against files",
            Landlock::FilesAndNetwork => "Landlock against files and network",
        };
        let seccomp = if self.system_calls {
            "seccomp"
        } else {
            "no seccomp"
        };
        write!(f, "resource limits, {landlock}, {seccomp}")
    }
}

/// Closes everything that was open when this program started, but for the standard streams:
/// what the agent has inherited, and not opened itself, would be handed on. To be called before
/// anything is opened. Where nobody tells what is open, seccomp lets nothing of it be used.
#[cfg(target_os = "linux")]
pub(super) fn close_inherited() {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let number = |entry: io::Result<std::fs::DirEntry>| -> Option<i32> {
        entry.ok()?.file_name().to_str()?.parse().ok()
    };
    let inherited: Vec<i32> = open.filter_map(number).filter(|fd| *fd > 2).collect();
    for descriptor in inherited {
        // One of them was of the list itself, which is closed already.
        let _ = nix::unistd::close(descriptor);
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn close_inherited() {}

/// Confines this process for the rest of its life.
pub(super) fn confine(limits: &CompileLimits) -> io::Result<Confinement> {
    die_with_parent()?;
    limit_resources(limits)?;
    let landlock = sys::landlock()?;
    // Last, since Landlock needs a file of its own, and seccomp forbids all this.
    set(Resource::Nofile, 0)?;
    let system_calls = sys::seccomp()?;
    Ok(Confinement {
        landlock,
        system_calls,
    })
}

fn limit_resources(limits: &CompileLimits) -> io::Result<()> {
    let already = sys::mapped_bytes();
    set(Resource::As, limits.memory_bytes.saturating_add(already))?;
    // The other process measures time too; this holds when that one is gone.
    set(Resource::Cpu, limits.time.as_secs().saturating_add(1))?;
    set(Resource::Core, 0)?;
    set(Resource::Fsize, 0)?;
    // Threads count as well.
    set(Resource::Nproc, 0)
}

/// Soft and hard limit, so that there is no way back.
fn set(resource: Resource, most: u64) -> io::Result<()> {
    let new = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    // A system that allows less already is right too.
    let before = rustix::process::getrlimit(resource);
    if before.maximum.is_some_and(|maximum| maximum <= most) {
        let maximum = before.maximum;
        let new = Rlimit {
            current: maximum,
            maximum,
        };
        return Ok(setrlimit(resource, new)?);
    }
    Ok(setrlimit(resource, new)?)
}

#[cfg(target_os = "linux")]
fn die_with_parent() -> io::Result<()> {
    use rustix::process::{Signal, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Should memory run out, it is this process that the kernel takes. Raising is
    // allowed to everybody; where /proc is missing, nothing is lost but that.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent() -> io::Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
mod sys {
    use super::Landlock;
    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, Ruleset,
        RulesetAttr, RulesetStatus, Scope,
    };
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch,
    };
    use std::collections::BTreeMap;
    use std::io;

    /// The address space that the program itself takes: the limit is on what comes
    /// on top. Zero where nobody tells, which is stricter.
    pub(super) fn mapped_bytes() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kilobytes = status
            .lines()
            .find_map(|line| line.strip_prefix("VmSize:"))
            .and_then(|rest| rest.trim().strip_suffix("kB"))
            .and_then(|number| number.trim().parse::<u64>().ok());
        kilobytes.unwrap_or(0) << 10
    }

    /// Denies everything that Landlock knows of.
    pub(super) fn landlock() -> io::Result<Landlock> {
        /// The first version that knows of all that is asked for here: files,
        /// TCP, and the scopes of signals and abstract sockets.
        const FULL: ABI = ABI::V6;
        let restricted = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(FULL))
            .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(FULL)))
            .and_then(|ruleset| ruleset.scope(Scope::from_all(FULL)))
            .and_then(Ruleset::create)
            .and_then(|ruleset| ruleset.restrict_self())
            .map_err(io::Error::other)?;
        Ok(match (restricted.ruleset, restricted.landlock) {
            (RulesetStatus::NotEnforced, _) => Landlock::None,
            (_, LandlockStatus::Available { effective_abi, .. }) if effective_abi >= ABI::V4 => {
                Landlock::FilesAndNetwork
            }
            _ => Landlock::Files,
        })
    }

    /// Leaves the system calls that compiling takes; another one ends the process.
    /// False where the kernel, or this project for its processor, has no filter.
    pub(super) fn seccomp() -> io::Result<bool> {
        let Ok(architecture) = TargetArch::try_from(std::env::consts::ARCH) else {
            return Ok(false);
        };
        let filter = rules()
            .and_then(|rules| {
                SeccompFilter::new(
                    rules,
                    SeccompAction::KillProcess,
                    SeccompAction::Allow,
                    architecture,
                )
            })
            .and_then(BpfProgram::try_from)
            .map_err(io::Error::other)?;
        match seccompiler::apply_filter_all_threads(&filter) {
            Ok(()) => Ok(true),
            // The kernel was built without it.
            Err(seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error))
                if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) =>
            {
                Ok(false)
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }

    type Rules = BTreeMap<i64, Vec<SeccompRule>>;

    fn rules() -> Result<Rules, seccompiler::BackendError> {
        use SeccompCmpOp::{Eq, MaskedEq};
        let argument = |index, operator, value| {
            SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)
        };
        let is = |index, value: u64| SeccompRule::new(vec![argument(index, Eq, value)?]);
        let not_executable = argument(2, MaskedEq(u64::from(libc::PROT_EXEC.unsigned_abs())), 0)?;
        // Memory of its own only: a file that was open when the process started
        // cannot be mapped either.
        let anonymous = argument(
            3,
            MaskedEq(u64::from(libc::MAP_ANONYMOUS.unsigned_abs())),
            u64::from(libc::MAP_ANONYMOUS.unsigned_abs()),
        )?;
        let own_process = u64::from(std::process::id());
        let mut rules: Rules = [
            // Memory.
            libc::SYS_brk,
            libc::SYS_munmap,
            libc::SYS_mremap,
            libc::SYS_madvise,
            // One thread, and its locks.
            libc::SYS_futex,
            libc::SYS_sched_yield,
            libc::SYS_getpid,
            libc::SYS_gettid,
            // Seeds of hash maps, and clocks where they are not in the process.
            libc::SYS_getrandom,
            libc::SYS_clock_gettime,
            // Panics, aborts, the end.
            libc::SYS_rt_sigaction,
            libc::SYS_rt_sigprocmask,
            libc::SYS_rt_sigreturn,
            libc::SYS_sigaltstack,
            libc::SYS_restart_syscall,
            libc::SYS_close,
            libc::SYS_exit,
            libc::SYS_exit_group,
        ]
        .map(|call| (call, Vec::new()))
        .into();
        // Whatever else may be open belongs to somebody else.
        rules.insert(libc::SYS_read, vec![is(0, 0)?]);
        rules.insert(libc::SYS_write, vec![is(0, 1)?, is(0, 2)?]);
        rules.insert(libc::SYS_writev, vec![is(0, 1)?, is(0, 2)?]);
        rules.insert(
            libc::SYS_mmap,
            vec![SeccompRule::new(vec![not_executable.clone(), anonymous])?],
        );
        rules.insert(
            libc::SYS_mprotect,
            vec![SeccompRule::new(vec![not_executable])?],
        );
        // How a process aborts itself.
        rules.insert(libc::SYS_tgkill, vec![is(0, own_process)?]);
        rules.insert(libc::SYS_tkill, vec![is(0, own_process)?]);
        Ok(rules)
    }
}

#[cfg(not(target_os = "linux"))]
mod sys {
    use super::Landlock;
    use std::io;

    pub(super) fn mapped_bytes() -> u64 {
        0
    }

    #[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
    pub(super) fn landlock() -> io::Result<Landlock> {
        Ok(Landlock::None)
    }

    #[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
    pub(super) fn seccomp() -> io::Result<bool> {
        Ok(false)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use reeve_test_support::skipped;
    use std::fs::File;
    use std::io::{self, ErrorKind};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Output};

    /// What a component that took over its compiler might try.
    const ATTEMPTS: [&str; 8] = [
        "open a file",
        "make a file",
        "list a folder",
        "connect",
        "listen",
        "reach a local socket",
        "start a program",
        "outlive its parent",
    ];

    /// By which a test is told that it is the child, and what to try.
    const ATTEMPT: &str = "REEVE_TEST_ATTEMPT";
    const LAYER: &str = "REEVE_TEST_LAYER";

    fn attempt(what: &str) -> io::Result<()> {
        match what {
            "open a file" => File::open("/etc/passwd").map(drop),
            "make a file" => File::create(std::env::temp_dir().join("reeve-confined")).map(drop),
            "list a folder" => std::fs::read_dir("/").map(drop),
            // Nobody listens at the port for discarding, which is an answer too.
            "connect" => match TcpStream::connect(("127.0.0.1", 9)) {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
                other => other.map(drop),
            },
            "listen" => TcpListener::bind(("127.0.0.1", 0)).map(drop),
            "reach a local socket" => UnixStream::pair().map(drop),
            "start a program" => Command::new("/bin/true").status().map(drop),
            "outlive its parent" => Ok(rustix::process::set_parent_process_death_signal(None)?),
            other => panic!("{other}"),
        }
    }

    /// What the others start this program for; by itself it makes sure that a child is
    /// one, and tells what came of it.
    #[test]
    fn try_it() {
        let Ok(what) = std::env::var(ATTEMPT) else {
            let output = tried_within("none", "list a folder");
            let told = String::from_utf8(output.stdout).unwrap();
            assert!(told.contains("tried: None"), "{told}");
            return;
        };
        match std::env::var(LAYER).unwrap().as_str() {
            "none" => {}
            "landlock" => {
                sys::landlock().unwrap();
            }
            "seccomp" => {
                sys::seccomp().unwrap();
            }
            _ => {
                confine(&CompileLimits::default()).unwrap();
            }
        }
        let tried = attempt(&what);
        let kind = tried.err().map(|error| error.kind());
        println!("tried: {kind:?}");
        // Whatever the harness does after this is forbidden as well.
        std::process::exit(match kind {
            None => 0,
            Some(ErrorKind::PermissionDenied) => 10,
            Some(_) => 11,
        });
    }

    fn tried_within(layer: &str, what: &str) -> Output {
        Command::new(std::env::current_exe().unwrap())
            .args(["compiler::confine::tests::try_it", "--exact"])
            .args(["--nocapture", "--test-threads=1"])
            .envs([(LAYER, layer), (ATTEMPT, what)])
            .output()
            .unwrap()
    }

    fn code_within(layer: &str, what: &str) -> (Option<i32>, Option<i32>) {
        let output = tried_within(layer, what);
        (output.status.code(), output.status.signal())
    }

    /// Each attempt ends a compiler at once; without what confines it each would succeed.
    #[test]
    fn what_a_compiler_does_not_need_ends_it() {
        let killed = Some(libc::SIGSYS);
        for what in ATTEMPTS {
            assert_eq!(code_within("none", what), (Some(0), None), "{what}");
            assert_eq!(code_within("seccomp", what), (None, killed), "{what}");
            assert_eq!(code_within("all", what), (None, killed), "{what}");
        }
    }

    /// Landlock holds by itself: files, and where the kernel is new enough TCP.
    #[test]
    fn landlock_refuses_files_without_seccomp() {
        let files = ["open a file", "make a file", "list a folder"];
        let network = ["connect", "listen"];
        // In a thread of its own, which alone is restricted.
        let landlock = std::thread::spawn(|| sys::landlock().unwrap());
        let refused: Vec<&str> = match landlock.join().unwrap() {
            Landlock::None => {
                skipped("this kernel has no Landlock");
                return;
            }
            Landlock::Files => files.to_vec(),
            Landlock::FilesAndNetwork => [files.as_slice(), &network].concat(),
        };
        for what in refused {
            assert_eq!(code_within("landlock", what), (Some(10), None), "{what}");
        }
    }
}
