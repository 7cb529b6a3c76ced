//! Words for the operator's log.

use crate::called::Level;
use crate::state::State;
use reeve_core::printable::printable;

/// The longest reason of a trap that is kept: it goes into a condition, which
/// people read in a table, and which has to hold what to do about it, too.
const FAULT_MESSAGE_BYTES: usize = 2 << 10;

/// Writes one line.
pub(crate) fn write(state: &mut State, level: Level, message: String) {
    state.log.write(level, message);
}

/// Says why the guest is about to trap. The last one counts.
pub(crate) fn fault(state: &mut State, mut message: String) {
    let mut is_cut = cut(&mut message);
    let mut message = printable(message);
    is_cut |= cut(&mut message);
    if is_cut {
        message.push('…');
    }
    state.fault_message = Some(message);
}

/// Cuts what is too long. Returns whether it was.
fn cut(message: &mut String) -> bool {
    let is_long = message.len() > FAULT_MESSAGE_BYTES;
    message.truncate(message.floor_char_boundary(FAULT_MESSAGE_BYTES));
    is_long
}
