//! Machine code: what compiling makes, and what runs.
//!
//! The one place that takes bytes for machine code. They come from a compiler of our own,
//! or from the [`cache`], which believes only what it has written itself.

mod cache;

pub(crate) use cache::Cache;
pub use cache::CacheError;

use cache::Room;
use cap_std::fs::Dir;
use parking_lot::Mutex;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use wasmtime::Engine;
use wasmtime::component::Component;

/// What `statfs(2)` calls a file system in memory.
#[cfg(target_os = "linux")]
const TMPFS: rustix::fs::FsWord = 0x0102_1994;

/// Machine code that the compiler has just made.
pub(crate) struct Artifact(Vec<u8>);

impl Artifact {
    /// Takes what [`crate::compile::compile`] returned, in this process or, over a
    /// pipe, in a compiler that this process has started.
    pub(crate) fn made(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Makes it ready to run.
    ///
    /// # Errors
    ///
    /// When it needs more than the allocator has for one component, or the compiler
    /// was another version or had other settings.
    pub(crate) fn load(&self, engine: &Engine, cache: Option<&Cache>) -> wasmtime::Result<Code> {
        match cache {
            Some(cache) => ready(&self.0, engine, cache),
            None => deserialize(engine, &self.0).map(Code::in_memory),
        }
    }
}

/// Machine code that is ready to run.
pub(crate) struct Code {
    component: Component,
    /// What [`map`] has mapped, until it is on the disk.
    file: Mutex<Option<File>>,
    /// Whether it can be read again from there.
    on_disk: AtomicBool,
    /// What it takes of the folder.
    _room: Option<Room>,
}

impl Code {
    fn in_memory(component: Component) -> Self {
        Self {
            component,
            file: Mutex::default(),
            on_disk: AtomicBool::new(false),
            _room: None,
        }
    }

    pub(crate) fn component(&self) -> &Component {
        &self.component
    }

    /// Sees that the code can be read again once it is given back. Blocks for as long as the
    /// disk takes. Where there is no file there is nothing to do.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the code is then never given back.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let Some(file) = self.file.lock().take() else {
            return Ok(());
        };
        file.sync_data()?;
        self.on_disk.store(true, Ordering::Release);
        Ok(())
    }

    /// Gives back the memory in which the code is, if there is a file from which it comes
    /// again when it is run. It may be running: then it comes at once. False when it can be
    /// nowhere else.
    #[cfg(target_os = "linux")]
    #[expect(
        unsafe_code,
        reason = "the type system does not know where pages come from"
    )]
    pub(crate) fn give_back(&self) -> bool {
        if !self.on_disk.load(Ordering::Acquire) {
            return false;
        }
        let image = self.component.image_range();
        let bytes = image.end.addr() - image.start.addr();
        // SAFETY: The range is a private mapping of the whole file of [`map`], which nobody can
        // change any more and of which all has been written to the disk. A page of it that is
        // read after this is that file's again, so what is read stays the same unless the
        // mapping was written to, and it was not: wasmtime refuses artifacts with relocations,
        // and protects the range from writing before [`Component::deserialize_file`] returns.
        // A disk that fails later ends this process by a signal, as it does for its own program.
        let advised = unsafe {
            rustix::mm::madvise(
                image.start.cast_mut().cast(),
                bytes,
                rustix::mm::Advice::LinuxDontNeed,
            )
        };
        advised
            .inspect_err(|error| tracing::debug!(%error, "cannot give back compiled code"))
            .is_ok()
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn give_back(&self) -> bool {
        false
    }
}

/// Makes machine code that was found good ready to run, from a file of its own where the
/// folder can have one: then what of it never runs takes no memory, and what does can be
/// read again. The file has no name, and goes with the component.
fn ready(contents: &[u8], engine: &Engine, cache: &Cache) -> wasmtime::Result<Code> {
    let room = cache.room(contents.len() as u64);
    let mapped = room
        .ok_or_else(|| io::Error::from(io::ErrorKind::StorageFull))
        .and_then(|room| Ok((unnamed(cache.folder(), contents)?, room)))
        .map_err(wasmtime::Error::from)
        .and_then(|(file, room)| map(engine, file, room));
    mapped.or_else(|error| {
        // Such as a file system without such files, one from which nothing is run, or one
        // that is full.
        tracing::debug!(
            error = format!("{error:#}"),
            "compiled code is kept in memory"
        );
        deserialize(engine, contents).map(Code::in_memory)
    })
}

