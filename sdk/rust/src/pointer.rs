//! JSON Pointers (RFC 6901), as places in documents are told to people.

/// A key as a part of a JSON Pointer: `/` and `~` in it are escaped.
#[must_use]
pub fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The pointer to what stands under a key of what is at `path`.
#[must_use]
pub fn below(path: &str, key: &str) -> String {
    format!("{path}/{}", escaped(key))
}

/// The key that a part of a JSON Pointer stands for.
#[must_use]
pub fn unescaped(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back() {
        for (key, part) in [
            ("a", "a"),
            ("a/b", "a~1b"),
            ("~", "~0"),
            ("~1", "~01"),
            ("", ""),
        ] {
            assert_eq!(escaped(key), part);
            assert_eq!(unescaped(part), key);
        }
        assert_eq!(below("/a", "b/c"), "/a/b~1c");
    }
}
