//! Crates on disk, built for wasm: what comes out, and what the errors say.
//!
//! The crates have no dependencies, so this needs the compiler and its wasm
//! target and nothing else. Real plugins are built by `cargo xtask plugins`.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use reeve_build::{BuildError, Builder, PluginCrate, Profile, is_current};
use tempfile::TempDir;

const CDYLIB: &str = "[lib]\ncrate-type = [\"cdylib\"]\n";

/// A crate of its own, outside every workspace.
fn crate_with(library: &str, source: &str) -> io::Result<TempDir> {
    let folder = tempfile::tempdir()?;
    let manifest = format!(
        "[package]\nname = \"sample\"\nversion = \"1.2.3\"\nedition = \"2024\"\n{library}\n[workspace]\n"
    );
    fs::write(folder.path().join("Cargo.toml"), manifest)?;
    fs::create_dir(folder.path().join("src"))?;
    fs::write(folder.path().join("src/lib.rs"), source)?;
    Ok(folder)
}

fn build(folder: &Path, profile: Profile) -> Result<Vec<u8>, BuildError> {
    let plugin = PluginCrate::open(folder)?;
    let component = Builder::new(profile).quiet().build(&plugin)?;
    Ok(component.into_bytes())
}

#[test]
fn a_crate_outside_the_workspace_becomes_a_component() {
    let folder = crate_with(CDYLIB, "").unwrap();
    for profile in [Profile::Release, Profile::Dev] {
        let component = build(folder.path(), profile).unwrap();
        // The fourth and fifth pair of bytes tell a component from a module.
        assert_eq!(&component[..8], b"\0asm\x0d\0\x01\0", "{profile:?}");
    }
}

#[test]
fn crates_of_different_workspaces_are_built_together_in_their_order() {
    let folders = [
        crate_with(CDYLIB, "").unwrap(),
        crate_with(CDYLIB, "pub fn more() {}").unwrap(),
    ];
    let open = |folder: &TempDir| PluginCrate::open(folder.path()).unwrap();
    let plugins: Vec<_> = folders.iter().map(open).collect();
    let builder = Builder::new(Profile::Release).quiet();
    let together = builder.build_all(&plugins).unwrap();
    for (plugin, component) in plugins.iter().zip(together) {
        let alone = builder.build(plugin).unwrap();
        assert_eq!(component.bytes(), alone.bytes());
    }
    assert!(builder.build_all(&[]).unwrap().is_empty());
}

/// Pages of memory that the module of a component begins with; what cannot be read has none.
fn initial_pages(component: &[u8]) -> u64 {
    let payloads = wasmparser::Parser::new(0).parse_all(component);
    let memories = payloads.filter_map(|payload| match payload {
        Ok(wasmparser::Payload::MemorySection(memories)) => Some(memories),
        _ => None,
    });
    let all = memories.flat_map(|memories| memories.into_iter().flatten());
    all.map(|memory| memory.initial).sum()
}

#[test]
fn a_module_has_a_heap_and_what_its_author_configures() {
    let source = "#[cfg(not(of_author))] compile_error!(\"left out\");";
    let of_build = "[build]\nrustflags = [\"--cfg\", \"of_author\"]\n";
    let of_target = "[target.wasm32-unknown-unknown]\nrustflags = [\"--cfg\", \"of_author\"]\n";
    let pages = [of_build, of_target].map(|config| {
        let folder = crate_with(CDYLIB, source).unwrap();
        fs::create_dir(folder.path().join(".cargo")).unwrap();
        fs::write(folder.path().join(".cargo/config.toml"), config).unwrap();
        initial_pages(&build(folder.path(), Profile::Release).unwrap())
    });
    // 128 KiB more than the stack, unless the author has flags for the target.
    assert_eq!(pages, [16 + 2, 16]);
}