/// A file with these contents that has no name, so that nobody else can open it.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Dir, contents: &[u8]) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    if rustix::fs::fstatfs(folder)?.f_type == TMPFS {
        // It would be in memory twice.
        return Err(io::ErrorKind::Unsupported.into());
    }
    // `EXCL`: it can never be given a name either.
    let flags = OFlags::TMPFILE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, c".", flags, Mode::RUSR | Mode::WUSR)?;
    let mut file = File::from(file);
    file.write_all(contents)?;
    Ok(file)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Dir, _: &[u8]) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The same machine code under another engine with equal settings.
pub(crate) fn copy(
    component: &Component,
    engine: &Engine,
    cache: Option<&Cache>,
) -> wasmtime::Result<Code> {
    Artifact(component.serialize()?).load(engine, cache)
}

/// Machine code from bytes that wasmtime's compiler has made.
///
/// # Errors
///
/// When they come from another version or other settings, or need more than the
/// allocator has for one component.
#[expect(
    unsafe_code,
    reason = "wasmtime cannot check machine code, so its author must be certain"
)]
fn deserialize(engine: &Engine, contents: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: The bytes must be what wasmtime's compiler returned, unaltered. They
    // are in our own memory, so nobody can alter them between here and wherever
    // they were found good. There are two callers:
    // - `Artifact::load` passes what `copy` has just been given by `Component::serialize`,
    //   or what the compiler has just returned, in this process or in a child that this process started from its own executable,
    //   or from the one that the program which embeds the engine names, over a pipe
    //   that nobody else holds. That this child was not taken over by the component
    //   that it compiled is an assumption: docs/security.md says what it rests on,
    //   and what is left when it fails.
    // - `ready` passes on what `Artifact::load` does, or what `Cache::get` has from
    //   `Cache::verified`: the bytes carry a
    //   MAC over themselves and their name, made with this installation's key. For
    //   names of this form only `Cache::put` makes it, on an `Artifact`; kept bytes
    //   have names of another.
    unsafe { Component::deserialize(engine, contents) }
}

