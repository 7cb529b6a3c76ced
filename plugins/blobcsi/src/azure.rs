//! Names of containers in Azure Blob Storage.

/// The fewest and the most characters of a container's name.
const LENGTH: std::ops::RangeInclusive<usize> = 3..=63;

/// Fills up names that are too short, and replaces a dash where none may be.
const FILLER: char = 'a';

/// Why a text names no container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotAContainer;

impl std::fmt::Display for NotAContainer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "no name of a container: expected 3 to 63 lower-case letters, digits and single \
             dashes, with a letter or digit at both ends",
        )
    }
}

/// The container of a Profile: its name, made such as Azure has them.
///
/// Different names can give the same container, such as `a-b` and `a--b`. None is
/// given for a name in which there is no character that a container may have.
pub(crate) fn container_of(profile: &str) -> Option<String> {
    let mut name = String::new();
    for char in profile.chars() {
        let doubled = char == '-' && name.ends_with('-');
        if (char.is_ascii_alphanumeric() || char == '-') && !doubled {
            name.push(char.to_ascii_lowercase());
        }
    }
    if name.is_empty() {
        return None;
    }
    if name.starts_with('-') {
        name.insert(0, FILLER);
    }
    while name.len() < *LENGTH.start() {
        name.push(FILLER);
    }
    name.truncate(*LENGTH.end());
    if name.ends_with('-') {
        name.pop();
        name.push(FILLER);
    }
    Some(name)
}

/// Whether Azure has containers of this name.
pub(crate) fn check_container(name: &str) -> Result<(), NotAContainer> {
    let char = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let fits = LENGTH.contains(&name.len())
        && name.bytes().all(|byte| char(byte) || byte == b'-')
        && name.split('-').all(|part| !part.is_empty());
    if fits { Ok(()) } else { Err(NotAContainer) }
}
