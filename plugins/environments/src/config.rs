//! The configuration.

use std::time::Duration;

use reeve_sdk::names::check_dns_label;
use reeve_sdk::prelude::*;

use crate::fields::Fields;
use crate::names::{is_plain, is_url};

/// Sources that a manifest may declare: the pages, and the index of packages.
pub(crate) const MOST_PAGES: u32 = 31;

/// Whose deployments are kept, and where they are listed.
#[config]
pub(crate) struct Config {
    /// Namespaces whose PredictionEnvironments are served, datarobot-mlops unless set.
    pub(crate) namespaces: Vec<String>,
    /// DataRobot.
    pub(crate) datarobot: Datarobot,
    /// What lists the deployments.
    pub(crate) supervisor: Supervisor,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            namespaces: vec!["datarobot-mlops".to_owned()],
            datarobot: Datarobot::default(),
            supervisor: Supervisor::default(),
        }
    }
}

/// DataRobot.
#[config]
pub(crate) struct Datarobot {
    /// Its URL, https://app.datarobot.com unless set.
    url: String,
}

impl Default for Datarobot {
    fn default() -> Self {
        Self {
            url: "https://app.datarobot.com".to_owned(),
        }
    }
}

/// What lists the deployments.
#[config]
pub(crate) struct Supervisor {
    /// The list.
    pub(crate) deployments: Deployments,
    /// What stands where in it.
    pub(crate) fields: Fields,
    /// Statuses of deployments that are not to serve: stopping, inactive and archived
    /// unless set.
    pub(crate) stopped_statuses: Vec<String>,
    /// Where the packages of models are, of deployments that do not say it themselves.
    pub(crate) packages: Packages,
}

impl Default for Supervisor {
    fn default() -> Self {
        Self {
            deployments: Deployments::default(),
            fields: Fields::default(),
            stopped_statuses: ["stopping", "inactive", "archived"]
                .map(str::to_owned)
                .into(),
            packages: Packages::default(),
        }
    }
}

/// The list of deployments.
#[config]
pub(crate) struct Deployments {
    /// Its URL, /api/v2/deployments/ of DataRobot unless set.
    url: String,
    /// Its query, without limit and offset, which are added: deployments outside of
    /// DataRobot, in the order in which they were made, unless set. The order has to stay
    /// while deployments come and go.
    query: String,
    /// How many pages are read, 1 unless set and 31 at most. Each begins with the
    /// deployment that the one before it ends with.
    pub(crate) pages: u32,
    /// How many deployments are on a page, 100 unless set and 1000 at most.
    pub(crate) page_size: u32,
    /// Seconds between two looks, 60 unless set.
    poll_seconds: u32,
}

impl Default for Deployments {
    fn default() -> Self {
        Self {
            url: String::new(),
            query: "executionEnvironmentType=external&orderBy=createdAtTimestamp".to_owned(),
            pages: 1,
            page_size: 100,
            poll_seconds: 60,
        }
    }
}

/// Where the packages of models are.
#[config]
pub(crate) struct Packages {
    /// URL of an index: a JSON object with `url`, `sha256` and perhaps `sizeBytes` and
    /// `format` by the id of the package or of the model. There is none unless set.
    pub(crate) url: String,
    /// Seconds between two looks, 60 unless set.
    poll_seconds: u32,
}

impl Default for Packages {
    fn default() -> Self {
        Self {
            url: String::new(),
            poll_seconds: 60,
        }
    }
}

/// Name of the source of a page; the first is 1.
pub(crate) fn page_source(page: u32) -> String {
    format!("deployments-{page}")
}

/// Name of the source of the index.
pub(crate) const PACKAGES_SOURCE: &str = "packages";

impl Config {
    /// The URL of the list, as it is configured.
    pub(crate) fn list_url(&self) -> String {
        match self.supervisor.deployments.url.as_str() {
            "" => format!(
                "{}/api/v2/deployments/",
                self.datarobot.url.trim_end_matches('/')
            ),
            url => url.to_owned(),
        }
    }