/// The same from a file without a name that holds such bytes and nothing else.
///
/// # Errors
///
/// As [`deserialize`], and when the file cannot be mapped.
#[expect(unsafe_code, reason = "as for `deserialize`")]
fn map(engine: &Engine, file: File, room: Room) -> wasmtime::Result<Code> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: What is said of the bytes above holds of these, which `ready` has from
    // the same callers and has just written. The file must not change while the component
    // is there. It never had a name, and the one descriptor that could write to it goes into
    // [`Code`], which does not: to come by another takes the rights to read this process's
    // descriptors, and with these its memory could be written as well.
    let component = unsafe { Component::deserialize_file(engine, path) }?;
    Ok(Code {
        component,
        file: Mutex::new(Some(file)),
        on_disk: AtomicBool::new(false),
        _room: Some(room),
    })
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use reeve_test_support::skipped;
    use std::path::Path;

    /// The component of the tests under an engine, from a cache in a folder beside this
    /// program: from there programs are run, which a folder for temporary files may not allow.
    fn load(engine: &Engine) -> Code {
        let program = std::env::current_exe().unwrap();
        load_from(program.parent().unwrap(), engine)
    }

    fn load_from(place: &Path, engine: &Engine) -> Code {
        let folder = tempfile::tempdir_in(place).unwrap();
        let cache = Cache::open(folder.path(), engine).unwrap();
        artifact(engine).load(engine, Some(&cache)).unwrap()
    }

    fn artifact(engine: &Engine) -> Artifact {
        let bytes = wat::parse_str(SEVEN).unwrap();
        Artifact::made(engine.precompile_component(&bytes).unwrap())
    }

    fn engine() -> Engine {
        Engine::new(&crate::settings::on_demand(64 << 10)).unwrap()
    }

    /// Whether code is mapped here; the file system of a checkout may have no files without
    /// names.
    fn is_mapped(code: &Code) -> bool {
        let is_mapped = code.file.lock().is_some();
        if !is_mapped {
            skipped("no code is mapped from beside this program");
        }
        is_mapped
    }

    /// A component with a function that gives 7, and some thousand bytes of code.
    const SEVEN: &str = r#"(component
        (core module $module
            (func (export "seven") (result i32) (i32.const 7)))
        (core instance $instance (instantiate $module))
        (func (export "seven") (result s32)
            (canon lift (core func $instance "seven"))))"#;

    fn seven(engine: &Engine, component: &Component) -> i32 {
        let linker = wasmtime::component::Linker::<()>::new(engine);
        let mut store = wasmtime::Store::new(engine, ());
        store.set_epoch_deadline(1);
        let instance = linker.instantiate(&mut store, component).unwrap();
        let function = instance
            .get_typed_func::<(), (i32,)>(&mut store, "seven")
            .unwrap();
        function.call(&mut store, ()).unwrap().0
    }

    /// Kilobytes of an image that are in memory.
    fn resident(component: &Component) -> u64 {
        let image = component.image_range();
        let (start, end) = (image.start.addr(), image.end.addr());
        let mut is_within = false;
        let mut sum = 0;
        for line in std::fs::read_to_string("/proc/self/smaps").unwrap().lines() {
            let first = line.split(' ').next().unwrap_or_default();
            if let Some((from, _)) = first.split_once('-') {
                let from = usize::from_str_radix(from, 16).unwrap();
                is_within = (start..end).contains(&from);
            } else if is_within && let Some(rest) = line.strip_prefix("Rss:") {
                let kilobytes = rest.trim().strip_suffix(" kB").unwrap();
                sum += kilobytes.parse::<u64>().unwrap();
            }
        }
        sum
    }

    #[test]
    fn code_that_is_given_back_takes_no_memory_and_runs_again() {
        let engine = engine();
        let mapped = load(&engine);
        if !is_mapped(&mapped) {
            return;
        }
        assert!(!mapped.give_back(), "it is not on the disk");
        mapped.sync().unwrap();
        for _ in 0..3 {
            assert_eq!(seven(&engine, mapped.component()), 7);
            assert!(resident(mapped.component()) > 0);
            assert!(mapped.give_back());
            assert_eq!(resident(mapped.component()), 0);
        }
    }

    #[test]
    fn code_that_is_nowhere_else_stays() {
        let engine = engine();
        let in_memory = artifact(&engine).load(&engine, None).unwrap();
        in_memory.sync().unwrap();
        assert_eq!(seven(&engine, in_memory.component()), 7);
        let before = resident(in_memory.component());
        assert!(before > 0);
        assert!(!in_memory.give_back());
        assert_eq!(resident(in_memory.component()), before);
        assert_eq!(seven(&engine, in_memory.component()), 7);
    }

    /// It would be there twice, as a file and as what is mapped.
    #[test]
    fn code_on_a_file_system_in_memory_is_not_mapped() {
        let place = Path::new("/dev/shm");
        if !place.is_dir() {
            skipped(&format!("there is no {}", place.display()));
            return;
        }
        let engine = engine();
        let code = load_from(place, &engine);
        assert!(code.file.lock().is_none());
        assert_eq!(seven(&engine, code.component()), 7);
    }

    #[test]
    fn code_is_given_back_while_it_runs() {
        let engine = engine();
        let code = load(&engine);
        if !is_mapped(&code) {
            return;
        }
        code.sync().unwrap();
        std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                for _ in 0..1_000 {
                    assert_eq!(seven(&engine, code.component()), 7);
                }
            });
            while !run.is_finished() {
                assert!(code.give_back());
            }
        });
    }
}
