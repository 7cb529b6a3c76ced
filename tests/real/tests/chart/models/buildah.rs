//! A build that is one: the very containers of the Job that the plugin has made, run by
//! the shell, curl and Buildah, between servers of packages and a registry. What is served
//! in the end is what the registry has.

mod servers;

use std::fs;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reeve_real::parts::BUILDAH;
use reeve_real::{Buildah, Registry, eventually};
use reeve_test_support::http::Certificate;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::ground::{Ground, holds, name_of};
use super::install::MODELS;
use super::kubelet::{Ended, Image, Pod};
use crate::stage::Stage;
use servers::{Datarobot, Front, MANIFEST, TOKEN, package};

/// Id and name of the deployment.
const ID: &str = "churn";

#[test]
fn what_serves_is_what_was_built_and_pushed() -> Result<()> {
    let Some(buildah) = Buildah::possible()? else {
        return Ok(());
    };
    if !Pod::possible()? {
        return Ok(());
    }
    let certificate = Certificate::of(&["localhost"])?;
    let registry = Registry::start_plain()?;
    let front = Front::start(registry.port())?;
    let base = front.image("mlops/prediction-server:1.0");
    publish_base(&buildah, &base)?;
    let datarobot = Datarobot::start(&certificate)?;
    let world = World {
        ground: ground(&front, &base, &datarobot)?,
        registry,
        front,
        datarobot,
        images: Images::new(&certificate)?,
    };
    let image = it_is_built(&world)?;
    it_holds_the_model(&image)?;
    another_package_is_refused(&world, &image)?;
    another_pod_has_another_tag_where_none_can_be_changed(&world)
}

/// All that there is. Servers end before those that they talk to.
struct World {
    ground: Ground,
    front: Front,
    registry: Registry,
    datarobot: Datarobot,
    images: Images,
}

/// A build that is under way.
struct Build<'a> {
    tag: String,
    /// Its pod, as it is in the cluster and as it is run here.
    pod: Value,
    here: Pod<'a>,
}

impl World {
    /// Asks for a model, and returns its build.
    fn ask(&self, action: &str, model: &str, sha256: &str) -> Result<Build<'_>> {
        let url = self.datarobot.package_url(model);
        let package = ["--package-url", &url, "--sha256", sha256];
        let command = [&["model", action, ID, "--model-id", model][..], &package].concat();
        self.ground.stage.reeve(&command)?;
        self.build(model)
    }

    fn build(&self, model: &str) -> Result<Build<'_>> {
        let job = self.ground.job(ID, model)?;
        let key = job["metadata"]["labels"]["models.reeve.dev/build-key"].as_str();
        let key = key.context("a Job has a key")?;
        let pod = self.ground.build_pod(name_of(&job)?)?;
        let uid = pod["metadata"]["uid"].as_str().context("a pod has a uid")?;
        Ok(Build {
            tag: format!("{model}-{key}-{uid}"),
            here: Pod::new(&self.ground.stage, &pod)?,
            pod,
        })
    }

    fn fetch(&self, build: &Build<'_>) -> Result<Ended> {
        build.here.run("fetch", &self.images.fetch)
    }

    /// Has a build do what is left of it, and returns what it left of itself.
    fn push(&self, build: &Build<'_>) -> Result<Ended> {
        let built = build.here.run("build", &self.images.build)?;
        ensure!(built.code == 0, "{built:?}");
        Ok(built)
    }

    /// What the registry answers for a tag.
    fn digest(&self, tag: &str) -> Result<String> {
        let login = format!("{}:{}", Registry::USER, Registry::PASSWORD);
        let port = self.registry.port();
        let url = format!("http://localhost:{port}/v2/mlops/frozen-models/manifests/{tag}");
        let answer = ureq::head(url)
            .header("authorization", format!("Basic {}", STANDARD.encode(login)))
            .header("accept", MANIFEST)
            .call()?;
        let digest = answer.headers().get("docker-content-digest");
        Ok(digest.context("no digest")?.to_str()?.to_owned())
    }

    /// The pod of a build ends as it did here: what the registry has under its tag serves.
    fn serves(&self, build: &Build<'_>, built: &Ended) -> Result<String> {
        let digest = self.digest(&build.tag)?;
        ensure!(built.message == digest, "{}: not {digest}", built.message);
        end(&self.ground, &build.pod, "build", built)?;
        let image = self.front.image(&format!("mlops/frozen-models@{digest}"));
        eventually("the Deployment names what was pushed", || {
            let deployment = self.ground.get("deployment", ID)?;
            let server = &deployment["spec"]["template"]["spec"]["containers"][0];
            ensure!(server["image"] == image, "{server}");
            Ok(())
        })?;
        is_ready(&self.ground, "passing")?;
        let deployment = self.ground.get("modeldeployment", ID)?;
        ensure!(deployment["status"]["image"] == image, "{deployment}");
        Ok(image)
    }
}

