//! A guest for tests that reads outside documents and has outside effects.
//!
//! For each Profile it makes a ConfigMap `report` in the namespace of its name, with
//! what it was told: the document `notes` if its configuration names one, its age if
//! that is asked for, and the facts of its effects. Told so, it wants nothing at all while it
//! cannot read that document.
//!
//! Its effects, each if it is configured: `service`, a resource `<profile>` below a
//! URL, made with PUT, looked for with GET and taken away with DELETE (with a query, it
//! is a container of Azure's storage); and `database`,
//! a PostgreSQL role and database `reeve_<profile>` whose password is in the Secret
//! `login` of the profile's namespace.

use reeve_sdk::prelude::*;
use std::time::Duration;

#[input]
struct Profile {
    metadata: Metadata,
}

#[config]
#[derive(Default)]
struct Config {
    /// URL of the document.
    url: Option<String>,
    /// File of the document.
    file: Option<String>,
    /// Name of the ConfigMap in namespace `shared` whose entry `notes` is the document.
    config_map: Option<String>,
    /// Seconds between two looks at it.
    seconds: Option<u32>,
    /// Whether nothing is wanted without it.
    needs_notes: bool,
    /// Whether its age is asked for.
    age: bool,
    /// URL of the service, with a slash at its end.
    service: Option<String>,
    /// What follows the name in that URL, such as `?restype=container`.
    query: Option<String>,
    /// Seconds between two looks at effects.
    verify: Option<u32>,
    /// Whether there is a database for each profile.
    database: bool,
    /// Whether effects are taken away in the end.
    retire: bool,
    /// Another value makes the effects again.
    revision: u32,
    /// Which profiles; all unless set.
    selector: Option<String>,
    /// Whether the ConfigMap is somebody else's.
    contribute: bool,
}

impl Config {
    fn source(&self) -> Option<SourceRule> {
        let rule = match (&self.url, &self.file, &self.config_map) {
            (Some(url), _, _) => SourceRule::url("notes", url),
            (_, Some(file), _) => SourceRule::file("notes", file),
            (_, _, Some(name)) => SourceRule::config_map("notes", "shared", name, "notes"),
            _ => return None,
        };
        let seconds = self.seconds.unwrap_or(60).into();
        Some(rule.describe("notes").every(Duration::from_secs(seconds)))
    }
}

#[input]
struct Input {
    name: String,
    service: Option<String>,
    query: Option<String>,
}

fn manifest(config: &Config) -> Manifest {
    let profiles = Kind::new("kubeflow.org/v1", "Profile");
    let mut manifest = Manifest::controller(profiles)
        .selector(config.selector.as_deref().unwrap_or_default())
        .projection(["/metadata/name"])
        .writes(
            Kind::new("v1", "ConfigMap"),
            Scope::NamespaceNamedLikePrimary,
        );
    if let Some(source) = config.source() {
        manifest = manifest.source(source);
    }
    if let Some(url) = &config.service {
        manifest = manifest.action(ActionRule::new("service").http(url));
    }
    if config.database {
        let rule = ActionRule::new("database")
            .sql("main")
            .secrets(Scope::NamespaceNamedLikePrimary);
        manifest = manifest.action(rule);
    }
    manifest
}