#[test]
fn the_crate_tells_its_name_and_version() {
    let folder = crate_with(CDYLIB, "").unwrap();
    let plugin = PluginCrate::open(folder.path()).unwrap();
    assert_eq!((plugin.name(), plugin.version()), ("sample", "1.2.3"));
    assert_eq!(plugin.folder(), folder.path().canonicalize().unwrap());
}

#[test]
fn a_component_is_current_until_something_that_it_was_built_from_changes() {
    let library = crate_with("", "pub fn used() -> u32 { 7 }").unwrap();
    let path = library.path().display();
    let dependency =
        format!("{CDYLIB}[dependencies.used]\npath = \"{path}\"\npackage = \"sample\"\n");
    let folder = crate_with(&dependency, "pub use used::used;").unwrap();
    let manifest = folder.path().join("Cargo.toml");
    let renamed = fs::read_to_string(&manifest).unwrap();
    let renamed = renamed.replacen("\"sample\"", "\"a-plugin\"", 1);
    fs::write(&manifest, renamed).unwrap();

    let component = folder.path().join("built/other-name.wasm");
    let build = || {
        let plugin = PluginCrate::open(folder.path()).unwrap();
        let builder = Builder::new(Profile::Release).quiet();
        let built = builder.build(&plugin).unwrap();
        built.write_to(&component).unwrap();
    };
    assert!(!is_current(&component, folder.path()));
    build();
    assert!(is_current(&component, folder.path()));
    let own = folder.path().join("src/lib.rs");
    let others = library.path().join("src/lib.rs");
    let lock = folder.path().join("Cargo.lock");
    for input in [own, others.clone(), manifest, lock] {
        let file = fs::File::options().append(true).open(&input).unwrap();
        file.set_modified(SystemTime::now()).unwrap();
        assert!(
            !is_current(&component, folder.path()),
            "{input:?} was changed"
        );
        // The bytes are the same, and it is current all the same.
        build();
        assert!(
            is_current(&component, folder.path()),
            "{input:?} was built anew"
        );
    }
    let elsewhere = crate_with(CDYLIB, "").unwrap();
    assert!(
        !is_current(&component, elsewhere.path()),
        "of another crate"
    );
    fs::remove_file(others).unwrap();
    assert!(!is_current(&component, folder.path()), "a file is gone");
}

#[test]
fn an_error_of_the_compiler_is_in_the_error() {
    let folder = crate_with(CDYLIB, "pub fn broken() -> u32 { missing_name }").unwrap();
    let error = build(folder.path(), Profile::Dev).unwrap_err();
    assert!(matches!(error, BuildError::Compile { .. }), "{error}");
    let text = error.to_string();
    for part in ["failed to compile sample", "missing_name", "src/lib.rs:1"] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn an_error_of_cargo_is_in_the_error() {
    let folder = crate_with(CDYLIB, "").unwrap();
    fs::write(folder.path().join("Cargo.toml"), "[package\n").unwrap();
    let error = PluginCrate::open(folder.path()).unwrap_err();
    assert!(matches!(error, BuildError::Metadata { .. }), "{error}");
    assert!(error.to_string().contains("Cargo.toml"), "{error}");
}

#[test]
fn a_crate_that_is_no_cdylib_is_told_how_to_become_one() {
    let folder = crate_with("", "").unwrap();
    let error = build(folder.path(), Profile::Dev).unwrap_err();
    assert!(matches!(error, BuildError::NotCdylib { .. }), "{error}");
    assert!(error.to_string().contains("crate-type"), "{error}");
}

#[test]
fn a_folder_without_a_crate_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = PluginCrate::open(folder.path()).unwrap_err();
    assert!(matches!(error, BuildError::NoCrate { .. }), "{error}");
    let workspace = folder.path().join("Cargo.toml");
    std::fs::write(workspace, "[workspace]\nmembers = []\n").unwrap();
    let error = PluginCrate::open(folder.path()).unwrap_err();
    assert!(matches!(error, BuildError::NoPackage { .. }), "{error}");
}
