//! How long tokens of accounts are good.

use crate::field::{Errors, FieldError, Path};

/// In seconds: ten minutes, and what fits 32 bits.
const SHORTEST: i64 = 10 * 60;
const LONGEST: i64 = 1 << 32;

/// Checks the `expirationSeconds` of what is at `path`.
pub(crate) fn validate(path: &Path<'_>, seconds: i64, errors: &mut Errors) {
    let why = if seconds < SHORTEST {
        "may not specify a duration less than 10 minutes"
    } else if seconds > LONGEST {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return;
    };
    let path = path.child("expirationSeconds");
    errors.push(FieldError::invalid(&path, &seconds.into(), why));
}
