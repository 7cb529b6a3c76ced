//! Containers of Profiles in storage accounts.

use reeve_sdk::prelude::*;

use crate::azure::container_of;
use crate::config::{Config, Instance};

/// The effect.
const NAME: &str = "container";
/// The metadata of a container with the Profile that it is for. Different names give
/// one container; here it is said whose it is.
const OWNER: &str = "x-ms-meta-kubeflowprofile";
/// The header in which Azure says what is wrong.
const ERROR: &str = "x-ms-error-code";

/// What `actuate` needs to know.
#[output]
struct Input {
    profile: String,
    /// URL of the container.
    url: String,
}

/// What came of it.
#[output]
struct Fact<'a> {
    url: &'a str,
}

/// What is asked of the operator: nothing without an endpoint.
pub(crate) fn declared(config: &Config, manifest: Manifest) -> Manifest {
    let makers = makers(config);
    let mut endpoints: Vec<&str> = Vec::new();
    for endpoint in makers.iter().map(Instance::endpoint) {
        if !endpoints.contains(&endpoint) {
            endpoints.push(endpoint);
        }
    }
    if endpoints.is_empty() {
        return manifest;
    }
    let rule = ActionRule::new(NAME)
        .describe("a container for each Profile in the storage accounts of the instances");
    manifest.action(
        endpoints
            .into_iter()
            .fold(rule, |rule, endpoint| rule.http(format!("{endpoint}/"))),
    )
}

/// The instances whose containers are made.
fn makers(config: &Config) -> Vec<Instance> {
    let mut makers = config.instances();
    makers.retain(|instance| !instance.read_only && !instance.endpoint().is_empty());
    makers
}

/// The effects for a Profile.
pub(crate) fn actions(profile: &str, config: &Config) -> Vec<Action> {
    let Some(container) = container_of(profile) else {
        return Vec::new();
    };
    let action = |instance: &Instance| {
        Action::new(NAME, key(instance)).input(&Input {
            profile: profile.to_owned(),
            url: format!("{}/{container}", instance.endpoint()),
        })
    };
    makers(config).iter().map(action).collect()
}

/// The effect by which the container of an instance comes to be: its own, or that of
/// the instance that writes what this one reads.
pub(crate) fn needed(instance: &Instance, config: &Config) -> Option<String> {
    let same = |one: &&Instance| one.secret() == instance.secret();
    let makers = makers(config);
    let own = makers.iter().find(|one| one.name == instance.name);
    own.or_else(|| makers.iter().find(same)).map(key)
}

fn key(instance: &Instance) -> String {
    format!("container-{}", instance.name)
}

/// Makes or looks at a container. None is ever deleted.
pub(crate) fn actuate(
    call: &Actuation,
    _: &Config,
    outside: &Outside,
) -> Result<Completion, Failure> {
    let input: Fields = call.input()?;
    let text = |name: &str| input.read(name).or_terminal("the input");
    let input = Input {
        profile: text("profile")?,
        url: text("url")?,
    };
    match call.verb {
        Verb::Apply => input.make(outside),
        Verb::Verify => {
            let known = input.metadata(outside)?;
            let is_ours = known.is_some_and(|known| header(&known, OWNER) == input.profile);
            Ok(Completion::is_in_place(is_ours))
        }
        Verb::Retire => Ok(Completion::done()),
    }
}

impl Input {
    fn make(&self, outside: &Outside) -> Result<Completion, Failure> {
        let request = self
            .request("PUT", "restype=container")
            .header(OWNER, &self.profile);
        let response = outside.send(&request)?;
        let exists = says(&response) == "ContainerAlreadyExists";
        if !response.is_success() && !exists {
            return Err(self.refused(&response));
        }
        if exists {
            let Some(known) = self.metadata(outside)? else {
                return Err(Failure::retry(format!(
                    "container {} was there a moment ago",
                    self.url
                )));
            };
            match header(&known, OWNER) {
                owner if owner == self.profile => {}
                // As the original made it, for the one Profile of this name.
                "" => self.take(outside, &known)?,
                owner => {
                    return Err(Failure::terminal(format!(
                        "container {} is that of Profile {owner}: both names give the same container; \
                         recreate one of the Profiles under another name",
                        self.url
                    )));
                }
            }
        }
        Ok(Completion::with_fact(&Fact { url: &self.url }))
    }

    /// What is said of the container; none when there is none.
    fn metadata(&self, outside: &Outside) -> Result<Option<Response>, Failure> {
        let response = outside.send(&self.request("GET", "restype=container&comp=metadata"))?;
        match response.status {
            404 => Ok(None),
            _ if response.is_success() => Ok(Some(response)),
            _ => Err(self.refused(&response)),
        }
    }

    /// Says whose container it is, and keeps what else is said of it.
    fn take(&self, outside: &Outside, known: &Response) -> Result<(), Failure> {
        let others = known
            .headers
            .iter()
            .filter(|(name, _)| name.starts_with("x-ms-meta-") && name != OWNER);
        let request = self
            .request("PUT", "restype=container&comp=metadata")
            .header(OWNER, &self.profile);
        let request = others.fold(request, |request, (name, value)| {
            request.header(name, value)
        });
        let response = outside.send(&request)?;
        if response.is_success() {
            Ok(())
        } else {
            Err(self.refused(&response))
        }
    }

    fn request(&self, method: &str, query: &str) -> Request {
        Request::new(method, format!("{}?{query}", self.url))
    }

    fn refused(&self, response: &Response) -> Failure {
        let advice = match response.status {
            401 | 403 => "; does the key that is granted for it belong to this storage account?",
            _ => "",
        };
        Failure::retry(format!(
            "container {}: Azure answers {} {}{advice}",
            self.url,
            response.status,
            says(response)
        ))
    }
}

/// What Azure calls the error.
fn says(response: &Response) -> &str {
    header(response, ERROR)
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    let found = response
        .headers
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map_or("", |(_, value)| value.as_str())
}
