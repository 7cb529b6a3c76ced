//! What is made outside of the cluster for Profiles: databases and containers, as many at once
//! as the agent makes. Containers take the requests of their plugin; databases take its
//! statements but for those that guard against another owner of a role.

use crate::postgres::{CONNECTIONS, connect};
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _, try_join, try_join_all};
use http::{Method, Request, Response, StatusCode};
use reeve_outside::scram::verifier;
use reeve_outside::sign::Scheme;
use reeve_outside::{Http, HttpLimits, KeyError, Keys, Networks, Roots, Rule, Secret, Signer};
use reeve_test_platform::values::{INSTANCES, account_of};
use reeve_test_platform::{Platform, Tenant};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_postgres::Client;

/// All that is made.
pub(super) struct Outside {
    servers: Vec<Databases>,
    containers: Vec<Container>,
    http: Http,
}

/// What one server has of the plugins.
struct Databases {
    port: u16,
    roots: String,
    password: String,
    /// Each is called as the role that it belongs to.
    names: Vec<String>,
    locale: String,
}

struct Container {
    url: String,
    profile: String,
}

/// The key of all accounts, by the name of the account.
struct OneKey(BTreeMap<String, Arc<Signer>>);

impl Keys for OneKey {
    fn signer<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Signer>, KeyError>> {
        let signer = self.0.get(name).cloned();
        let signer = signer.ok_or_else(|| KeyError::NotGranted(name.to_owned()));
        async move { signer }.boxed()
    }
}

impl Outside {
    /// What the plugins have made of it, as far as servers tell: all databases, and for each
    /// Profile a container in each account.
    pub(super) fn of(platform: &Platform, tenants: &[Tenant]) -> Result<Self> {
        let mut servers = Vec::new();
        for server in &platform.databases {
            let ask = r"SELECT datname FROM pg_database WHERE datname LIKE 'gitea\_%'";
            let names = server.admin(&format!("COPY ({ask}) TO STDOUT;"))?;
            let ask = "SELECT DISTINCT datcollate FROM pg_database WHERE datname LIKE 'gitea%'";
            let locale = server.admin(&format!("COPY ({ask}) TO STDOUT;"))?;
            servers.push(Databases {
                port: server.port(),
                roots: platform.roots().to_owned(),
                password: platform.admin_password().to_owned(),
                names: names.lines().map(str::to_owned).collect(),
                locale: locale.trim().to_owned(),
            });
        }
        let (mut containers, mut rules, mut keys) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (_, _, secret, _, read_only) in INSTANCES {
            if read_only {
                continue;
            }
            let account = account_of(secret);
            let url = platform.storage.url_of(account);
            containers.extend(tenants.iter().map(|tenant| Container {
                url: format!("{url}{}", tenant.container()),
                profile: tenant.name.clone(),
            }));
            let mut rule = Rule::new(&url)?;
            rule.networks = Networks::new(vec!["127.0.0.0/8".parse()?]);
            rule.roots = Roots::Only(platform.roots().to_owned());
            rule.key = Some(account.to_owned());
            rules.push(rule);
            let entries = BTreeMap::from([
                ("azurestorageaccountname".to_owned(), account.into()),
                (
                    "azurestorageaccountkey".to_owned(),
                    platform.storage_key().into(),
                ),
            ]);
            let signer = Scheme::AzureSharedKey.signer(account, &entries)?;
            keys.insert(account.to_owned(), Arc::new(signer));
        }
        let http = Http::new(rules, Arc::new(OneKey(keys)), HttpLimits::default());
        Ok(Self {
            servers,
            containers,
            http,
        })
    }

    /// How many databases and containers there are.
    pub(super) fn counts(&self) -> (usize, usize) {
        let databases = self.servers.iter().map(|server| server.names.len());
        (databases.sum(), self.containers.len())
    }

    /// Makes all of it: databases that are not there, and containers, which may be.
    pub(super) async fn make(&self) -> Result<()> {
        let databases = try_join_all(self.servers.iter().map(Databases::make));
        let next = AtomicUsize::new(0);
        let containers = (0..CONNECTIONS).map(|_| async {
            while let Some(one) = self.containers.get(next.fetch_add(1, Ordering::Relaxed)) {
                one.make(&self.http).await?;
            }
            anyhow::Ok(())
        });
        try_join(databases, try_join_all(containers)).await?;
        Ok(())
    }
}

impl Databases {
    async fn make(&self) -> Result<()> {
        let next = AtomicUsize::new(0);
        let connections = (0..CONNECTIONS).map(|_| async {
            let client = connect(self.port, &self.roots, &self.password).await?;
            while let Some(name) = self.names.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.make_one(&client, name).await.context(name.clone())?;
            }
            anyhow::Ok(())
        });
        try_join_all(connections).await?;
        Ok(())
    }

    async fn make_one(&self, client: &Client, name: &str) -> Result<()> {
        // As the agent does: the server is told a verifier, and computes none.
        let verifier = verifier(&Secret::generate()?)?;
        let locale = &self.locale;
        let statements = [
            format!(r#"CREATE ROLE "{name}" WITH LOGIN PASSWORD '{verifier}'"#),
            format!(r#"COMMENT ON ROLE "{name}" IS 'of a bare loop'"#),
            format!(r#"GRANT "{name}" TO CURRENT_USER"#),
            format!(
                r#"CREATE DATABASE "{name}" WITH OWNER "{name}" TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE '{locale}' LC_CTYPE '{locale}'"#
            ),
        ];
        for statement in &statements {
            client.execute(statement, &[]).await?;
        }
        Ok(())
    }
}

/// The metadata of a container with the Profile that it is for.
const OWNER: &str = "x-ms-meta-kubeflowprofile";

impl Container {
    async fn make(&self, http: &Http) -> Result<()> {
        let made = self.send(http, Method::PUT, "restype=container").await?;
        if made.status() == StatusCode::CONFLICT {
            let ask = "restype=container&comp=metadata";
            let known = self.send(http, Method::GET, ask).await?;
            let owner = known.headers().get(OWNER);
            ensure!(
                owner.is_some_and(|owner| owner == self.profile.as_str()),
                "{} is not that of {}: {owner:?}",
                self.url,
                self.profile
            );
            return Ok(());
        }
        ensure!(
            made.status().is_success(),
            "{}: {}",
            self.url,
            made.status()
        );
        Ok(())
    }

    async fn send(&self, http: &Http, method: Method, query: &str) -> Result<Response<Bytes>> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}?{query}", self.url))
            .header(OWNER, &self.profile)
            .body(Bytes::new())?;
        Ok(http.send(request).await?)
    }
}
