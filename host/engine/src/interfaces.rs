//! What a component imports and exports, by name, without compiling it.

use wasmparser::{BinaryReaderError, Parser, Payload};

/// Names of the outermost imports and exports of a component, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// What it needs of its host.
    pub imports: Vec<String>,
    /// What it offers.
    pub exports: Vec<String>,
}

/// Bytes that cannot be read as a component.
#[derive(Debug, thiserror::Error)]
#[error("the component cannot be read")]
pub struct InterfacesError(#[from] BinaryReaderError);

/// Reads the names of a component's imports and exports.
///
/// # Errors
///
/// When the bytes are no WebAssembly, or damaged up to where the names stand.
pub fn interfaces(bytes: &[u8]) -> Result<Interfaces, InterfacesError> {
    let mut found = Interfaces::default();
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    found.imports.push(import?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    found.exports.push(export?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_component_has_none() {
        assert!(interfaces(b"text").is_err());
        assert_eq!(
            interfaces(b"\0asm\x0d\0\x01\0").unwrap(),
            Interfaces::default()
        );
    }
}
