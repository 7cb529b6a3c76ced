//! `reeve plugin package` and `inspect` of files, without a cluster.

use std::fs;
use std::path::Path;
use std::process::Command;

/// A folder with honest components under the names of their plugins, and files that are none.
#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    for name in ["quotas", "limitranges"] {
        let component = fs::read(reeve_test_support::component(name)).unwrap();
        put(&format!("{name}.wasm"), &component);
    }
    put(
        "huge.wasm",
        &[b"\0asm".as_slice(), &vec![0; 33 << 20]].concat(),
    );
    put("broken.wasm.gz", &[0x1f, 0x8b, 1, 2, 3]);
    put("good.yaml", b"{}\n");
    put("misspelt.yaml", b"no-such-setting: 1\n");
    put("list.yaml", b"[1]\n");
    put("open.yaml", b"a: [\n");
    folder
}

/// What it prints, what it complains of, and its exit code.
#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn reeve(folder: &Path, arguments: &str) -> (String, String, Option<i32>) {
    let mut reeve = Command::new(env!("CARGO_BIN_EXE_reeve"));
    reeve
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env_remove("KUBECONFIG")
        .env_remove("RUST_LOG");
    let output = reeve.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.code(),
    )
}

#[test]
fn files_that_are_no_component_are_called_by_their_names() {
    let folder = folder();
    for (file, expected) in [
        (
            "huge.wasm",
            "error: huge.wasm: it holds more than 33554432 bytes after decompression; build it \
             smaller\n",
        ),
        (
            "broken.wasm.gz",
            "error: broken.wasm.gz: it does not decompress: ",
        ),
        ("quotas.yaml", "there is no file quotas.yaml"),
    ] {
        let (_, error, code) = reeve(folder.path(), &format!("plugin inspect {file}"));
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("ConfigMap"), "{error}");
        assert_eq!(code, Some(2));
    }
}

/// As the one in which a plugin is written, from where one asks for that which is installed.
#[test]
fn a_folder_is_no_file() {
    let folder = folder();
    fs::create_dir(folder.path().join("greeting")).unwrap();
    let arguments = "plugin inspect greeting --kubeconfig none";
    let (_, error, _) = reeve(folder.path(), arguments);
    assert!(error.contains("cannot read the kubeconfig none"), "{error}");
}

/// What a file calls its imports is shown as a name, and not done.
#[test]
fn names_in_a_file_are_no_answers() {
    let folder = folder();
    let forged = "\u{1b}[2J\u{1b}[1;1Hasks to   none\u{9b}1m\u{202e}\r\nproblem   none";
    let names = (0..120).map(|index| format!("{forged}{index}"));
    let component = importing(&names.collect::<Vec<_>>());
    fs::write(folder.path().join("forged.wasm"), component).unwrap();
    let (text, _, code) = reeve(folder.path(), "plugin inspect forged.wasm");
    assert_eq!(code, Some(1), "{text}");
    let shown = "\\u{1b}[2J\\u{1b}[1;1Hasks to   none\\u{9b}1m\\u{202e}\\r\\nproblem   none";
    assert!(text.contains(&format!("imports   {shown}0\n")), "{text}");
    assert!(text.contains(&format!("{shown}99\n")), "{text}");
    assert!(!text.contains(&format!("{shown}100")), "{text}");
    assert!(
        text.contains("and 20 more, beyond what is loaded\n"),
        "{text}"
    );
    assert!(is_plain(&text), "{text:?}");

    let (text, _, _) = reeve(folder.path(), "plugin inspect forged.wasm -o json");
    assert!(is_plain(&text), "{text:?}");
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["imports"][119], format!("{forged}119"));
}

fn is_plain(text: &str) -> bool {
    let moves = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    !text.contains(moves)
}

/// A component that imports an empty interface under each of these names.
fn importing(names: &[String]) -> Vec<u8> {
    // One type: an instance type that declares nothing.
    let types = [1, 0x42, 0];
    let mut imports = Vec::new();
    leb128(names.len(), &mut imports);
    for name in names {
        imports.push(0);
        leb128(name.len(), &mut imports);
        imports.extend(name.as_bytes());
        // An instance, of that type.
        imports.extend([5, 0]);
    }
    let mut component = b"\0asm\x0d\0\x01\0".to_vec();
    for (id, section) in [(7, &types[..]), (10, &imports)] {
        component.push(id);
        leb128(section.len(), &mut component);
        component.extend(section);
    }
    component
}

fn leb128(mut number: usize, into: &mut Vec<u8>) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        into.push(if number == 0 { low } else { low | 0x80 });
        if number == 0 {
            return;
        }
    }
}

/// What no agent would run is not packed either.
#[test]
fn a_configuration_is_held_against_the_component() {
    let folder = folder();
    let package = |config: &str| {
        let arguments = format!("plugin package limitranges.wasm --config {config}");
        reeve(folder.path(), &arguments)
    };
    let (out, error, code) = package("good.yaml");
    assert_eq!((&*error, code), ("", Some(0)));
    assert!(out.contains("plugin.wasm.zst"), "{out}");
    for (config, parts) in [
        (
            "misspelt.yaml",
            [
                "no agent would run it with misspelt.yaml",
                "no-such-setting",
            ],
        ),
        (
            "list.yaml",
            ["no agent would run it with list.yaml", "not valid"],
        ),
        ("open.yaml", ["open.yaml is no YAML", "line"]),
        ("absent.yaml", ["cannot read absent.yaml", "No such file"]),
    ] {
        let (out, error, code) = package(config);
        for part in parts {
            assert!(error.contains(part), "`{part}` is not in {error}");
        }
        assert_eq!((&*out, code), ("", Some(2)), "{config}");
    }
}

/// Parts name their plugin in a label, which the name of a plugin need not fit into.
#[test]
fn only_what_fits_into_one_config_map_may_have_a_long_name() {
    let folder = folder();
    let component = fs::read(folder.path().join("quotas.wasm")).unwrap();
    // Custom sections are no part of what is compiled, and random bytes do not compress.
    let mut noise = Vec::new();
    let mut digest = reeve_core::Digest::of(b"noise");
    while noise.len() < 300_000 {
        noise.extend_from_slice(digest.bytes());
        digest = reeve_core::Digest::of(&noise);
    }
    let large = [component.as_slice(), &custom_section(&noise)].concat();
    fs::write(folder.path().join("large.wasm"), large).unwrap();
    let name = "a".repeat(64);
    let package = |file: &str, name: &str| {
        reeve(
            folder.path(),
            &format!("plugin package {file} --name {name}"),
        )
    };
    let (out, error, _) = package("quotas.wasm", &name);
    assert!(out.contains(&name), "{error}");
    let (out, error, code) = package("large.wasm", &name);
    assert!(error.contains("which holds 63 bytes; `aaa"), "{error}");
    assert!(
        error.contains("has 64: choose a shorter name with --name"),
        "{error}"
    );
    assert_eq!((&*out, code), ("", Some(2)));
    let (out, error, _) = package("large.wasm", &name[..63]);
    assert!(out.contains("reeve.dev/plugin-part-of"), "{error}");
}

/// A custom section of a component, with this in it.
fn custom_section(bytes: &[u8]) -> Vec<u8> {
    let mut body = vec![5];
    body.extend_from_slice(b"noise");
    body.extend_from_slice(bytes);
    let mut section = vec![0];
    leb128(body.len(), &mut section);
    section.extend(body);
    section
}