/// Returns the image.
fn it_is_built(world: &World) -> Result<String> {
    let build = world.ask("start", "m1", &hex(&package("m1")))?;
    let fetched = world.fetch(&build)?;
    ensure!(fetched.code == 0, "{fetched:?}");
    let workspace = build.here.volume("workspace");
    ensure!(fs::read(workspace.join("model.mlpkg"))? == package("m1"));
    let seen = world.datarobot.seen();
    ensure!(seen.asked == 2, "it has not tried again: {seen:?}");
    ensure!(seen.strangers == 0 && seen.leaks == 0, "{seen:?}");

    let built = world.push(&build)?;
    // Layers are where the pod has room for them.
    let state = build.here.volume("state");
    ensure!(state.join("storage/vfs-layers").is_dir());
    let image = world.serves(&build, &built)?;
    let record = world.ground.get("configmap", "churn-builds")?;
    let line = format!(" {image}");
    let images = record["data"]["images"].as_str().unwrap_or_default();
    ensure!(images.ends_with(&line), "{record}");
    Ok(image)
}

/// As whoever runs it gets it.
fn it_holds_the_model(image: &str) -> Result<()> {
    let elsewhere = Buildah::possible()?.context("it was possible before")?;
    let image = elsewhere.pull(image)?;
    let model = image.root.join("opt/ml/model");
    ensure!(fs::read(model.join("model.mlpkg"))? == package("m1"));
    // One package alone is served as one.
    ensure!(fs::read_dir(model)?.count() == 1);
    ensure!(fs::read_to_string(image.root.join("ping"))? == "pong");
    let config = &image.config["config"];
    ensure!(config["Entrypoint"] == json!(["/ping"]), "{config}");
    Ok(())
}

/// By what fetches it, which says that to try again is of no use, and by the Job, which
/// makes no other pod.
fn another_package_is_refused(world: &World, serving: &str) -> Result<()> {
    let build = world.ask("replace", "m2", &hex(b"another model"))?;
    let fetched = world.fetch(&build)?;
    ensure!(fetched.code == 65, "{fetched:?}");
    ensure!(fetched.message.contains("another SHA-256"), "{fetched:?}");
    ensure!(!fetched.log.contains(TOKEN), "{fetched:?}");
    let ground = &world.ground;
    end(ground, &build.pod, "fetch", &fetched)?;
    let status = is_ready(ground, "warning")?;
    let said = status["msg"].as_str().unwrap_or_default();
    ensure!(said.contains("the package has another SHA-256"), "{said}");
    ensure!(status["data"]["currentModelId"] == "m1", "{status}");
    let job = ground.job(ID, "m2")?;
    ensure!(
        holds(&job, "Failed") && job["status"]["failed"] == 1,
        "{job}"
    );
    ensure!(ground.build_pods(name_of(&job)?)?.len() == 1);
    let deployment = ground.get("deployment", ID)?.to_string();
    ensure!(deployment.contains(serving), "{deployment}");
    Ok(())
}

/// The Job before it was lost with what it had to say, and its image is there.
fn another_pod_has_another_tag_where_none_can_be_changed(world: &World) -> Result<()> {
    let lost = world.ask("replace", "m3", &hex(&package("m3")))?;
    ensure!(world.fetch(&lost)?.code == 0);
    let first = world.push(&lost)?;
    let ground = &world.ground;
    let before = ground.job(ID, "m3")?;
    let name = name_of(&before)?;
    let delete = ["delete", "job", name, "-n", MODELS];
    ground.stage.kubectl(&delete)?;
    eventually("it is made once more", || {
        let job = ground.get("job", name)?;
        ensure!(job["metadata"]["uid"] != before["metadata"]["uid"], "{job}");
        Ok(())
    })?;
    let build = world.build("m3")?;
    ensure!(build.tag != lost.tag && name_of(&build.pod)? != name_of(&lost.pod)?);
    ensure!(world.fetch(&build)?.code == 0);
    let built = world.push(&build)?;
    ensure!(built.log.contains("is immutable"), "{built:?}");
    world.serves(&build, &built)?;
    // The tag for people is that of the first image, as its own is.
    let tag = lost.tag.rsplitn(6, '-').last().context("a tag has a uid")?;
    for tag in [tag, &lost.tag] {
        ensure!(world.digest(tag)? == first.message, "{tag}: {first:?}");
    }
    Ok(())
}

