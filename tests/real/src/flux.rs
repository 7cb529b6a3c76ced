//! Flux's controller for releases of Helm.

use anyhow::Result;

use crate::ControlPlane;
use crate::parts::FLUX;
use crate::ports::free_port;
use crate::server::Server;

/// The user that it is; named to the builder with rights to everything.
pub const FLUX_USER: &str = "flux";

/// The controller. It ends when this is dropped.
#[derive(Debug)]
pub struct HelmController {
    process: Server,
}

impl HelmController {
    /// The last lines that it printed.
    pub fn log_tail(&self) -> String {
        self.process.log_tail()
    }
}

impl ControlPlane {
    /// Starts it; returns at once. The kinds of Flux must have been defined, and the
    /// control plane know the user [`FLUX_USER`].
    ///
    /// # Errors
    ///
    /// When it cannot be built or started.
    pub fn start_helm_controller(&self) -> Result<HelmController> {
        let program = FLUX.get()?.join("helm-controller");
        let arguments = [
            "RUNTIME_NAMESPACE=flux-system".to_owned(),
            format!("KUBECONFIG={}", self.kubeconfig_of(FLUX_USER)?.display()),
            program.display().to_string(),
            "--watch-all-namespaces".to_owned(),
            format!("--metrics-addr=127.0.0.1:{}", free_port()?),
            format!("--health-addr=127.0.0.1:{}", free_port()?),
        ];
        let folder = self.folder();
        // `env` becomes the program that it is given.
        let process = Server::start(
            "helm-controller",
            self.supervise(),
            std::path::Path::new("env"),
            &arguments,
            folder,
        )?;
        Ok(HelmController { process })
    }
}

impl Drop for HelmController {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log_tail());
        }
    }
}
