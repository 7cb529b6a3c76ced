//! What both servers say of the definitions that other projects publish.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use reeve_test_support::definitions::FOLDER;
use reeve_test_support::skipped;
use serde_json::Value;

use crate::corpus::{Scenario, Step};
use crate::servers::Servers;
use crate::suite::{compare, report};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_of_other_projects_are_answered_alike() -> Result<()> {
    let Ok(folder) = std::env::var(FOLDER) else {
        skipped(&format!(
            "what the servers say of the definitions of other projects is not compared; name a \
             folder of them in {FOLDER}"
        ));
        return Ok(());
    };
    let files = files(Path::new(&folder))?;
    ensure!(!files.is_empty(), "{folder} has no definitions");
    let servers = Servers::start().await?;
    let mut different = String::new();
    for (index, file) in files.iter().enumerate() {
        let text = fs::read_to_string(file)?;
        let definition: Value = serde_saphyr::from_str(&text)
            .with_context(|| format!("{} is no definition", file.display()))?;
        let create = Step {
            post: Some(DEFINITIONS.to_owned()),
            body: Some(definition),
            ..Step::default()
        };
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let scenario = Scenario {
            name: name.into_owned(),
            alone: false,
            steps: vec![create],
        };
        let found = compare(&servers, &scenario, &format!("third-party{index}x")).await?;
        different.push_str(&report(&scenario.name, &found));
    }
    ensure!(different.is_empty(), "{different}");
    println!("{} definitions are answered alike", files.len());
    Ok(())
}

/// The files of definitions in a folder, by their names.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