/// Where Buildah keeps layers. It runs as root here, which its user is only in a user
/// namespace, and has them where that user would have them. In parts, since such a path is
/// taken for one of somebody's machine.
const STORES: &str = concat!(
    "[storage]\nrunroot = \"/run/containers\"\n",
    "graphroot = \"/ho",
    "me/build/.local/share/containers/storage\"\n",
);

/// What is in the place of the images of a build.
struct Images {
    fetch: Image,
    build: Image,
}

impl Images {
    /// Whoever fetches knows this authority.
    fn new(certificate: &Certificate) -> Result<Self> {
        let file = |path, content: &str| (path, content.to_owned());
        let bundle = file("/etc/ssl/certs/ca-certificates.crt", &certificate.pem);
        let anybody = r#"{"default": [{"type": "insecureAcceptAnything"}]}"#;
        Ok(Self {
            fetch: Image {
                user: 100,
                files: vec![bundle],
                program: None,
            },
            build: Image {
                user: 0,
                files: vec![
                    file("/etc/containers/policy.json", anybody),
                    file("/etc/containers/storage.conf", STORES),
                    file(
                        "/etc/containers/containers.conf",
                        "[engine]\nhelper_binaries_dir = [\"/opt/helpers\"]\n",
                    ),
                    // It is looked for also where nothing needs a network.
                    file("/opt/helpers/netavark", ""),
                ],
                program: Some((BUILDAH.get()?.join("buildah"), "/opt/bin/buildah")),
            },
        })
    }
}

fn ground(front: &Front, base: &str, datarobot: &Datarobot) -> Result<Ground> {
    let sets = [
        "imageBuilder.builder=buildah".to_owned(),
        format!("imageBuilder.ppsImage={base}"),
        format!(
            "imageBuilder.generatedImageRepository={}",
            front.image("mlops/frozen-models")
        ),
        format!("imageBuilder.insecureRegistries={{{}}}", front.host()),
        "imageBuilder.secretName=registry-creds".to_owned(),
        format!("datarobot.url={}", datarobot.url()),
    ];
    let arguments: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let login = |stage: &Stage| {
        // As the document tells; not every tool understands another form of it.
        let create = ["create", "secret", "docker-registry", "registry-creds"];
        let login = [
            format!("--namespace={MODELS}"),
            format!("--docker-server={}", front.host()),
            format!("--docker-username={}", Registry::USER),
            format!("--docker-password={}", Registry::PASSWORD),
        ];
        let login = login.each_ref().map(String::as_str);
        stage.kubectl(&[&create[..], &login].concat()).map(drop)
    };
    Ground::new(TOKEN, &arguments, login)
}

/// The prediction server: nothing but what it is known again by.
fn publish_base(buildah: &Buildah, base: &str) -> Result<()> {
    let context = tempfile::tempdir()?;
    fs::write(context.path().join("ping"), "pong")?;
    fs::write(
        context.path().join("Containerfile"),
        "FROM scratch\nCOPY ping /ping\nENTRYPOINT [\"/ping\"]\n",
    )?;
    buildah.build(context.path(), "base")?;
    buildah.push("base", base)
}

/// A container of a pod ends as it did here.
fn end(ground: &Ground, pod: &Value, container: &str, ended: &Ended) -> Result<()> {
    let ended = reeve_real::Ended {
        container,
        code: ended.code,
        message: &ended.message,
    };
    ground.end(pod, ended)
}

/// Lets servers start, and waits until it is ready with this status.
fn is_ready(ground: &Ground, status: &str) -> Result<Value> {
    eventually("it serves", || {
        ground.schedule(&ground.servers(ID)?)?;
        let now = ground.status(ID)?;
        ensure!(now["state"] == "ready" && now["status"] == status, "{now}");
        Ok(now)
    })
}

fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
