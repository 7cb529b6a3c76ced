//! The documents of packs as files of the agent's pod.

use super::{configuration, install, pack, pass, release};
use reeve_it::{World, core_reference, plugin_reference};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The parts of the plugin that this needs, by name.
const PARTS: [(&str, &str); 2] = [("packs", "Releases"), ("packs-desired", "DesiredState")];

/// A folder with both documents, as it is mounted.
struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        let folder = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        folder.write(
            "configuration.json",
            &configured("postgres.example.com").to_string(),
        );
        folder.want(&["flux", "sgp-helm-repository"]);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Writes a desired state with these packs.
    fn want(&self, packs: &[&str]) {
        let packs: Vec<Value> = packs.iter().map(|name| json!({"name": name})).collect();
        let state = json!({"version": "0.1", "packs": packs});
        self.write("desired-state.json", &state.to_string());
    }

    fn config(&self) -> Value {
        json!({
            "configuration": {"file": self.path("configuration.json")},
            "desiredState": {"file": self.path("desired-state.json")},
        })
    }
}

/// A configuration with this database.
fn configured(database: &str) -> Value {
    configuration(|key| {
        Some(match key.path.as_str() {
            "/aws/postgresHostTemporal" => json!(database),
            _ => key.example(),
        })
    })
}

async fn grant(world: &World, folder: &Path) {
    for (name, _) in PARTS {
        let mut plugin = plugin_reference(name);
        plugin["spec"] = json!({"capabilities": {"files": [folder]}});
        world.apply(&plugin).await;
    }
}

async fn world(folder: &Folder) -> World {
    let mut world = super::world().await;
    for (name, role) in PARTS {
        install(&world, name, role, folder.config()).await;
    }
    world.start();
    world
}

/// Longer than it takes to look at a file again.
async fn look(world: &World) {
    world.wait(Duration::from_secs(61)).await;
    pass(world, 4).await;
}

/// Where the release of Temporal finds its database.
async fn database(world: &World) -> Value {
    let found = world.get(&release("temporalf", "temporalf")).await;
    let found = found.unwrap_or_default();
    found["spec"]["values"]["global"]["sgp"]["aws"]["postgresHostTemporal"].clone()
}

async fn stale(world: &World, plugin: &str) -> String {
    let stale = world.plugin_condition(plugin, "SourcesStale").await;
    format!("{} {}", stale.reason, stale.message)
}

#[tokio::test(start_paused = true)]
async fn packs_follow_documents_in_files() {
    let folder = Folder::new();
    let world = world(&folder).await;
    pass(&world, 2).await;
    for (name, _) in PARTS {
        let stale = stale(&world, name).await;
        assert!(stale.starts_with("SourceForbidden"), "{name}: {stale}");
    }
    assert_eq!(world.get(&pack("flux")).await, None);

    grant(&world, folder.folder.path()).await;
    look(&world).await;
    for (name, _) in PARTS {
        assert_eq!(stale(&world, name).await, " ", "{name}");
    }
    assert!(world.get(&pack("sgp-helm-repository")).await.is_some());
    assert_eq!(world.get(&pack("temporalf")).await, None);

    // A desired state that changes.
    folder.want(&["flux", "sgp-helm-repository", "temporalf"]);
    look(&world).await;
    assert!(world.get(&pack("temporalf")).await.is_some());
    assert_eq!(database(&world).await, "postgres.example.com");

    // A configuration that changes, its secrets too.
    let secret = core_reference("Secret", "temporalf", "temporalf-values");
    let before = world.get(&secret).await.unwrap()["data"].clone();
    let mut changed = configured("other.example.com");
    changed["aws"]["temporal"]["databasePassword"] = json!("another");
    folder.write("configuration.json", &changed.to_string());
    look(&world).await;
    assert_eq!(database(&world).await, "other.example.com");
    let after = world.get(&secret).await.unwrap()["data"].clone();
    assert_ne!(before, after);

    // One that cannot be used changes nothing, and says where.
    folder.write(
        "configuration.json",
        r#"{"cloudProvider": "aws", "aws": []}"#,
    );
    look(&world).await;
    let ready = world.unit_condition("packs", "temporalf", "Ready").await;
    let path = folder.path("configuration.json");
    let says = format!("(file {}) cannot be used", path.display());
    assert!(ready.message.contains(&says), "{ready:?}");
    assert_eq!(database(&world).await, "other.example.com");

    // Nor does one that is gone: what it said last is used.
    folder.write("configuration.json", &changed.to_string());
    look(&world).await;
    for file in ["configuration.json", "desired-state.json"] {
        fs::remove_file(folder.path(file)).unwrap();
    }
    look(&world).await;
    for (name, _) in PARTS {
        let stale = stale(&world, name).await;
        assert!(
            stale.contains("the last good version is used"),
            "{name}: {stale}"
        );
    }
    assert_eq!(database(&world).await, "other.example.com");

    // A pack that the file has no more goes.
    folder.write("configuration.json", &changed.to_string());
    folder.want(&["flux", "sgp-helm-repository"]);
    world.wait(Duration::from_secs(301)).await;
    look(&world).await;
    assert_eq!(world.get(&pack("temporalf")).await, None);
    assert_eq!(world.get(&release("temporalf", "temporalf")).await, None);
    assert!(world.get(&pack("sgp-helm-repository")).await.is_some());
}

/// After a restart there is no last version. Packs stay as they are until the files are there.
#[tokio::test(start_paused = true)]
async fn packs_stay_when_files_are_gone_at_the_start() {
    let folder = Folder::new();
    let mut world = world(&folder).await;
    grant(&world, folder.folder.path()).await;
    folder.want(&["flux", "sgp-helm-repository", "temporalf"]);
    look(&world).await;
    assert_eq!(database(&world).await, "postgres.example.com");
    let before = world.get(&release("temporalf", "temporalf")).await;
    assert!(before.is_some());

    world.stop().await;
    for file in ["configuration.json", "desired-state.json"] {
        fs::remove_file(folder.path(file)).unwrap();
    }
    world.start();
    look(&world).await;
    assert!(world.get(&pack("temporalf")).await.is_some());
    assert_eq!(world.get(&release("temporalf", "temporalf")).await, before);
    for (name, _) in PARTS {
        let stale = stale(&world, name).await;
        assert!(stale.starts_with("SourceFailing"), "{name}: {stale}");
    }

    folder.write(
        "configuration.json",
        &configured("other.example.com").to_string(),
    );
    folder.want(&["flux", "sgp-helm-repository", "temporalf"]);
    world.wait(Duration::from_secs(301)).await;
    look(&world).await;
    assert_eq!(database(&world).await, "other.example.com");
}
