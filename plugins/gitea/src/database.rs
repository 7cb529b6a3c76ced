//! The database of a Gitea: its role, the Secret with its login, and itself.

use reeve_sdk::prelude::*;

use crate::config::Config;

/// The effect, and its identity: a Profile has one database.
pub(crate) const KEY: &str = "database";
/// What the generated password is called in statements.
const PASSWORD: &str = "password";
/// The longest name that PostgreSQL does not cut (`NAMEDATALEN` - 1).
const LONGEST: usize = 63;

/// SQLSTATE of a role that exists.
const ROLE_EXISTS: &str = "42710";
/// SQLSTATE of a database that exists.
const DATABASE_EXISTS: &str = "42P04";
/// SQLSTATE of a login that may not do something.
const NOT_PERMITTED: &str = "42501";
/// SQLSTATEs of a locale that the server does not have: `wrong_object_type` is what it says
/// of one by name, `invalid_parameter_value` of one that does not fit the encoding.
const NO_LOCALE: [&str; 2] = ["42809", "22023"];
/// SQLSTATE of what a server does not understand.
const NOT_UNDERSTOOD: &str = "42601";

/// What `actuate` needs to know.
#[input]
struct Input {
    name: String,
    locale: String,
    connection: String,
    /// Whose the role is, as its comment is to say: Giteas of both classifications have one
    /// of the same name.
    holder: String,
}

/// With what our comments on roles begin. Others are left as they are, and say nothing.
const OURS: &str = "Reeve: ";

/// What is asked of the operator.
pub(crate) fn rule(config: &Config) -> ActionRule {
    ActionRule::new(KEY)
        .describe("a role and a database in PostgreSQL for the Gitea of each Profile that asks")
        .sql(config.connection())
        .secrets(Scope::NamespaceNamedLikePrimary)
}

/// Role and database of a Profile.
pub(crate) fn name_of(profile: &str) -> String {
    format!("gitea_{}", profile.replace('-', "_"))
}

/// The Secret with the login. The host makes it, and nobody deletes it.
pub(crate) fn secret_of(config: &Config) -> String {
    format!("gitea-postgresql-secret-{}", config.classification)
}

/// The effect for a Profile.
pub(crate) fn action(profile: &str, config: &Config) -> Result<Action, Failure> {
    let name = name_of(profile);
    // PostgreSQL would cut it, and two Profiles might share what is left.
    if name.len() > LONGEST {
        return Err(Failure::terminal(format!(
            "Profile {profile}: the name of its database, {name}, would be longer than the {LONGEST} \
             characters that PostgreSQL allows; give the Profile a shorter name"
        )));
    }
    let postgres = &config.postgres;
    let user = match postgres.user_at_host {
        true => format!("{name}@{}", postgres.host),
        false => name.clone(),
    };
    let login = format!(
        "DB_TYPE=postgres\nSSL_MODE=require\nNAME={name}\nHOST={}:{}\nUSER={user}\nPASSWD=",
        postgres.host, postgres.port
    );
    let secret = GeneratedSecret::new(PASSWORD, profile, secret_of(config))
        .entry("database", [SecretPart::Text(login), SecretPart::Generated]);
    let action = Action::new(KEY, KEY)
        .input(&json!({
            "name": name, "locale": postgres.locale, "connection": config.connection(),
            "holder": format!("{OURS}Gitea {} of Profile {profile}", config.classification),
        }))
        .secret(secret);
    Ok(match config.drop_database {
        true => action.retire(),
        false => action,
    })
}

/// Makes, looks at or drops a database.
pub(crate) fn actuate(
    call: &Actuation,
    _: &Config,
    outside: &Outside,
) -> Result<Completion, Failure> {
    let input: Input = call.input()?;
    let server = Server { outside, input };
    match call.verb {
        Verb::Apply => server.make(),
        Verb::Verify => Ok(Completion::is_in_place(
            server.owner()?.as_ref() == Some(&server.input.name) && server.rival()?.is_none(),
        )),
        Verb::Retire => server.drop(),
    }
}

struct Server<'a> {
    outside: &'a Outside,
    input: Input,
}

