//! Components, as far as they are looked at before they are compiled.

use reeve_engine::{CompileLimits, LoadError, check_component};

/// The input is what stands where a component should be.
///
/// Whatever it is, looking at it ends, says the same each time, and says it in words
/// that fit into a condition; and what is let through under small limits is let
/// through under large ones.
pub fn components(input: &[u8]) {
    let small = CompileLimits {
        component_bytes: 4096,
        imports: 4,
        exports: 4,
        definitions: 64,
        ..CompileLimits::default()
    };
    let checked = check_component(input, &small);
    assert_eq!(checked, check_component(input, &small), "said by chance");
    let generously = check_component(input, &CompileLimits::default());
    match (&checked, &generously) {
        (Ok(()), Err(error)) => panic!("refused with more room: {error}"),
        (Err(LoadError::TooLarge { .. } | LoadError::TooMany { .. }), _) => {}
        (checked, generously) => assert_eq!(checked, generously, "it is not about room"),
    }
    for error in [checked.err(), generously.err()].into_iter().flatten() {
        let text = error.to_string();
        assert!(!text.is_empty());
        assert!(!error.retries(), "the same bytes will be no better: {text}");
    }
}
