//! What is said to the database, and what becomes of its answers.

use std::cell::RefCell;
use std::rc::Rc;

use reeve_sdk::Actuates;
use reeve_sdk::prelude::*;

use super::config;
use crate::config::Config;
use crate::{ReevePlugin, database};

const CREATE_ROLE: &str = "CREATE ROLE <gitea_a_b> WITH LOGIN PASSWORD <password>";
const ALTER_ROLE: &str = "ALTER ROLE <gitea_a_b> WITH LOGIN PASSWORD <password>";
const MORE_RIGHTS: &str = "SELECT 1 FROM pg_roles WHERE rolname = $1 AND (rolsuper OR rolcreaterole OR \
                           rolcreatedb OR rolreplication OR rolbypassrls)";
const CLAIM: &str = "DO $$BEGIN PERFORM pg_advisory_xact_lock(hashtext(<gitea_a_b>)); IF \
                     shobj_description(<gitea_a_b>::regrole, 'pg_authid') IS NULL THEN COMMENT ON ROLE \
                     <gitea_a_b> IS <Reeve: Gitea unclassified of Profile a-b>; END IF; END$$";
const HOLDER: &str = "SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = $1";
const GRANT: &str = "GRANT <gitea_a_b> TO CURRENT_USER";
const CREATE: &str = "CREATE DATABASE <gitea_a_b> WITH OWNER <gitea_a_b> TEMPLATE template0 ENCODING \
                      'UTF8' LC_COLLATE <en-US> LC_CTYPE <en-US>";
const OWNER: &str = "SELECT rolname::text FROM pg_database JOIN pg_roles ON pg_roles.oid = datdba WHERE \
                     datname = $1";
const DROP: &str = "DROP DATABASE IF EXISTS <gitea_a_b> WITH (FORCE)";
const DROP_ROLE: &str = "DROP ROLE IF EXISTS <gitea_a_b>";

fn action(config: &Value) -> Action {
    let config: Config = serde_config(config);
    database::action("a-b", &config).unwrap()
}

/// The configuration as the plugin reads it: through its schema.
fn serde_config(config: &Value) -> Config {
    serde::Deserialize::deserialize(config).unwrap()
}

fn refused(state: &str) -> Result<Rows, SqlError> {
    Err(SqlError::Refused {
        state: state.to_owned(),
        message: "refused".to_owned(),
    })
}

fn row(text: &str) -> Result<Rows, SqlError> {
    Ok(Rows {
        rows: vec![vec![SqlValue::Text(text.to_owned())]],
        ..Rows::default()
    })
}