    /// All documents that are read.
    pub(crate) fn sources(&self) -> Vec<SourceRule> {
        let list = &self.supervisor.deployments;
        let every = |seconds: u32| Duration::from_secs(seconds.into());
        let mut sources: Vec<SourceRule> = (1..=list.pages)
            .map(|page| {
                SourceRule::url(page_source(page), self.page_url(page))
                    .describe(format!("page {page} of the list of deployments"))
                    .every(every(list.poll_seconds))
            })
            .collect();
        let packages = &self.supervisor.packages;
        if !packages.url.is_empty() {
            sources.push(
                SourceRule::url(PACKAGES_SOURCE, &packages.url)
                    .describe("where the packages of models are, and their SHA-256")
                    .every(every(packages.poll_seconds)),
            );
        }
        sources
    }

    fn page_url(&self, page: u32) -> String {
        let list = &self.supervisor.deployments;
        let offset = list.before(page);
        let mut url = self.list_url();
        let own = [
            list.query.clone(),
            format!("limit={}", list.page_size),
            format!("offset={offset}"),
        ];
        for part in own.iter().filter(|part| !part.is_empty()) {
            if !url.contains('?') {
                url.push('?');
            } else if !url.ends_with(['?', '&']) {
                url.push('&');
            }
            url.push_str(part);
        }
        url
    }

    /// What can lead to nothing is refused here, where it has a path.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.namespaces.is_empty() {
            let problem = "empty; name the namespaces in which PredictionEnvironments are served";
            return Err(ConfigError::new("/namespaces", problem));
        }
        for (index, namespace) in self.namespaces.iter().enumerate() {
            check_dns_label(namespace).map_err(|error| {
                ConfigError::new(format!("/namespaces/{index}"), error.to_string())
            })?;
        }
        check_url("/datarobot/url", &self.datarobot.url)?;
        let supervisor = &self.supervisor;
        supervisor.deployments.check("/supervisor/deployments")?;
        supervisor.fields.check("/supervisor/fields")?;
        let packages = &supervisor.packages;
        if !packages.url.is_empty() {
            check_url("/supervisor/packages/url", &packages.url)?;
        }
        check_number(
            "/supervisor/packages/pollSeconds",
            packages.poll_seconds,
            86_400,
        )
    }
}

impl Deployments {
    /// How many deployments are before a page. What pages share shows whether they are of
    /// one moment: what goes before it, moves it.
    pub(crate) fn before(&self, page: u32) -> u64 {
        u64::from(page.saturating_sub(1)) * u64::from(self.page_size.saturating_sub(1))
    }

    /// How many deployments so many pages have room for.
    pub(crate) fn room(&self, pages: u32) -> u64 {
        self.before(pages) + u64::from(self.page_size)
    }

    fn check(&self, path: &str) -> Result<(), ConfigError> {
        let at = |field: &str| format!("{path}/{field}");
        if !self.url.is_empty() {
            check_url(&at("url"), &self.url)?;
        }
        if !is_plain(&self.query) || self.query.contains('#') || self.query.starts_with('?') {
            return Err(ConfigError::new(
                at("query"),
                "expected a query without the `?`, such as a=b&c=d; escape what cannot stand in a \
                 URL",
            ));
        }
        let from_url = self.url.split_once('?').map_or("", |(_, query)| query);
        for (field, query) in [("url", from_url), ("query", &self.query)] {
            let mut names = query.split('&').filter_map(|part| part.split('=').next());
            if let Some(name) = names.find(|name| ["limit", "offset"].contains(name)) {
                return Err(ConfigError::new(
                    at(field),
                    format!(
                        "says {name}, which is added for each page; remove it and set pageSize"
                    ),
                ));
            }
        }
        check_number(&at("pages"), self.pages, MOST_PAGES)?;
        check_number(&at("pageSize"), self.page_size, 1000)?;
        if self.pages > 1 && self.page_size < 2 {
            let problem = "1: with several pages, expected 2 to 1000";
            return Err(ConfigError::new(at("pageSize"), problem));
        }
        check_number(&at("pollSeconds"), self.poll_seconds, 86_400)
    }
}

fn check_url(path: &str, url: &str) -> Result<(), ConfigError> {
    if is_url(url) && !url.contains('#') {
        return Ok(());
    }
    let problem = "expected an http or https URL, such as https://app.datarobot.com";
    Err(ConfigError::new(path, problem))
}

fn check_number(path: &str, number: u32, most: u32) -> Result<(), ConfigError> {
    if (1..=most).contains(&number) {
        return Ok(());
    }
    Err(ConfigError::new(
        path,
        format!("{number}: expected 1 to {most}"),
    ))
}
