//! The configuration, checked: both spellings made one, names taken apart.

use std::net::Ipv4Addr;

use reeve_sdk::names::{check_dns_label, check_dns_subdomain, check_label_key};
use reeve_sdk::pointer::below;
use reeve_sdk::prelude::*;

use crate::config::{Builder, Config};
use crate::image::{Image, is_host};

/// A configuration that makes sense. What is not set at all is empty: it is wanted
/// only by who deploys a model, see [`Settings::missing`].
pub(crate) struct Settings<'a> {
    pub(crate) config: &'a Config,
    pub(crate) ingress_class: &'a str,
    /// Where models are found from outside, if anywhere.
    pub(crate) root: Option<Root<'a>>,
    /// Image of the monitoring agent, if there is one.
    pub(crate) tracking: Option<&'a str>,
    /// The prediction server.
    pub(crate) base: Option<Image>,
    /// Where images are pushed.
    pub(crate) repository: Option<Image>,
    pub(crate) credentials: Credentials<'a>,
}

/// The URL below which models are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root<'a> {
    /// The URL, without a slash at its end.
    pub(crate) url: &'a str,
    /// Its host, without a port, if that is a name: an Ingress has no rules for addresses.
    pub(crate) host: Option<&'a str>,
    /// Its path: empty, or with a slash in front and none at the end.
    pub(crate) path: &'a str,
}

/// With what registries are logged in to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credentials<'a> {
    /// With what the account of the builds has from its cloud, or with nothing.
    Account,
    /// With the key `config.json` of this ConfigMap.
    ConfigMap(&'a str),
    /// With this Secret.
    Secret(&'a str),
}

/// The formats of models that there are, and the names of files that hold them.
pub(crate) const FORMATS: [(&str, &str); 2] = [
    ("datarobot", "model.mlpkg"),
    ("datarobotScoringCode", "model.jar"),
];

impl<'a> Settings<'a> {
    /// Whether a URL is one of DataRobot, to which the token may go.
    pub(crate) fn is_of_datarobot(&self, url: &str) -> bool {
        origin(url).eq_ignore_ascii_case(origin(&self.config.datarobot.url))
    }

    /// Checks the configuration.
    pub(crate) fn of(config: &'a Config) -> Result<Self, ConfigError> {
        let builder = &config.image_builder;
        let ingress_class = one(
            ("/ingress/className", &config.ingress.class_name),
            (
                "/predictionServer/ingressClassName",
                &config.prediction_server.ingress_class_name,
            ),
        )?;
        let root = one(
            (
                "/ingress/outfacingURLPrefix",
                &config.ingress.outfacing_URL_prefix,
            ),
            (
                "/predictionServer/outfacingUrlRoot",
                &config.prediction_server.outfacing_url_root,
            ),
        )?;
        one(
            ("/bosun/repository", &config.bosun.repository),
            (
                "/managementAgent/repository",
                &config.management_agent.repository,
            ),
        )?;
        let tracking = one(
            ("/tracking/image", &config.tracking.image),
            ("/trackingAgent/image", &config.tracking_agent.image),
        )?;
        check_names(config)?;
        check_lists(config)?;
        for image in [
            ("/imageBuilder/image", &*builder.image),
            ("/imageBuilder/fetchImage", &*builder.fetch_image),
            (tracking.path, tracking.value),
        ] {
            image_at(image.0, image.1)?;
        }
        if builder.fetch_image.is_empty() {
            let problem = "empty; name an image with curl and sha256sum, or leave it out";
            return Err(ConfigError::new("/imageBuilder/fetchImage", problem));
        }
        Ok(Self {
            config,
            ingress_class: ingress_class.value,
            root: root_of(&root)?,
            tracking: Some(tracking.value).filter(|image| !image.is_empty()),
            base: base_of(&builder.pps_image)?,
            repository: repository_of(
                "/imageBuilder/generatedImageRepository",
                &builder.generated_image_repository,
            )?,
            credentials: credentials_of(&builder.config_map, &builder.secret_name)?,
        })
    }

    /// Paths of what is not set and is needed to deploy a model.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let builder = &self.config.image_builder;
        let builds = builder.builder != Builder::Mount;
        let token =
            self.config.datarobot.api_secret_name.is_empty() && (builds || self.tracking.is_some());
        [
            (self.base.is_none(), "/imageBuilder/ppsImage"),
            (
                builds && self.repository.is_none(),
                "/imageBuilder/generatedImageRepository",
            ),
            (token, "/datarobot/apiSecretName"),
        ]
        .into_iter()
        .filter_map(|(is_missing, path)| is_missing.then_some(path))
        .collect()
    }

    /// Whether this registry speaks plain HTTP.
    pub(crate) fn is_insecure(&self, registry: &str) -> bool {
        let registries = &self.config.image_builder.insecure_registries;
        registries.iter().any(|known| known == registry)
    }

    /// Whether the certificate of this registry is not verified.
    pub(crate) fn is_unverified(&self, registry: &str) -> bool {
        let registries = &self.config.image_builder.skip_ssl_verify_registries;
        registries.iter().any(|known| known == registry)
    }
}

