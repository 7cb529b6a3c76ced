//! Gives every Profile that asks for it a Gitea: its database, the Argo CD
//! Application that deploys it, and the routes to it. One instance of the plugin is
//! for one classification.

mod config;
mod database;
mod objects;

use reeve_sdk::prelude::*;

use config::Config;

const PROFILE: Kind = Kind::new("kubeflow.org/v1", "Profile");
const APPLICATION: Kind = Kind::new("argoproj.io/v1alpha1", "Application");
const CONFIG_MAP: Kind = Kind::new("v1", "ConfigMap");
const VIRTUAL_SERVICE: Kind = Kind::new("networking.istio.io/v1beta1", "VirtualService");
const SERVICE_ENTRY: Kind = Kind::new("networking.istio.io/v1beta1", "ServiceEntry");

/// The part of a Profile, and of an Application, that is read.
#[input]
struct Named {
    metadata: Metadata,
}

fn manifest(config: &Config) -> Result<Manifest, ConfigError> {
    config.check()?;
    let place = || Scope::NamespaceNamedLikePrimary;
    let argocd = || Scope::Namespaces(vec![config.argocd_namespace.clone()]);
    Ok(Manifest::controller(PROFILE)
        .projection(["/metadata/labels"])
        .reads((APPLICATION, argocd()))
        .writes(APPLICATION, argocd())
        .writes(CONFIG_MAP, place())
        .writes(VIRTUAL_SERVICE, place())
        .writes(SERVICE_ENTRY, place())
        .action(database::rule(config)))
}

fn reconcile(profile: Named, config: &Config, cx: &Context) -> Result<Outcome, Failure> {
    let metadata = profile.metadata;
    let (profile, label) = (&metadata.name, &config.enabled_label);
    // A slip of the pen is no opting out, with which Gitea and its data may go: a
    // failure leaves everything as it is.
    let asks = metadata.flag(label).map_err(|problem| {
        Failure::terminal(format!(
            "Profile {profile}: {problem}. Until then nothing of its Gitea is made, changed or removed"
        ))
    })?;
    let asks = asks == Some(true);
    let deployed = is_deployed(profile, config, cx)?;
    // Also where somebody has deleted the Application, or it was not made yet: with the
    // database go the data.
    let there = deployed || cx.has_fact(database::KEY);
    let kept = !asks && there && !config.remove_on_opt_out;

    // Who asks for nothing has nothing, and that is meant.
    let mut outcome = Outcome::nothing();
    if asks || kept {
        let missing = config.missing();
        if !missing.is_empty() {
            return Err(Failure::terminal(format!(
                "the Profile asks for Gitea by its label {label}, and the configuration does not say \
                 {}; set it in config.yaml",
                missing.join(", ")
            )));
        }
        let database = database::action(profile, config)?;
        // An Application without a database would look fine and be broken.
        outcome = outcome
            .action(database)
            .object(objects::banner(profile, config))
            .object(objects::service_entry(profile, config));
        if there {
            outcome = outcome.object(objects::application(profile, config));
        }
    }
    let routes = asks || kept || (config.routes_for_all() && !config.root_url.is_empty());
    if routes && config.has_routes() {
        outcome = outcome.object(objects::virtual_service(profile, config));
    }
    if kept {
        outcome = outcome.condition(Condition::holds(
            "KeptAfterOptOut",
            "OptedOut",
            how_to_remove(profile, config),
        ));
    } else if deployed && !asks {
        outcome = outcome.event(Event::normal("OptedOut", what_stays(profile, config)));
    }
    Ok(outcome)
}

/// Whether the Application is there, made by a plugin.
fn is_deployed(profile: &str, config: &Config, cx: &Context) -> Result<bool, Failure> {
    let application = objects::application_of(profile, config);
    let found: Option<Named> = cx.get_parts(&application, ["/metadata/labels"])?;
    Ok(found.is_some_and(|found| found.metadata.belongs_to_plugin()))
}

/// For who no longer asks, while Gitea is kept.
fn how_to_remove(profile: &str, config: &Config) -> String {
    format!(
        "the Profile's label {} no longer asks for Gitea, which stays with its data. To remove it, set \
         removeOnOptOut: true in config.yaml; then drop database and role {} of the server {}, unless \
         dropDatabase is set, and delete their login: {}",
        config.enabled_label,
        database::name_of(profile),
        config.postgres.host,
        how_to_delete_login(profile, config)
    )
}

/// For who no longer asks, while Gitea goes. It is told once: nothing is left then that
/// could go on saying so.
fn what_stays(profile: &str, config: &Config) -> String {
    let database = format!(
        "database and role {} of the server {}",
        database::name_of(profile),
        config.postgres.host
    );
    let label = &config.enabled_label;
    let delete = how_to_delete_login(profile, config);
    match config.drop_database {
        true => format!(
            "the Profile's label {label} no longer asks for Gitea, which is being removed; {database} are \
             being dropped. Their login stays; to delete it: {delete}"
        ),
        false => format!(
            "the Profile's label {label} no longer asks for Gitea, which is being removed; {database} stay, and \
             so does their login. Without use for the data, drop both, and then: {delete}"
        ),
    }
}

/// Deletes what the plugin has no right to delete.
fn how_to_delete_login(profile: &str, config: &Config) -> String {
    format!(
        "kubectl delete secret {} -n {profile}",
        database::secret_of(config)
    )
}

reeve_sdk::plugin!(manifest, reconcile, database::actuate);

#[cfg(test)]
mod tests;
