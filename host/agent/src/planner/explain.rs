//! Who put each field of an object there, and on what grounds.

use super::call::Call;
use super::plan::{ProblemReport, to_reader};
use super::{Opened, PlanError, Planner};
use crate::problem::chain;
use crate::run::Rehearsal;
use reeve_cluster::Object;
use reeve_core::fields::{OwnedField, owned_fields};
use reeve_core::ownership::{contributor, contributor_prefix, field_manager, is_contributor};
use reeve_core::{GroupVersionKind, ObjectReference};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where the fields of an object come from.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The object.
    pub object: ObjectReference,
    /// Every field with a value, and its owners.
    pub fields: Vec<OwnedField>,
    /// Plugins that own some of them, by their field manager.
    pub writers: BTreeMap<String, Writer>,
}

/// A plugin that owns fields.
#[derive(Clone, Debug)]
pub struct Writer {
    /// Name of the plugin.
    pub plugin: String,
    /// Its version, and the digest of the component; none when it could not be
    /// loaded.
    pub version: Option<(String, String)>,
    /// Primary of the unit; none when no unit of it wants the object now.
    pub primary: Option<ObjectReference>,
    /// The call that returned the object.
    pub call: Option<Call>,
    /// What keeps some of this from being known.
    pub problems: Vec<ProblemReport>,
}

impl Planner {
    /// Says where the fields of an object come from: by the field managers that the
    /// API server has recorded, and by calling the plugins among them again.
    ///
    /// # Errors
    ///
    /// When the object cannot be read, or its managed fields make no sense.
    pub async fn explain(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Explanation, PlanError> {
        let cluster = &self.loader.cluster;
        let resource = cluster.resolve(kind).await?;
        let reference = resource.reference(namespace, name);
        let found = cluster.get(&resource, namespace, name).await;
        let found = found.map_err(|error| PlanError::Unreadable(to_reader(&chain(&error))))?;
        let Some(object) = found else {
            return Err(PlanError::Absent(reference.to_string()));
        };
        let fields = owned_fields(&object.whole()).map_err(|error| {
            let (object, problem) = (reference.to_string(), error.to_string());
            PlanError::Owners { object, problem }
        })?;
        let managers: BTreeSet<String> = object
            .managers()
            .into_iter()
            .filter(|entry| entry.operation == "Apply" && entry.subresource.is_empty())
            .map(|entry| entry.manager)
            .collect();
        let mut writers = BTreeMap::new();
        // Without the right to see what is installed, owners are told by name.
        for plugin in self.plugins().await.unwrap_or_default() {
            let (own, units) = (field_manager(&plugin), contributor_prefix(&plugin));
            let its: Vec<&String> = managers
                .iter()
                .filter(|one| **one == own || (is_contributor(one) && one.starts_with(&units)))
                .collect();
            for manager in its {
                let writer = Box::pin(self.writer(&plugin, manager, &object)).await;
                writers.insert(manager.clone(), writer);
            }
        }
        for manager in managers {
            let removed = manager.strip_prefix("reeve/").map(|name| {
                let unit = name.rsplit_once(':').filter(|_| is_contributor(&manager));
                unit.map_or(name, |(plugin, _)| plugin).to_owned()
            });
            if let Some(plugin) = removed.filter(|_| !writers.contains_key(&manager)) {
                let writer = Writer {
                    plugin,
                    version: None,
                    primary: None,
                    call: None,
                    problems: vec![ProblemReport {
                        reason: "NotInstalled".to_owned(),
                        message: "no such plugin is installed here, or you may not see it"
                            .to_owned(),
                    }],
                };
                writers.insert(manager, writer);
            }
        }
        Ok(Explanation {
            object: reference,
            fields,
            writers,
        })
    }

    async fn writer(&self, plugin: &str, manager: &str, object: &Object) -> Writer {
        let mut writer = Writer {
            plugin: plugin.to_owned(),
            version: None,
            primary: None,
            call: None,
            problems: Vec::new(),
        };
        let opened = match self.open(plugin, None).await {
            Ok(opened) => opened,
            Err(PlanError::NotLoaded { problem, .. }) => {
                writer.problems.push(problem);
                return writer;
            }
            Err(error) => {
                writer.problems.push(ProblemReport {
                    reason: "NotInstalled".to_owned(),
                    message: error.to_string(),
                });
                return writer;
            }
        };
        writer.version = Some((opened.version().to_owned(), opened.digest()));
        opened.find_unit(manager, object, &mut writer).await;
        writer
    }
}

impl Opened<'_> {
    /// Looks for the unit that wants an object: the one that its marks or the manager
    /// name, or else any whose call returns it.
    async fn find_unit(&self, manager: &str, object: &Object, writer: &mut Writer) {
        let mut others = self.units();
        let marked = if is_contributor(manager) {
            others.retain(|primary| contributor(&self.state.unit(primary)) == manager);
            others.first().cloned()
        } else {
            let unit = self.state.orphan(object);
            unit.map(|unit| (*unit.primary).clone())
        };
        let known = marked.clone().into_iter();
        for primary in known.chain(
            others
                .into_iter()
                .filter(|one| marked.as_ref() != Some(one)),
        ) {
            let (wants, call, problems) = self.calls_for(&primary, object).await;
            let is_marked = marked.as_ref() == Some(&primary);
            if wants || is_marked {
                writer.primary = Some(primary);
                writer.problems = problems;
                if wants {
                    writer.call = call;
                } else if writer.problems.is_empty() {
                    writer.problems.push(ProblemReport {
                        reason: "Unwanted".to_owned(),
                        message: "the plugin does not return it any more; see `reeve plan`"
                            .to_owned(),
                    });
                }
                return;
            }
        }
    }

    /// Whether the call for a primary returns an object, and how it went.
    async fn calls_for(
        &self,
        primary: &ObjectReference,
        object: &Object,
    ) -> (bool, Option<Call>, Vec<ProblemReport>) {
        let unit = self.state.unit(primary);
        let rehearsal = Arc::new(Rehearsal::default());
        let runner = crate::run::Runner {
            rehearsal: Some(rehearsal.clone()),
            ..self.runner.clone()
        };
        let ran = runner.run(self.state.run(&unit, &self.active)).await;
        let wanted = object.reference();
        let wants = rehearsal.taken_down().wanted.iter().any(|one| {
            let reference = &one.stamped.reference;
            reference.kind.same_kind(&wanted.kind)
                && (&reference.namespace, &reference.name) == (&wanted.namespace, &wanted.name)
        });
        let call = ran.reads.map(|reads| self.call(&unit, &reads));
        let problems = ran.problems.into_iter().map(ProblemReport::from).collect();
        (wants, call, problems)
    }
}