/// A value of the configuration, and where it stands.
#[derive(Clone, Copy)]
struct Said<'a> {
    path: &'static str,
    value: &'a str,
}

/// The one value of two that mean the same.
fn one<'a>(
    (path, value): (&'static str, &'a str),
    (later_path, later): (&'static str, &'a str),
) -> Result<Said<'a>, ConfigError> {
    if !value.is_empty() && !later.is_empty() && value != later {
        return Err(ConfigError::new(
            later_path,
            format!("`{later}`, but {path}, which means the same, is `{value}`; set one of them"),
        ));
    }
    Ok(if later.is_empty() {
        Said { path, value }
    } else {
        Said {
            path: later_path,
            value: later,
        }
    })
}

fn check_names(config: &Config) -> Result<(), ConfigError> {
    let builder = &config.image_builder;
    if config.namespaces.is_empty() {
        let problem = "empty; name the namespaces in which models are deployed";
        return Err(ConfigError::new("/namespaces", problem));
    }
    let mut checks = Vec::new();
    for (index, namespace) in config.namespaces.iter().enumerate() {
        checks.push((format!("/namespaces/{index}"), check_dns_label(namespace)));
    }
    let secrets = &config.prediction_server.image_pull_secrets;
    for (index, name) in secrets.iter().enumerate() {
        let path = format!("/predictionServer/imagePullSecrets/{index}");
        checks.push((path, check_dns_subdomain(name)));
    }
    let account = &builder.service_account;
    checks.push((
        "/imageBuilder/serviceAccount/name".to_owned(),
        check_dns_subdomain(&account.name),
    ));
    for key in account.annotations.keys() {
        let path = "/imageBuilder/serviceAccount/annotations";
        checks.push((below(path, key), check_label_key(key)));
    }
    let class = &config.ingress.class_name;
    let later = &config.prediction_server.ingress_class_name;
    for (path, name) in [
        ("/ingress/className", class),
        ("/predictionServer/ingressClassName", later),
        (
            "/datarobot/apiSecretName",
            &config.datarobot.api_secret_name,
        ),
        ("/imageBuilder/configMap", &builder.config_map),
        ("/imageBuilder/secretName", &builder.secret_name),
    ] {
        if !name.is_empty() {
            checks.push((path.to_owned(), check_dns_subdomain(name)));
        }
    }
    for (path, checked) in checks {
        checked.map_err(|error| ConfigError::new(path, error.to_string()))?;
    }
    Ok(())
}

