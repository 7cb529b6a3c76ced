//! Quantities, as they stand in resources and quotas.

use reeve_sim::quantity::Quantity;

/// The input is the text of a quantity. Its canonical text is one that stays as it
/// is, and means the same.
pub fn quantities(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let Ok(quantity) = Quantity::parse(text) else {
        return;
    };
    let canonical = quantity.to_string();
    assert_eq!(Quantity::canonical(text).as_ref(), Ok(&canonical));
    assert_eq!(
        Quantity::canonical(&canonical).as_ref(),
        Ok(&canonical),
        "{text:?}"
    );
    let Ok(again) = Quantity::parse(&canonical) else {
        return;
    };
    assert_eq!(again.is_negative(), quantity.is_negative(), "{text:?}");
    assert_eq!(again.is_zero(), quantity.is_zero(), "{text:?}");
    assert_eq!(again.ceil(), quantity.ceil(), "{text:?}");
    let _ = quantity.clone().to_milli().to_string();
    let _ = quantity.exceeds(&again, &again);
}
