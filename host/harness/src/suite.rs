//! Finds scenarios, and reads all that they need before any of them runs.

use crate::component;
use crate::scenario::{Action, Object, Scenario};
use crate::source::{Node, Part};
use crate::{Error, Options, yaml};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder with scenarios beside a plugin.
const FOLDER: &str = "scenarios";

/// One scenario with all that belongs to it.
#[derive(Debug)]
pub(crate) struct Case {
    /// The file it is in.
    pub(crate) file: Arc<File>,
    /// The scenario.
    pub(crate) scenario: Scenario,
    /// Its place in the file.
    pub(crate) node: Option<Node>,
    /// Name of the plugin.
    pub(crate) plugin: String,
    /// The component that is given.
    pub(crate) component: PathBuf,
    /// Objects from the files that are given.
    pub(crate) objects: Vec<Object>,
}

/// A file with scenarios.
#[derive(Debug)]
pub(crate) struct File {
    /// Where it is, as it was found.
    pub(crate) path: PathBuf,
    /// Its text.
    pub(crate) text: String,
}

impl Case {
    /// The line of a part of the scenario.
    pub(crate) fn line_of(&self, path: &[Part<'_>]) -> usize {
        self.node.as_ref().map_or(1, |node| node.line_of(path))
    }

    /// A path in the scenario, which is relative to the file.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        self.file.path.parent().unwrap_or(Path::new("")).join(path)
    }

    /// The files with objects that are given.
    pub(crate) fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.scenario
            .given
            .files
            .iter()
            .map(|name| self.resolve(name))
    }

    /// Every component that the scenario installs.
    pub(crate) fn components(&self) -> impl Iterator<Item = PathBuf> {
        let steps = self
            .scenario
            .steps
            .iter()
            .filter_map(|step| match &step.action {
                Action::Component(path) => Some(self.resolve(path)),
                _ => None,
            });
        std::iter::once(self.component.clone()).chain(steps)
    }
}

/// Reads the scenarios of all paths. Every file that is wrong is named, not just
/// the first one.
pub(crate) fn read(options: &Options) -> Result<Vec<Case>, Error> {
    let mut reader = Reader {
        options,
        manifests: HashMap::new(),
        components: HashMap::new(),
        cases: Vec::new(),
        problems: Vec::new(),
    };
    for path in &options.paths {
        for file in scenario_files(path)? {
            reader.file(path, file)?;
        }
    }
    if !reader.problems.is_empty() {
        return Err(Error::Invalid {
            problems: reader.problems,
        });
    }
    let mut cases = reader.cases;
    if let Some(filter) = &options.filter {
        cases.retain(|case| {
            case.scenario.name.contains(filter) || case.file.path.to_string_lossy().contains(filter)
        });
        if cases.is_empty() {
            return Err(Error::NothingMatches {
                filter: filter.clone(),
            });
        }
    }
    Ok(cases)
}

/// The scenario files of a path: itself, or what is in its folder `scenarios` or
/// in itself. Folders below hold what scenarios share.
fn scenario_files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let nested = path.join(FOLDER);
    let folder = if nested.is_dir() {
        nested
    } else {
        path.to_owned()
    };
    let entries = std::fs::read_dir(&folder).map_err(|source| Error::Read {
        path: folder.clone(),
        source,
    })?;
    let is_yaml = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        path.is_file() && matches!(ending, Some("yaml" | "yml"))
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(is_yaml)
        .collect();
    if files.is_empty() {
        return Err(Error::NoScenarios { folder });
    }
    files.sort();
    Ok(files)
}

struct Reader<'a> {
    options: &'a Options,
    /// Files with objects that were read already.
    manifests: HashMap<PathBuf, Vec<Object>>,
    /// Components of plugin folders.
    components: HashMap<PathBuf, PathBuf>,
    cases: Vec<Case>,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn file(&mut self, asked: &Path, path: PathBuf) -> Result<(), Error> {
        let text = read_text(&path)?;
        let scenarios: Vec<Scenario> =
            match serde_saphyr::from_multiple_with_options(&text, strict()) {
                Ok(scenarios) => scenarios,
                Err(error) => {
                    self.problems.push(yaml::problem(&path, &text, &error));
                    return Ok(());
                }
            };
        if scenarios.is_empty() {
            self.problems
                .push(format!("{}: there is no scenario in it", path.display()));
        }
        let folder = plugin_folder(&path);
        let plugin = plugin_name(folder.as_deref(), &path);
        let component = self.component(asked, folder)?;
        let mut nodes = Node::documents(&text).into_iter();
        let file = Arc::new(File { path, text });
        for scenario in scenarios {
            let mut case = Case {
                node: nodes.next(),
                file: file.clone(),
                plugin: plugin.clone(),
                component: component.clone(),
                objects: Vec::new(),
                scenario,
            };
            if let Some(path) = &case.scenario.given.component {
                case.component = case.resolve(path);
            }
            self.manifests_of(&mut case);
            self.cases.push(case);
        }
        Ok(())
    }

    fn component(&mut self, asked: &Path, folder: Option<PathBuf>) -> Result<PathBuf, Error> {
        if let Some(component) = &self.options.component {
            return Ok(component.clone());
        }
        let folder = folder.ok_or_else(|| Error::NoPlugin {
            path: asked.to_owned(),
        })?;
        if let Some(component) = self.components.get(&folder) {
            return Ok(component.clone());
        }
        let component = component::of(&folder)?;
        self.components.insert(folder, component.clone());
        Ok(component)
    }

    fn manifests_of(&mut self, case: &mut Case) {
        for (index, name) in case.scenario.given.files.iter().enumerate() {
            let path = case.resolve(name);
            let known = self.manifests.get(&path).cloned();
            let objects = known.map_or_else(|| read_objects(&path), Ok);
            match objects {
                Ok(objects) => {
                    case.objects.extend(objects.iter().cloned());
                    self.manifests.insert(path, objects);
                }
                Err(problem) => {
                    let place = [Part::Key("given"), Part::Key("files"), Part::Item(index)];
                    let line = case.line_of(&place);
                    let file = case.file.path.display();
                    self.problems.push(format!("{file}:{line}: {problem}"));
                }
            }
        }
    }
}

fn read_text(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })
}

fn read_objects(path: &Path) -> Result<Vec<Object>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    serde_saphyr::from_multiple_with_options(&text, strict())
        .map_err(|error| yaml::problem(path, &text, &error))
}

/// `y` and `on` are words; only `true` and `false` are booleans.
fn strict() -> serde_saphyr::Options {
    serde_saphyr::options! { strict_booleans: true }
}

/// The folder of the plugin beside which a scenario stands: the closest one above
/// it with a crate in it.
fn plugin_folder(scenario: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(scenario).ok()?;
    let above = absolute.ancestors().skip(1);
    let mut crates = above.filter(|folder| folder.join("Cargo.toml").is_file());
    crates.next().map(Path::to_owned)
}

/// The plugin is called like its folder.
fn plugin_name(folder: Option<&Path>, scenario: &Path) -> String {
    let name = folder
        .and_then(Path::file_name)
        .or_else(|| scenario.file_stem());
    let name = name.unwrap_or_default().to_string_lossy().to_lowercase();
    name.replace('_', "-")
}