fn check_lists(config: &Config) -> Result<(), ConfigError> {
    let builder = &config.image_builder;
    for (list, hosts) in [
        ("insecureRegistries", &builder.insecure_registries),
        (
            "skipSslVerifyRegistries",
            &builder.skip_ssl_verify_registries,
        ),
    ] {
        for (index, host) in hosts.iter().enumerate() {
            if !is_host(host) {
                return Err(ConfigError::new(
                    format!("/imageBuilder/{list}/{index}"),
                    format!(
                        "`{host}` is no host, with or without a port; leave scheme and path out"
                    ),
                ));
            }
        }
    }
    for (list, items) in [
        ("extraVolumes", &builder.extra_volumes),
        ("extraVolumeMounts", &builder.extra_volume_mounts),
    ] {
        for (index, item) in items.iter().enumerate() {
            if !item.get("name").is_some_and(Value::is_string) {
                return Err(ConfigError::new(
                    format!("/imageBuilder/{list}/{index}/name"),
                    "missing; write it as in a pod",
                ));
            }
        }
    }
    for (index, format) in config.datarobot.model_formats.iter().enumerate() {
        if !FORMATS.iter().any(|(known, _)| known == format) {
            return Err(ConfigError::new(
                format!("/datarobot/modelFormats/{index}"),
                format!("`{format}` is unknown; there are datarobot and datarobotScoringCode"),
            ));
        }
    }
    repository_of("/imageBuilder/cacheRepository", &builder.cache_repository)?;
    if !is_url(&config.datarobot.url) {
        return Err(ConfigError::new(
            "/datarobot/url",
            "expected a URL such as https://app.datarobot.com",
        ));
    }
    Ok(())
}

/// An image that may not be set.
fn image_at(path: &str, text: &str) -> Result<Option<Image>, ConfigError> {
    if text.is_empty() {
        return Ok(None);
    }
    Image::parse(text)
        .map(Some)
        .map_err(|problem| ConfigError::new(path, problem))
}

fn base_of(text: &str) -> Result<Option<Image>, ConfigError> {
    let path = "/imageBuilder/ppsImage";
    let Some(image) = image_at(path, text)? else {
        return Ok(None);
    };
    let changes = image.tag.as_deref().is_none_or(|tag| tag == "latest");
    if image.digest.is_none() && changes {
        let problem = "names `latest`, which is another image each time; name a version, \
                       or better a digest";
        return Err(ConfigError::new(path, problem));
    }
    Ok(Some(image))
}

fn repository_of(path: &str, text: &str) -> Result<Option<Image>, ConfigError> {
    let image = image_at(path, text)?;
    match &image {
        Some(image) if image.tag.is_some() || image.digest.is_some() => Err(ConfigError::new(
            path,
            format!(
                "names an image; leave it at the repository `{}`",
                image.repository
            ),
        )),
        _ => Ok(image),
    }
}

fn credentials_of<'a>(
    config_map: &'a str,
    secret: &'a str,
) -> Result<Credentials<'a>, ConfigError> {
    match (config_map, secret) {
        ("", "") => Ok(Credentials::Account),
        (config_map, "") => Ok(Credentials::ConfigMap(config_map)),
        ("", secret) => Ok(Credentials::Secret(secret)),
        _ => Err(ConfigError::new(
            "/imageBuilder/secretName",
            "set, as is /imageBuilder/configMap; registries are logged in to with one of them",
        )),
    }
}

/// Scheme, host and port of a URL.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let rest = url.get(host..).unwrap_or_default();
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    url.get(..host + end).unwrap_or(url)
}

/// Whether a text is an http or https URL that can stand on a line.
pub(crate) fn is_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let plain = |c: char| c.is_ascii_graphic() && !"\"'`\\<>{}|^".contains(c);
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        is_host(host) && rest.chars().all(plain)
    })
}

fn root_of<'a>(said: &Said<'a>) -> Result<Option<Root<'a>>, ConfigError> {
    if said.value.is_empty() {
        return Ok(None);
    }
    let url = said.value.trim_end_matches('/');
    let wrong = || {
        ConfigError::new(
            said.path,
            "expected a URL with a host and perhaps a path of letters, digits, `-`, `_`, `.` and \
             `/`, such as https://example.com/deployments/",
        )
    };
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))
        .ok_or_else(wrong)?;
    let at = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(at).ok_or_else(wrong)?;
    let host = authority.split(':').next().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    let is_good = is_host(authority)
        && check_dns_subdomain(host).is_ok()
        && path.bytes().all(plain)
        && !path.contains("//");
    match is_good {
        true => Ok(Some(Root {
            url,
            host: Some(host).filter(|host| host.parse::<Ipv4Addr>().is_err()),
            path,
        })),
        false => Err(wrong()),
    }
}