fn reconcile(profile: Profile, config: &Config, cx: &Context) -> Result<Outcome, Failure> {
    let name = profile.metadata.name;
    let mut data = json!({});
    if config.source().is_some() {
        data["notes"] = match cx.source("notes") {
            Ok(document) => String::from_utf8_lossy(&document.body).into(),
            Err(_) if config.needs_notes => return Ok(Outcome::nothing()),
            Err(error) => format!("none: {error}").into(),
        };
        if config.age {
            data["age"] = match cx.source_age("notes") {
                Ok(age) => age.as_secs().to_string().into(),
                Err(error) => error.to_string().into(),
            };
        }
    }
    for key in ["service", "database"] {
        if let Some(fact) = cx.fact::<Value>(key) {
            data[key] = fact.to_string().into();
        }
    }
    let mut report = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "report", "namespace": name},
        "data": data,
    });
    if config.contribute {
        report["data"]["envoy"] = "was here".into();
        report["metadata"]["annotations"] = json!({"reeve.dev/apply": "Contribute"});
    }
    let mut outcome = Outcome::of([report]);
    let input = json!({
        "name": name,
        "service": config.service,
        "query": config.query,
        "revision": config.revision,
    });
    let looked_after = |mut action: Action| {
        if config.retire {
            action = action.retire();
        }
        match config.verify {
            Some(seconds) => action.verify_every(Duration::from_secs(seconds.into())),
            None => action,
        }
    };
    if config.service.is_some() {
        let action = Action::new("service", "service").input(&input);
        outcome = outcome.action(looked_after(action));
    }
    if config.database {
        let login = GeneratedSecret::new("password", &*name, "login")
            .entry("user", [SecretPart::Text(role(&name))])
            .entry("password", [SecretPart::Generated]);
        let action = Action::new("database", "database")
            .input(&input)
            .secret(login);
        outcome = outcome.action(looked_after(action));
    }
    Ok(outcome)
}

fn actuate(call: &Actuation, _: &Config, outside: &Outside) -> Result<Completion, Failure> {
    let input: Input = call.input()?;
    match &*call.name {
        "service" => service(call, &input, outside),
        _ => database(call, &input, outside),
    }
}

fn service(call: &Actuation, input: &Input, outside: &Outside) -> Result<Completion, Failure> {
    let base = input.service.as_deref().or_terminal("no service")?;
    let method = match call.verb {
        Verb::Apply => "PUT",
        Verb::Verify => "GET",
        Verb::Retire => "DELETE",
    };
    let query = input.query.as_deref().unwrap_or_default();
    let has_body = call.verb == Verb::Apply && query.is_empty();
    let request = Request::new(method, format!("{base}{}{query}", input.name))
        .header("content-type", "text/plain")
        .body(if has_body { "made" } else { "" });
    let response = outside.send(&request)?;
    match (call.verb, response.status) {
        (Verb::Verify, 404) => Ok(Completion::is_in_place(false)),
        // It is there already, or not any more: an attempt before this one was heard.
        (Verb::Apply, 409) | (Verb::Retire, 404) => Ok(Completion::done()),
        _ if response.is_success() => {
            let text = String::from_utf8_lossy(&response.body).into_owned();
            Ok(Completion::with_fact(&json!({"answer": text})))
        }
        (_, status) => Err(Failure::retry(format!("the service answers {status}"))),
    }
}

fn role(profile: &str) -> String {
    format!("reeve_{}", profile.replace('-', "_"))
}

fn database(call: &Actuation, input: &Input, outside: &Outside) -> Result<Completion, Failure> {
    let role = role(&input.name);
    let exists = |statement: Sql| -> Result<bool, Failure> {
        let found = outside.query("main", &statement.bind(&*role))?;
        Ok(!found.rows.is_empty())
    };
    let has_role = || exists(Sql::text("SELECT 1 FROM pg_roles WHERE rolname = $1"));
    let has_database = || exists(Sql::text("SELECT 1 FROM pg_database WHERE datname = $1"));
    match call.verb {
        Verb::Verify => Ok(Completion::is_in_place(has_role()? && has_database()?)),
        Verb::Apply => {
            let make = match has_role()? {
                false => Sql::text("CREATE ROLE "),
                true => Sql::text("ALTER ROLE "),
            };
            let make = make.identifier(&*role).then(" WITH LOGIN PASSWORD ");
            outside.query("main", &make.password("password"))?;
            if !has_database()? {
                let make = Sql::text("CREATE DATABASE ").identifier(&*role);
                let make = make.then(" OWNER ").identifier(&*role);
                outside.query("main", &make.then(" TEMPLATE template0 ENCODING 'UTF8'"))?;
            }
            Ok(Completion::with_fact(&json!({"role": role})))
        }
        Verb::Retire => {
            for what in ["DROP DATABASE IF EXISTS ", "DROP ROLE IF EXISTS "] {
                outside.query("main", &Sql::text(what).identifier(&*role))?;
            }
            Ok(Completion::done())
        }
    }
}

reeve_sdk::plugin!(manifest, reconcile, actuate);
