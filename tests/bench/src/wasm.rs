//! Components with more in them: another one that does the same, or a module that does
//! harm before the first call.
//!
//! The sections of a component may come in any order, so what is put behind the last one
//! is part of it like everything else. A core module that is put there and instantiated
//! runs its start function, and has its memories and tables, in every instance of the
//! component. The modules are so small that they are written down as the bytes they are.

/// What a module and a component start with.
const MODULE: &[u8] = b"\0asm\x01\0\0\0";
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// A section that means nothing, of a component or of a module.
const CUSTOM: u8 = 0;

/// Sections of a component.
const CORE_MODULE: u8 = 1;
const CORE_INSTANCE: u8 = 2;

/// Sections of a module.
const TYPES: u8 = 1;
const FUNCTIONS: u8 = 3;
const TABLES: u8 = 4;
const MEMORIES: u8 = 5;
const START: u8 = 8;
const CODE: u8 = 10;

/// Types of values.
const I32: u8 = 0x7f;
const FUNCTION_REFERENCE: u8 = 0x70;

/// Instructions that always mean the same here.
const LOOP: &[u8] = &[0x03, 0x40];
const IF: &[u8] = &[0x04, 0x40];
const ELSE: &[u8] = &[0x05];
const END: &[u8] = &[0x0b];
const BRANCH_BACK: &[u8] = &[0x0c, 0];
const DROP: &[u8] = &[0x1a];
const LOAD: &[u8] = &[0x28, 2, 0];
const MEMORY_GROW: &[u8] = &[0x40, 0];
const MULTIPLY: &[u8] = &[0x6c];
const NO_REFERENCE: &[u8] = &[0xd0, FUNCTION_REFERENCE];
const MEMORY_FILL: &[u8] = &[0xfc, 0x0b, 0];
const TABLE_FILL: &[u8] = &[0xfc, 0x11, 0];

/// Instructions that say on which local.
const GET: u8 = 0x20;
const SET: u8 = 0x21;

/// Bytes of a page of memory.
const PAGE: usize = 64 << 10;

/// A component that does the same and is another one, of this size or its own if that is
/// larger: a custom section in it has its number, and the rest of its bytes.
pub(crate) fn another(component: &[u8], number: usize, size: usize) -> Vec<u8> {
    let mut contents = vec![5];
    contents.extend(b"bench");
    contents.extend(number.to_le_bytes());
    // The section's id and its length.
    let room = size.saturating_sub(component.len() + contents.len() + 6);
    contents.extend(std::iter::repeat_n(b'.', room));
    [component, &section(CUSTOM, &contents)].concat()
}

/// A component with this core module and so many instances of it. None when the bytes are
/// no component.
pub(crate) fn graft(component: &[u8], module: &[u8], instances: usize) -> Option<Vec<u8>> {
    let mut modules = 0;
    let mut rest = component.strip_prefix(COMPONENT)?;
    while let Some((&id, sized)) = rest.split_first() {
        modules += usize::from(id == CORE_MODULE);
        let (size, contents) = decoded(sized)?;
        rest = contents.get(size..)?;
    }
    // By the number of the module, without arguments.
    let instance = [&[0], &*encoded(modules), &[0]].concat();
    let mut bytes = component.to_vec();
    bytes.extend(section(CORE_MODULE, module));
    bytes.extend(section(CORE_INSTANCE, &vector(&vec![instance; instances])));
    Some(bytes)
}

/// Grows its memory by a page until somebody ends it.
pub(crate) fn growing_memory() -> Vec<u8> {
    let memory = section(MEMORIES, &vector(&[vec![0, 1]]));
    starting(
        &memory,
        &[LOOP, &constant(1), MEMORY_GROW, DROP, BRANCH_BACK, END],
    )
}

/// Writes to all of a memory of so many pages.
pub(crate) fn filled_memory(pages: usize) -> Vec<u8> {
    let limits = [&[0], &*encoded(pages)].concat();
    let memory = section(MEMORIES, &vector(&[limits]));
    let length = constant(pages * PAGE);
    starting(&memory, &[&constant(0), &constant(1), &length, MEMORY_FILL])
}

/// Writes to all of a table of so many entries.
pub(crate) fn filled_table(entries: usize) -> Vec<u8> {
    let limits = [&[FUNCTION_REFERENCE, 0], &*encoded(entries)].concat();
    let table = section(TABLES, &vector(&[limits]));
    let length = constant(entries);
    starting(&table, &[&constant(0), NO_REFERENCE, &length, TABLE_FILL])
}

/// A function that takes long to compile: each of its blocks reads and writes some of its
/// locals, so that all of them are alive everywhere.
pub(crate) fn slow() -> Vec<u8> {
    const LOCALS: usize = 500;
    const BLOCKS: usize = 6_000;
    let mut body = [&[1], &*encoded(LOCALS), &[I32]].concat();
    for block in 0..BLOCKS {
        let (a, b) = (block % LOCALS, (block * 7 + 3) % LOCALS);
        let (get_a, get_b) = (local(GET, a), local(GET, b));
        let then = [&*get_a, LOAD, &local(SET, b)].concat();
        let otherwise = [&*get_b, &get_a, MULTIPLY, &local(SET, a)].concat();
        body.extend([&*get_a, IF, &then, ELSE, &otherwise, END].concat());
    }
    body.extend(END);
    let memory = section(MEMORIES, &vector(&[vec![0, 1]]));
    module(&memory, &body, &[])
}

/// A module with a function without locals that runs at the start.
fn starting(with: &[u8], instructions: &[&[u8]]) -> Vec<u8> {
    let body = [&[0], &*instructions.concat(), END].concat();
    module(with, &body, &section(START, &[0]))
}

/// A module with a function, and a table or memory.
fn module(with: &[u8], body: &[u8], start: &[u8]) -> Vec<u8> {
    let body = [&encoded(body.len()), body].concat();
    [
        MODULE,
        // Without parameters, without result.
        &section(TYPES, &vector(&[vec![0x60, 0, 0]])),
        &section(FUNCTIONS, &vector(&[vec![0]])),
        with,
        start,
        &section(CODE, &vector(&[body])),
    ]
    .concat()
}

fn section(id: u8, contents: &[u8]) -> Vec<u8> {
    [&[id], &*encoded(contents.len()), contents].concat()
}

fn vector(entries: &[Vec<u8>]) -> Vec<u8> {
    [encoded(entries.len()), entries.concat()].concat()
}

/// A number in LEB128.
fn encoded(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// The instruction that gives this number.
fn constant(number: usize) -> Vec<u8> {
    let mut bytes = [&[0x41], &*encoded(number)].concat();
    // It is one with a sign, for which its highest bit would be taken.
    if let Some(last) = bytes.last_mut()
        && *last & 0x40 != 0
    {
        *last |= 0x80;
        bytes.push(0);
    }
    bytes
}

fn local(instruction: u8, number: usize) -> Vec<u8> {
    [&[instruction], &*encoded(number)].concat()
}

/// A number in LEB128, and what is behind it.
fn decoded(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (mut number, mut rest) = (0, bytes);
    for shift in (0..usize::BITS).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        number |= usize::from(byte & 0x7f) << shift;
        rest = behind;
        if byte < 0x80 {
            return Some((number, rest));
        }
    }
    None
}