impl Server<'_> {
    fn make(&self) -> Result<Completion, Failure> {
        let name = &self.input.name;
        let role = |verb| {
            Sql::text(verb)
                .identifier(name)
                .then(" WITH LOGIN PASSWORD ")
                .password(PASSWORD)
        };
        let exists = match self.run(&role("CREATE ROLE ")) {
            Err(error) if error.is_state(ROLE_EXISTS) => true,
            made => made.map(|_| false).map_err(|error| self.explain(error))?,
        };
        if exists {
            self.check_role()?;
        }
        self.claim()?;
        if exists {
            self.run(&role("ALTER ROLE "))
                .map_err(|error| self.explain(error))?;
        }
        // The owner of a database can be set only by who has its rights.
        let grant = Sql::text("GRANT ")
            .identifier(name)
            .then(" TO CURRENT_USER");
        self.run(&grant).map_err(|error| self.explain(error))?;
        let locale = &self.input.locale;
        let create = Sql::text("CREATE DATABASE ")
            .identifier(name)
            .then(" WITH OWNER ")
            .identifier(name)
            .then(" TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE ")
            .literal(locale)
            .then(" LC_CTYPE ")
            .literal(locale);
        match self.run(&create) {
            Err(error) if error.is_state(DATABASE_EXISTS) => self.check_database()?,
            Err(SqlError::Refused { state, .. }) if NO_LOCALE.contains(&&*state) => {
                return Err(Failure::terminal(format!(
                    "the server of SQL connection {} has no locale {locale:?} for UTF-8 (SQLSTATE \
                     {state}); set /postgres/locale to one that it has, such as C or en_US.utf8",
                    self.input.connection
                )));
            }
            made => {
                made.map_err(|error| self.explain(error))?;
            }
        }
        Ok(Completion::with_fact(&json!({"database": name})))
    }

    /// That a role which was there is one that an earlier call, or the original, may
    /// have made: it gets a password that a tenant can read.
    fn check_role(&self) -> Result<(), Failure> {
        let name = &self.input.name;
        let look = Sql::text(
            "SELECT 1 FROM pg_roles WHERE rolname = $1 AND \
             (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)",
        )
        .bind(name.as_str());
        if self.run(&look)?.rows.is_empty() {
            return Ok(());
        }
        Err(Failure::terminal(format!(
            "role {name} exists and may do more than own a database; rename it, or take away its \
             SUPERUSER, CREATEROLE, CREATEDB, REPLICATION and BYPASSRLS"
        )))
    }

    /// Makes the role this Gitea's, unless it is another's. Two that make it at once are told
    /// apart by who comes first here.
    fn claim(&self) -> Result<(), Failure> {
        let Input { name, holder, .. } = &self.input;
        let claim = Sql::text("DO $$BEGIN PERFORM pg_advisory_xact_lock(hashtext(")
            .literal(name)
            .then(")); IF shobj_description(")
            .literal(name)
            .then("::regrole, 'pg_authid') IS NULL THEN COMMENT ON ROLE ")
            .identifier(name)
            .then(" IS ")
            .literal(holder)
            .then("; END IF; END$$");
        self.run(&claim).map_err(|error| self.explain(error))?;
        self.check_holder()
    }

    /// That the role is not that of another Gitea, whose password would be changed.
    fn check_holder(&self) -> Result<(), Failure> {
        let name = &self.input.name;
        match self.rival()? {
            Some(other) => Err(Failure::terminal(format!(
                "role {name} belongs to another: its comment is {other:?}. Give the Giteas of \
                 each classification a PostgreSQL server of their own, or, if nobody needs that \
                 one, COMMENT ON ROLE {name} IS NULL"
            ))),
            None => Ok(()),
        }
    }

    /// The other Gitea to which the role belongs, if it does.
    fn rival(&self) -> Result<Option<String>, Failure> {
        let comment = self
            .text("SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = $1")?;
        let is_rival = |said: &String| said.starts_with(OURS) && *said != self.input.holder;
        Ok(comment.filter(is_rival))
    }

    /// That a database which was there belongs to the role.
    fn check_database(&self) -> Result<(), Failure> {
        let name = &self.input.name;
        match self.owner()? {
            Some(owner) if owner == *name => Ok(()),
            Some(owner) => Err(Failure::terminal(format!(
                "database {name} exists and belongs to {owner}; rename it, or give it to role {name}"
            ))),
            None => Err(Failure::retry(format!(
                "database {name} was there a moment ago"
            ))),
        }
    }

    /// To whom the database belongs, if it exists.
    fn owner(&self) -> Result<Option<String>, Failure> {
        self.text(
            "SELECT rolname::text FROM pg_database JOIN pg_roles ON pg_roles.oid = datdba \
             WHERE datname = $1",
        )
    }

    /// The text that is asked for about the name of role and database.
    fn text(&self, question: &'static str) -> Result<Option<String>, Failure> {
        let look = Sql::text(question).bind(self.input.name.as_str());
        let found = self.run(&look)?.rows;
        Ok(found.into_iter().flatten().find_map(|value| match value {
            SqlValue::Text(text) => Some(text),
            _ => None,
        }))
    }

    fn drop(&self) -> Result<Completion, Failure> {
        let name = &self.input.name;
        if let Some(owner) = self.owner()?.filter(|owner| owner != name) {
            return Err(Failure::terminal(format!(
                "database {name} belongs to {owner} and is not dropped; drop or rename it yourself"
            )));
        }
        self.check_holder()?;
        let drop = || Sql::text("DROP DATABASE IF EXISTS ").identifier(name);
        match self.run(&drop().then(" WITH (FORCE)")) {
            // Before PostgreSQL 13 it waits until nobody is connected.
            Err(error) if error.is_state(NOT_UNDERSTOOD) => self.run(&drop()),
            dropped => dropped,
        }
        .map_err(|error| self.explain(error))?;
        let role = Sql::text("DROP ROLE IF EXISTS ").identifier(name);
        self.run(&role).map_err(|error| self.explain(error))?;
        Ok(Completion::done())
    }

    fn run(&self, statement: &Sql) -> Result<Rows, SqlError> {
        self.outside.query(&self.input.connection, statement)
    }

    /// Says what to do where only a person can.
    fn explain(&self, error: SqlError) -> Failure {
        if error.is_state(NOT_PERMITTED) {
            return Failure::retry(format!(
                "the login of SQL connection {} may not do it: {error}; give it CREATEROLE and \
                 CREATEDB, and over roles that exist ADMIN",
                self.input.connection
            ));
        }
        error.into()
    }
}
