//! Quantities, as they stand in resources and quotas.

use reeve_sim::quantity::Quantity;

/// The input is the text of a quantity. Its canonical text means the same, and is one that
/// stays as it is; only `1953.125Ki` is first `2000000`, as it is no multiple of 1024, and
/// then, as that has no suffix, `2M`.
pub fn quantities(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let Ok(quantity) = Quantity::parse(text) else {
        return;
    };
    let canonical = quantity.to_string();
    assert_eq!(Quantity::canonical(text).as_ref(), Ok(&canonical));
    let Ok(again) = Quantity::parse(&canonical) else {
        return;
    };
    let twice = again.to_string();
    let has_suffix = !canonical.ends_with(|c: char| c.is_ascii_digit());
    if has_suffix || !text.ends_with('i') {
        assert_eq!(twice, canonical, "{text:?}");
    }
    assert_eq!(Quantity::canonical(&twice).as_ref(), Ok(&twice), "{text:?}");
    assert_eq!(again.is_negative(), quantity.is_negative(), "{text:?}");
    assert_eq!(again.is_zero(), quantity.is_zero(), "{text:?}");
    assert_eq!(again.ceil(), quantity.ceil(), "{text:?}");
    let _ = quantity.clone().to_milli().to_string();
    let _ = quantity.exceeds(&again, &again);
}
