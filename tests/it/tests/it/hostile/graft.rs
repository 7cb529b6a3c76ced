//! Components that were made hostile: an honest one with more in it.
//!
//! The sections of a component may come in any order, so what is put behind the
//! last one is part of it like everything else. A core module that is put there and
//! instantiated runs its start function, and has its memories and tables, in every
//! instance of the component, before the first call of it.

/// A component that takes more sections.
pub(super) struct Graft {
    bytes: Vec<u8>,
    modules: u32,
    components: u32,
}

const CORE_MODULE: u8 = 1;
const CORE_INSTANCE: u8 = 2;
const COMPONENT: u8 = 4;
const INSTANCE: u8 = 5;
const TYPE: u8 = 7;
const IMPORT: u8 = 10;
const EXPORT: u8 = 11;

/// An empty component.
const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

impl Graft {
    /// A component of the right name whose functions have the wrong types: for what
    /// is refused before that is looked at.
    pub(super) fn on_shell() -> Self {
        let text = r#"(component (instance $i) (export "reeve:plugin/controller-api@0.1.0" (instance $i)))"#;
        Self::on(wat::parse_str(text).unwrap())
    }

    /// A whole plugin.
    pub(super) fn on_plugin() -> Self {
        Self::on(reeve_it::plugin("limitranges"))
    }

    fn on(bytes: Vec<u8>) -> Self {
        let (mut modules, mut components) = (0, 0);
        let mut at = EMPTY.len();
        while at < bytes.len() {
            modules += u32::from(bytes[at] == CORE_MODULE);
            components += u32::from(bytes[at] == COMPONENT);
            let (size, start) = number(&bytes, at + 1);
            at = start + size;
        }
        Self {
            bytes,
            modules,
            components,
        }
    }

    /// Adds a core module and this many instances of it.
    pub(super) fn instances(self, module: &str, count: usize) -> Vec<u8> {
        let module = wat::parse_str(module).unwrap();
        let index = self.modules;
        let instantiate = [&[0][..], &encoded(index as usize), &[0]].concat();
        self.section(CORE_MODULE, &module)
            .section(CORE_INSTANCE, &vector(count, |_| instantiate.clone()))
            .bytes
    }

    /// Adds a core module and an instance of it.
    pub(super) fn with(self, module: &str) -> Vec<u8> {
        self.instances(module, 1)
    }

    /// Adds a component, and an instance of it.
    pub(super) fn component(self, text: &str) -> Vec<u8> {
        let component = wat::parse_str(text).unwrap();
        let index = self.components;
        let instantiate = [&[0][..], &encoded(index as usize), &[0]].concat();
        self.section(COMPONENT, &component)
            .section(INSTANCE, &vector(1, |_| instantiate.clone()))
            .bytes
    }

    /// Adds imports of interfaces without functions.
    pub(super) fn imports(self, count: usize) -> Vec<u8> {
        // The type of an instance that has nothing in it.
        let types = vector(1, |_| vec![0x42, 0]);
        let imports = vector(count, |index| {
            let name = format!("wasi:io/poll{index}@0.2.0");
            // By name, of the type that was added first: of a shell, the first one.
            [&[0][..], &encoded(name.len()), name.as_bytes(), &[5, 0]].concat()
        });
        self.section(TYPE, &types).section(IMPORT, &imports).bytes
    }

    /// Adds exports of the instance that a shell exports already.
    pub(super) fn exports(self, count: usize) -> Vec<u8> {
        let exports = vector(count, |index| {
            let name = format!("wasi:io/poll{index}@0.2.0");
            // By name, of an instance, the first one, as the type that it has.
            [&[0][..], &encoded(name.len()), name.as_bytes(), &[5, 0, 0]].concat()
        });
        self.section(EXPORT, &exports).bytes
    }

    /// Adds types of functions.
    pub(super) fn types(self, count: usize) -> Vec<u8> {
        // Without parameters, without result.
        self.section(TYPE, &vector(count, |_| vec![0x40, 0, 1, 0]))
            .bytes
    }

    /// Adds components within components, so deep.
    pub(super) fn nested(self, depth: usize) -> Vec<u8> {
        let mut inner = EMPTY.to_vec();
        for _ in 1..depth {
            let mut outer = EMPTY.to_vec();
            outer.push(COMPONENT);
            outer.extend(encoded(inner.len()));
            outer.extend(inner);
            inner = outer;
        }
        self.section(COMPONENT, &inner).bytes
    }

    fn section(mut self, id: u8, contents: &[u8]) -> Self {
        self.bytes.push(id);
        self.bytes.extend(encoded(contents.len()));
        self.bytes.extend(contents);
        self
    }
}

/// A vector of the binary format.
fn vector(count: usize, entry: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let mut bytes = encoded(count);
    bytes.extend((0..count).flat_map(entry));
    bytes
}

/// A number in LEB128.
fn encoded(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// A number in LEB128, and where it ends.
fn number(bytes: &[u8], mut at: usize) -> (usize, usize) {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = bytes[at];
        number |= usize::from(byte & 0x7f) << shift;
        at += 1;
        if byte < 0x80 {
            return (number, at);
        }
        shift += 7;
    }
}
