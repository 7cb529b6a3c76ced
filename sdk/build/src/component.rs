//! From a core module to a component.

use std::fs;
use std::path::Path;

use wasm_encoder::{Encode, RawSection};
use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

use crate::inputs::{self, Inputs};
use crate::{BuildError, Profile, write_whole};

/// A built component, in memory.
#[derive(Clone, Debug)]
pub struct Component {
    name: String,
    bytes: Vec<u8>,
    inputs: Option<Inputs>,
}

impl Component {
    /// Wraps the core module of the package `name` into a component, which is
    /// validated.
    pub(crate) fn from_module(
        name: &str,
        module: &[u8],
        profile: Profile,
        inputs: Option<Inputs>,
    ) -> Result<Self, BuildError> {
        let malformed = |source| BuildError::Malformed {
            name: name.to_owned(),
            source,
        };
        let module = drop_custom_sections(module, profile).map_err(malformed)?;
        let component = ComponentEncoder::default()
            .validate(true)
            .module(&module)
            .and_then(|mut encoder| encoder.encode())
            .map_err(|reason| BuildError::Encode {
                name: name.to_owned(),
                reason: format!("{reason:#}"),
            })?;
        // The encoder adds names of its own.
        let bytes = drop_custom_sections(&component, profile).map_err(malformed)?;
        Ok(Self {
            name: name.to_owned(),
            bytes,
            inputs,
        })
    }

    /// The name of the package it was built from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The component in binary form.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The component in binary form, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes the component to `destination`, making its folder when needed.
    ///
    /// The file appears whole or not at all, so a program that watches the path
    /// never reads half a component. An identical file is left untouched, with
    /// its time of change. Beside it stands what it was built from, for
    /// [`is_current`](crate::is_current). Returns whether the component was written.
    ///
    /// # Errors
    ///
    /// When the folder or the file cannot be written.
    pub fn write_to(&self, destination: impl AsRef<Path>) -> Result<bool, BuildError> {
        let destination = destination.as_ref();
        let failed = |source| BuildError::Write {
            path: destination.to_owned(),
            source,
        };
        let differs = !fs::read(destination).is_ok_and(|present| present == self.bytes);
        if differs {
            write_whole(destination, &self.bytes, None).map_err(failed)?;
        }
        match &self.inputs {
            Some(inputs) => inputs.write_beside(destination),
            None => inputs::forget(destination),
        }
        .map_err(failed)?;
        Ok(differs)
    }
}

/// The length of the magic number and the version, in modules and components.
const PREAMBLE: usize = 8;

/// Copies a module or component without the custom sections that nobody reads.
/// Those of modules within a component stay.
///
/// `component-type` sections stay, since they say what the module implements and
/// the encoder consumes them. Symbol names stay in a development build, where
/// they make stack traces readable.
fn drop_custom_sections(
    binary: &[u8],
    profile: Profile,
) -> Result<Vec<u8>, wasmparser::BinaryReaderError> {
    let keep = |name: &str| {
        name.starts_with("component-type")
            || (profile == Profile::Dev && matches!(name, "name" | "component-name"))
    };
    let mut kept = binary.get(..PREAMBLE).unwrap_or_default().to_vec();
    // The parser goes on into modules and components within; they are copied as
    // the sections that they are.
    let mut depth = 0;
    for payload in Parser::new(0).parse_all(binary) {
        let payload = payload?;
        let is_ours = depth == 0;
        match &payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::CustomSection(section) if is_ours && !keep(section.name()) => continue,
            _ => {}
        }
        if let Some((id, range)) = payload.as_section().filter(|_| is_ours) {
            kept.push(id);
            RawSection {
                id,
                data: &binary[range],
            }
            .encode(&mut kept);
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;
    use wasm_encoder::{CustomSection, Module, TypeSection};

    fn inputs(folder: &Path) -> Option<Inputs> {
        fs::write(folder.join("m.d"), "m: a.rs\n").unwrap();
        Inputs::of_module(&folder.join("m"), [], "/none".into(), SystemTime::now())
    }

    fn module(custom: &[&str]) -> Vec<u8> {
        let mut module = Module::new();
        let mut types = TypeSection::new();
        types.ty().function([], []);
        module.section(&types);
        for name in custom {
            module.section(&CustomSection {
                name: (*name).into(),
                data: b"abc"[..].into(),
            });
        }
        module.finish()
    }

    #[test]
    fn custom_sections_are_dropped_except_those_that_are_read() {
        let all = ["component-type:reeve", "name", "producers", "other"];
        for (profile, kept) in [(Profile::Release, &all[..1]), (Profile::Dev, &all[..2])] {
            let stripped = drop_custom_sections(&module(&all), profile).unwrap();
            assert_eq!(stripped, module(kept), "{profile:?}");
        }
    }

    #[test]
    fn modules_within_a_component_are_copied_whole() {
        let inner = module(&["name", "other"]);
        let component = |custom: &[&str]| {
            let mut component = wasm_encoder::Component::new();
            component.section(&RawSection {
                id: wasm_encoder::ComponentSectionId::CoreModule.into(),
                data: &inner,
            });
            for name in custom {
                component.section(&CustomSection {
                    name: (*name).into(),
                    data: b"abc"[..].into(),
                });
            }
            component.finish()
        };
        let all = component(&["component-name", "producers"]);
        let stripped = drop_custom_sections(&all, Profile::Release).unwrap();
        assert_eq!(stripped, component(&[]));
    }

    #[test]
    fn bytes_that_are_no_module_are_named_as_such() {
        let error = Component::from_module("odd", b"no wasm", Profile::Release, None).unwrap_err();
        assert!(matches!(error, BuildError::Malformed { .. }), "{error}");
        assert_eq!(error.to_string(), "the module of odd is malformed");
    }

    #[test]
    fn a_file_appears_whole_and_an_equal_one_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/x.wasm");
        let component = Component {
            name: "x".to_owned(),
            bytes: b"bytes".to_vec(),
            inputs: inputs(folder.path()),
        };
        assert!(component.write_to(&path).unwrap());
        assert!(!component.write_to(&path).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"bytes");
        let beside = || {
            let beside = fs::read_dir(path.parent().unwrap()).unwrap();
            let mut names: Vec<_> = beside.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(
            beside(),
            ["x.inputs", "x.wasm"],
            "nothing else stays behind"
        );
        // What it was built from is not known, and not said any more.
        let component = Component {
            inputs: None,
            ..component
        };
        assert!(!component.write_to(&path).unwrap());
        assert_eq!(beside(), ["x.wasm"]);
    }
}
