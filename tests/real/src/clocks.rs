//! Clocks of one process that are not those of its machine.
//!
//! A machine has one clock, and what else runs on it has to keep it. But a process asks
//! the time of a page of code that the kernel gives it, the vDSO (`vdso(7)`), and that
//! page is its own once somebody writes to it, as debuggers do. So the function there is
//! replaced by one that asks the kernel itself and adds to the answer: the process goes
//! on as it is, and its clocks have jumped. Programs that it starts have the machine's.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use reeve_test_support::skipped;

/// How far the clocks of a process are ahead of the machine's, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// `CLOCK_REALTIME`, which people set.
    pub wall: i64,
    /// `CLOCK_BOOTTIME`, which runs while the machine sleeps and cannot be set.
    pub boot: i64,
}

/// A system on which the clocks of a process can be another than its own.
#[derive(Clone, Copy, Debug)]
pub struct Clocks(());

/// The function that tells the time.
const FUNCTION: &str = "__vdso_clock_gettime";

/// A process is stopped this often, until none of its threads is within that page.
const ATTEMPTS: usize = 200;

/// How long a thread takes at most to leave it, or to stop.
const MOMENT: Duration = Duration::from_millis(5);

impl Clocks {
    /// Whether this system lets a process have clocks of its own; says so, loudly, where
    /// it does not.
    pub fn possible() -> Option<Self> {
        let why = match try_out() {
            Ok(()) => return Some(Self(())),
            Err(error) => format!("{error:#}"),
        };
        skipped(&format!("clocks of the agent do not jump: {why}"));
        None
    }

    /// Sets the clocks of a process, whatever they were before. It is stopped meanwhile;
    /// one that was stopped before stays so, but for moments if it reads a clock just then.
    pub(crate) fn set(self, pid: u32, ahead: Ahead) -> Result<()> {
        set(pid, ahead)
    }
}

/// Sets the clocks of a process that does nothing but repeat what it is told.
fn try_out() -> Result<()> {
    let mut command = Command::new("cat");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (mut to, from) = (child.stdin.take(), child.stdout.take());
    let mut said = [0];
    // It runs once it answers: before, its memory is not its own.
    let begun = to.as_mut().zip(from).map(|(to, mut from)| {
        to.write_all(b"a")?;
        from.read_exact(&mut said)
    });
    let set = set(child.id(), Ahead::default());
    drop(to);
    child.wait()?;
    begun.context("it has no pipes")??;
    set
}

fn set(pid: u32, ahead: Ahead) -> Result<()> {
    ensure!(
        cfg!(all(target_os = "linux", target_arch = "x86_64")),
        "they can be set on Linux on x86-64 only"
    );
    let was_stopped = threads(pid)?.iter().all(|thread| thread.stopped);
    let page = page(pid)?;
    let mut memory = File::options()
        .read(true)
        .write(true)
        .open(format!("/proc/{pid}/mem"))?;
    let mut image = vec![0; usize::try_from(page.end - page.start)?];
    memory.seek(SeekFrom::Start(page.start))?;
    memory.read_exact(&mut image)?;
    let function = find(&image, FUNCTION).context("the vDSO cannot be read")?;
    let code = code(ahead);
    ensure!(
        u64::try_from(code.len())? <= function.end - function.start,
        "there is too little room in the vDSO: {function:?}"
    );
    stop_outside_of(pid, &page)?;
    let begin = SeekFrom::Start(page.start + function.start);
    let written = memory.seek(begin).and_then(|_| memory.write_all(&code));
    if !was_stopped {
        signal(pid, "CONT")?;
    }
    written.context("the vDSO cannot be written")
}

/// Stops a process while none of its threads is within a range of its memory.
fn stop_outside_of(pid: u32, range: &Range<u64>) -> Result<()> {
    for _ in 0..ATTEMPTS {
        signal(pid, "STOP")?;
        let stopped = stopped(pid);
        if let Ok(all) = &stopped
            && !all.iter().any(|thread| range.contains(&thread.at))
        {
            return Ok(());
        }
        // Nobody is left waiting for it, whatever went wrong.
        signal(pid, "CONT")?;
        stopped?;
        thread::sleep(MOMENT);
    }
    bail!("process {pid} asks the time without end")
}

/// The threads of a process that was told to stop, once they all have.
fn stopped(pid: u32) -> Result<Vec<Thread>> {
    for _ in 0..ATTEMPTS {
        let all = threads(pid)?;
        if all.iter().all(|thread| thread.stopped) {
            return Ok(all);
        }
        thread::sleep(MOMENT);
    }
    bail!("process {pid} does not stop")
}

fn signal(pid: u32, signal: &str) -> Result<()> {
    let pid = pid.to_string();
    let sent = Command::new("kill").args(["-s", signal, &pid]).status()?;
    ensure!(sent.success(), "cannot signal {pid}: {sent}");
    Ok(())
}

/// A thread of another process.
struct Thread {
    stopped: bool,
    /// Where it is in its program.
    at: u64,
}

