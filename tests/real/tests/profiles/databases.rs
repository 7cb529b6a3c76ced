//! The databases, as whoever reads a login finds them.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::stage::Stage;
use reeve_test_platform::Tenant;
use reeve_test_platform::buckets::{PROTECTED_B, UNCLASSIFIED};

/// What a Secret says about how to get at a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Login {
    /// Which of the two servers.
    server: usize,
    user: String,
    database: String,
    pub(crate) password: String,
}

/// The logins of a Profile, one of each classification.
pub(crate) fn logins(stage: &Stage, tenant: &Tenant) -> Result<[Login; 2]> {
    Ok([login(stage, tenant, 0)?, login(stage, tenant, 1)?])
}

fn login(stage: &Stage, tenant: &Tenant, server: usize) -> Result<Login> {
    let class = [UNCLASSIFIED, PROTECTED_B][server];
    let name = format!("gitea-postgresql-secret-{class}");
    let secret = stage.platform.cluster.get("secret", &tenant.name, &name)?;
    let secret = secret.with_context(|| format!("no Secret {}/{name}", tenant.name))?;
    let text = secret["data"]["database"].as_str().context("no login")?;
    let text = String::from_utf8(STANDARD.decode(text)?)?;
    let port = stage.platform.ports()[server];
    let database = tenant.database();
    let before = format!(
        "DB_TYPE=postgres\nSSL_MODE=require\nNAME={database}\nHOST=localhost:{port}\nUSER={database}\nPASSWD="
    );
    let password = text.strip_prefix(&before);
    let password = password.with_context(|| format!("{name} says other things"))?;
    ensure!(password.len() >= 43, "that is no generated password");
    Ok(Login {
        server,
        user: database.clone(),
        database,
        password: password.to_owned(),
    })
}

impl Login {
    /// What the database answers to who has it.
    pub(crate) fn asks(&self, stage: &Stage, statement: &str) -> Result<String> {
        let Self {
            server,
            user,
            database,
            password,
        } = self;
        stage.platform.databases[*server].as_user(user, password, database, statement)
    }

    /// Opens the database with it, over TLS, as its owner.
    pub(crate) fn opens(&self, stage: &Stage) -> Result<()> {
        let Self { user, database, .. } = self;
        let ask = "SELECT current_user, current_database(), ssl, pg_get_userbyid(datdba) \
                   FROM pg_stat_ssl, pg_database \
                   WHERE pid = pg_backend_pid() AND datname = current_database()";
        let said = self.asks(stage, ask)?;
        let expected = format!("{user}|{database}|t|{user}");
        ensure!(said.trim() == expected, "{said}, not {expected}");
        Ok(())
    }
}