type Answer = (&'static str, fn() -> Result<Rows, SqlError>);

/// Carries out a verb on a server that gives these answers, and empty ones
/// otherwise. Returns what was said, and what came of it.
fn carry_out(verb: Verb, answers: &[Answer]) -> (Vec<String>, Result<Completion, Failure>) {
    let said = Rc::new(RefCell::new(Vec::new()));
    let (log, answers) = (Rc::clone(&said), answers.to_vec());
    let outside = Outside::test().with_sql(move |connection, statement| {
        assert_eq!(connection, "gitea-unclassified");
        let text = statement.to_string();
        let answer = answers.iter().find(|(known, _)| *known == text);
        log.borrow_mut().push(text);
        answer.map_or(Ok(Rows::default()), |(_, answer)| answer())
    });
    let config = config("unclassified");
    let call = Actuation::new(&action(&config), verb);
    let done = ReevePlugin::actuate(&call, config.to_string().as_bytes(), &outside);
    (said.take(), done)
}

#[track_caller]
fn check(verb: Verb, answers: &[Answer], said: &[&str], done: Result<Completion, Failure>) {
    assert_eq!(
        carry_out(verb, answers),
        (said.iter().map(|text| (*text).to_owned()).collect(), done)
    );
}

fn made() -> Result<Completion, Failure> {
    Ok(Completion::with_fact(&json!({"database": "gitea_a_b"})))
}

#[test]
fn a_database_is_made_with_its_role() {
    check(
        Verb::Apply,
        &[],
        &[CREATE_ROLE, CLAIM, HOLDER, GRANT, CREATE],
        made(),
    );
}

#[test]
fn what_an_earlier_call_has_made_is_taken_up() {
    check(
        Verb::Apply,
        &[
            (CREATE_ROLE, || refused("42710")),
            (CREATE, || refused("42P04")),
            (OWNER, || row("gitea_a_b")),
        ],
        &[
            CREATE_ROLE,
            MORE_RIGHTS,
            CLAIM,
            HOLDER,
            ALTER_ROLE,
            GRANT,
            CREATE,
            OWNER,
        ],
        made(),
    );
}

#[test]
fn what_is_somebody_elses_is_not() {
    check(
        Verb::Apply,
        &[
            (CREATE_ROLE, || refused("42710")),
            (MORE_RIGHTS, || row("1")),
        ],
        &[CREATE_ROLE, MORE_RIGHTS],
        Err(Failure::terminal(
            "role gitea_a_b exists and may do more than own a database; rename it, or take away its \
             SUPERUSER, CREATEROLE, CREATEDB, REPLICATION and BYPASSRLS",
        )),
    );
    check(
        Verb::Apply,
        &[(CREATE, || refused("42P04")), (OWNER, || row("bob"))],
        &[CREATE_ROLE, CLAIM, HOLDER, GRANT, CREATE, OWNER],
        Err(Failure::terminal(
            "database gitea_a_b exists and belongs to bob; rename it, or give it to role gitea_a_b",
        )),
    );
    check(
        Verb::Retire,
        &[(OWNER, || row("bob"))],
        &[OWNER],
        Err(Failure::terminal(
            "database gitea_a_b belongs to bob and is not dropped; drop or rename it yourself",
        )),
    );
}

#[test]
fn no_failure_is_swallowed() {
    let away = || Err(SqlError::Connection("the server is away".to_owned()));
    let tried_again = || Err(Failure::retry("the server is away"));
    check(
        Verb::Apply,
        &[(CREATE_ROLE, away)],
        &[CREATE_ROLE],
        tried_again(),
    );
    check(
        Verb::Apply,
        &[(GRANT, away)],
        &[CREATE_ROLE, CLAIM, HOLDER, GRANT],
        tried_again(),
    );
    check(
        Verb::Apply,
        &[(CREATE, away)],
        &[CREATE_ROLE, CLAIM, HOLDER, GRANT, CREATE],
        tried_again(),
    );
    check(Verb::Verify, &[(OWNER, away)], &[OWNER], tried_again());
    check(
        Verb::Retire,
        &[(OWNER, || row("gitea_a_b")), (DROP, away)],
        &[OWNER, HOLDER, DROP],
        tried_again(),
    );
    let not_permitted = || {
        Err(Failure::retry(
            "the login of SQL connection gitea-unclassified may not do it: refused (SQLSTATE 42501); \
             give it CREATEROLE and CREATEDB, and over roles that exist ADMIN",
        ))
    };
    check(
        Verb::Apply,
        &[(CREATE_ROLE, || refused("42501"))],
        &[CREATE_ROLE],
        not_permitted(),
    );
    check(
        Verb::Apply,
        &[(CREATE, || refused("42501"))],
        &[CREATE_ROLE, CLAIM, HOLDER, GRANT, CREATE],
        not_permitted(),
    );
    check(
        Verb::Apply,
        &[(CREATE, || refused("53100"))],
        &[CREATE_ROLE, CLAIM, HOLDER, GRANT, CREATE],
        Err(Failure::retry("refused (SQLSTATE 53100)")),
    );
}

#[test]
fn it_is_in_place_while_the_role_owns_it() {
    let own: Answer = (OWNER, || row("gitea_a_b"));
    for (answers, said, in_place) in [
        (vec![own], vec![OWNER, HOLDER], true),
        (
            vec![
                own,
                (HOLDER, || row("Reeve: Gitea unclassified of Profile a-b")),
            ],
            vec![OWNER, HOLDER],
            true,
        ),
        (
            vec![own, (HOLDER, || row("asked for by alice"))],
            vec![OWNER, HOLDER],
            true,
        ),
        (
            vec![own, (HOLDER, || row(RIVAL))],
            vec![OWNER, HOLDER],
            false,
        ),
        (vec![(OWNER, || row("bob"))], vec![OWNER], false),
        (vec![], vec![OWNER], false),
    ] {
        check(
            Verb::Verify,
            &answers,
            &said,
            Ok(Completion::is_in_place(in_place)),
        );
    }
}

const RIVAL: &str = "Reeve: Gitea protected-b of Profile a-b";

#[test]
fn two_giteas_do_not_share_a_role() {
    let told = || {
        Err(Failure::terminal(
            "role gitea_a_b belongs to another: its comment is \"Reeve: Gitea protected-b of Profile \
             a-b\". Give the Giteas of each classification a PostgreSQL server of their own, or, if \
             nobody needs that one, COMMENT ON ROLE gitea_a_b IS NULL",
        ))
    };
    let rival: Answer = (HOLDER, || row(RIVAL));
    // Its password stays, whoever of the two made the role.
    check(
        Verb::Apply,
        &[(CREATE_ROLE, || refused("42710")), rival],
        &[CREATE_ROLE, MORE_RIGHTS, CLAIM, HOLDER],
        told(),
    );
    check(Verb::Apply, &[rival], &[CREATE_ROLE, CLAIM, HOLDER], told());
    check(
        Verb::Retire,
        &[(OWNER, || row("gitea_a_b")), rival],
        &[OWNER, HOLDER],
        told(),
    );
}

#[test]
fn a_locale_that_the_server_does_not_have_is_named() {
    for (answer, state) in [
        ((|| refused("42809")) as fn() -> _, "42809"),
        (|| refused("22023"), "22023"),
    ] {
        check(
            Verb::Apply,
            &[(CREATE, answer)],
            &[CREATE_ROLE, CLAIM, HOLDER, GRANT, CREATE],
            Err(Failure::terminal(format!(
                "the server of SQL connection gitea-unclassified has no locale \"en-US\" for UTF-8 \
                 (SQLSTATE {state}); set /postgres/locale to one that it has, such as C or en_US.utf8"
            ))),
        );
    }
}

#[test]
fn an_old_server_drops_without_force() {
    check(
        Verb::Retire,
        &[(OWNER, || row("gitea_a_b")), (DROP, || refused("42601"))],
        &[
            OWNER,
            HOLDER,
            DROP,
            "DROP DATABASE IF EXISTS <gitea_a_b>",
            DROP_ROLE,
        ],
        Ok(Completion::done()),
    );
}

#[test]
fn it_is_dropped_with_its_role_only_where_that_is_wanted() {
    check(
        Verb::Retire,
        &[(OWNER, || row("gitea_a_b"))],
        &[OWNER, HOLDER, DROP, DROP_ROLE],
        Ok(Completion::done()),
    );
    let mut config = config("unclassified");
    let kept = action(&config);
    config["dropDatabase"] = json!(true);
    assert_eq!(action(&config), kept.retire());
}

#[test]
fn the_secret_has_what_gitea_reads() {
    let login = |user: &str| {
        format!(
            "DB_TYPE=postgres\nSSL_MODE=require\nNAME=gitea_a_b\nHOST=pg.example.com:5432\n\
             USER={user}\nPASSWD="
        )
    };
    let expected = |user: &str| {
        Action::new("database", "database")
            .input(&json!({
                "name": "gitea_a_b", "locale": "en-US", "connection": "gitea-unclassified",
                "holder": "Reeve: Gitea unclassified of Profile a-b",
            }))
            .secret(
                GeneratedSecret::new("password", "a-b", "gitea-postgresql-secret-unclassified")
                    .entry(
                        "database",
                        [SecretPart::Text(login(user)), SecretPart::Generated],
                    ),
            )
    };
    let mut config = config("unclassified");
    assert_eq!(action(&config), expected("gitea_a_b@pg.example.com"));
    config["postgres"]["userAtHost"] = json!(false);
    assert_eq!(action(&config), expected("gitea_a_b"));
}

#[test]
fn a_name_that_postgresql_would_cut_is_refused() {
    let name = "x".repeat(57);
    let config: Config = serde_config(&config("unclassified"));
    assert!(database::action(&name, &config).is_ok());
    let name = "x".repeat(58);
    assert_eq!(
        database::action(&name, &config).unwrap_err(),
        Failure::terminal(format!(
            "Profile {name}: the name of its database, gitea_{name}, would be longer than the 63 \
             characters that PostgreSQL allows; give the Profile a shorter name"
        ))
    );
}