fn threads(pid: u32) -> Result<Vec<Thread>> {
    let mut all = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?.path();
        // One that has ended meanwhile is nowhere.
        let (Ok(stat), Ok(call)) = (
            fs::read_to_string(task.join("stat")),
            fs::read_to_string(task.join("syscall")),
        ) else {
            continue;
        };
        // Its name is in parentheses, and may hold some.
        let state = stat.rsplit(") ").next().unwrap_or_default();
        // The last word, unless it says that it runs.
        let at = call.split_whitespace().last().unwrap_or_default();
        let at = at.strip_prefix("0x").map(|at| u64::from_str_radix(at, 16));
        all.push(Thread {
            stopped: state.starts_with('T') && matches!(at, Some(Ok(_))),
            at: at.and_then(Result::ok).unwrap_or_default(),
        });
    }
    ensure!(!all.is_empty(), "there is no process {pid}");
    Ok(all)
}

/// Where the vDSO of a process is.
fn page(pid: u32) -> Result<Range<u64>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"));
    let range = line.and_then(|line| line.split(' ').next()?.split_once('-'));
    let (start, end) = range.context("it has no vDSO")?;
    Ok(u64::from_str_radix(start, 16)?..u64::from_str_radix(end, 16)?)
}

/// Where a function is in an image of the vDSO (`elf(5)`).
fn find(image: &[u8], name: &str) -> Option<Range<u64>> {
    const DYNAMIC_SYMBOLS: u64 = 11;
    const SYMBOL: usize = 24;
    let number = |at: usize, bytes: usize| {
        let bytes = image.get(at..at.checked_add(bytes)?)?;
        let digits = bytes.iter().rev();
        Some(digits.fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let place = |at: usize| usize::try_from(number(at, 8)?).ok();
    let (sections, size, count) = (place(0x28)?, number(0x3a, 2)?, number(0x3c, 2)?);
    let section = |index: u64| Some(sections + usize::try_from(index * size).ok()?);
    let mut all = (0..count).filter_map(section);
    let symbols = all.find(|at| number(at + 4, 4) == Some(DYNAMIC_SYMBOLS))?;
    let names = place(section(number(symbols + 0x28, 4)?)? + 0x18)?;
    let (start, length) = (place(symbols + 0x18)?, place(symbols + 0x20)?);
    (start..start + length).step_by(SYMBOL).find_map(|symbol| {
        let begin = names + usize::try_from(number(symbol, 4)?).ok()?;
        let text = image.get(begin..)?;
        let text = text.split(|byte| *byte == 0).next()?;
        let at = number(symbol + 8, 8)?;
        (text == name.as_bytes()).then_some(at..at + number(symbol + 16, 8)?)
    })
}

/// What is in the function's place: `int (clockid_t edi, struct timespec *rsi)`.
fn code(ahead: Ahead) -> Vec<u8> {
    // `add [rsi], seconds`, by way of a register that is the callee's.
    let add = |seconds: i64| {
        [
            &[0x48, 0xba],
            &seconds.to_le_bytes()[..],
            &[0x48, 0x01, 0x16],
        ]
        .concat()
    };
    let parts: [&[u8]; 11] = [
        &[0xb8, 228, 0, 0, 0], // mov eax, SYS_clock_gettime
        &[0x0f, 0x05],         // syscall
        &[0x85, 0xc0],         // test eax, eax
        &[0x75, 36],           // jne end: it has failed
        &[0x85, 0xff],         // test edi, edi: CLOCK_REALTIME
        &[0x75, 14],           // jne on
        &add(ahead.wall),
        &[0xc3],          // ret
        &[0x83, 0xff, 7], // on: cmp edi, CLOCK_BOOTTIME
        &[0x75, 13],      // jne end
        &add(ahead.boot),
    ];
    let mut code = parts.concat();
    code.push(0xc3); // end: ret
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_land_on_instructions() {
        let code = code(Ahead { wall: 1, boot: -1 });
        let end = code.len() - 1;
        assert_eq!(code[end], 0xc3);
        for (jump, to) in [(9, end), (13, 29), (32, end)] {
            assert_eq!(code[jump], 0x75);
            assert_eq!(jump + 2 + usize::from(code[jump + 1]), to);
        }
        assert_eq!(code[29..32], [0x83, 0xff, 7]);
    }

    #[test]
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn the_function_is_found() {
        let page = page(std::process::id()).unwrap();
        let mut memory = File::open("/proc/self/mem").unwrap();
        let mut image = vec![0; usize::try_from(page.end - page.start).unwrap()];
        memory.seek(SeekFrom::Start(page.start)).unwrap();
        memory.read_exact(&mut image).unwrap();
        let function = find(&image, FUNCTION).unwrap();
        assert!(function.end <= page.end - page.start, "{function:?}");
        assert_eq!(find(&image, "no_such_function"), None);
        assert_eq!(find(b"no image", FUNCTION), None);
    }
}
