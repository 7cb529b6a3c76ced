//! SQL, answered by the caller of `actuate`.

use crate::meter::Breach;
use crate::state::State;
use reeve_core::sql::{Rows, SqlError, Statement};

/// An answer for the guest, unless a limit ends the call.
pub(crate) type Answer<T> = Result<Result<T, SqlError>, Breach>;

/// Runs one statement by itself.
pub(crate) async fn query(
    state: &mut State,
    connection: String,
    statement: Statement,
) -> Answer<Rows> {
    let Some(outside) = state.outside.clone() else {
        return Ok(Err(elsewhere(state)));
    };
    let answer = outside.query(connection, statement).await;
    count(state, answer.as_ref().ok().into_iter())?;
    Ok(answer)
}

/// Runs statements in one transaction.
pub(crate) async fn transaction(
    state: &mut State,
    connection: String,
    statements: Vec<Statement>,
) -> Answer<Vec<Rows>> {
    let Some(outside) = state.outside.clone() else {
        return Ok(Err(elsewhere(state)));
    };
    let answer = outside.transaction(connection, statements).await;
    count(state, answer.iter().flatten())?;
    Ok(answer)
}

fn count<'a>(state: &mut State, rows: impl Iterator<Item = &'a Rows>) -> Result<(), Breach> {
    let bytes = rows.map(Rows::size).sum();
    state.meter.count_host_bytes(bytes)
}

fn elsewhere(state: &State) -> SqlError {
    SqlError::Forbidden(format!(
        "SQL answers in `actuate` only, not in `{}`; ask for an action instead",
        state.function
    ))
}
