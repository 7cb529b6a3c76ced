//! What stands where in a list, as JSON Pointers.

use reeve_sdk::prelude::*;

/// What stands where: JSON Pointers. Empty is what this supervisor does not have.
#[config]
pub(crate) struct Fields {
    /// The array of deployments in the document, /data unless set; the document itself
    /// where it is empty.
    pub(crate) entries: String,
    /// How many deployments there are on all pages, /totalCount unless set.
    pub(crate) total: String,
    /// Id of a deployment, /id unless set.
    pub(crate) id: String,
    /// Id of its prediction environment, /predictionEnvironment/id unless set.
    pub(crate) environment_id: String,
    /// Its status, /status unless set.
    pub(crate) status: String,
    /// Id of its model, /model/id unless set.
    pub(crate) model_id: String,
    /// Id of its model's package, /modelPackage/id unless set.
    pub(crate) package_id: String,
    /// Where the package is. Nowhere unless set.
    pub(crate) package_url: String,
    /// SHA-256 of the package. Nowhere unless set.
    pub(crate) package_sha256: String,
    /// Size of the package in bytes. Nowhere unless set.
    pub(crate) package_size_bytes: String,
    /// Format of the package. Nowhere unless set.
    pub(crate) model_format: String,
    /// Whether a management agent is to look after it, which those are not that say
    /// false: /predictionEnvironment/isManagedByManagementAgent unless set.
    pub(crate) managed: String,
}

impl Default for Fields {
    fn default() -> Self {
        let nowhere = String::new;
        Self {
            entries: "/data".to_owned(),
            total: "/totalCount".to_owned(),
            id: "/id".to_owned(),
            environment_id: "/predictionEnvironment/id".to_owned(),
            status: "/status".to_owned(),
            model_id: "/model/id".to_owned(),
            package_id: "/modelPackage/id".to_owned(),
            package_url: nowhere(),
            package_sha256: nowhere(),
            package_size_bytes: nowhere(),
            model_format: nowhere(),
            managed: "/predictionEnvironment/isManagedByManagementAgent".to_owned(),
        }
    }
}

impl Fields {
    /// Whether each is a JSON Pointer. `path` is where they are in the configuration.
    pub(crate) fn check(&self, path: &str) -> Result<(), ConfigError> {
        for (field, pointer) in [
            ("entries", &self.entries),
            ("total", &self.total),
            ("id", &self.id),
            ("environmentId", &self.environment_id),
            ("status", &self.status),
            ("modelId", &self.model_id),
            ("packageId", &self.package_id),
            ("packageUrl", &self.package_url),
            ("packageSha256", &self.package_sha256),
            ("packageSizeBytes", &self.package_size_bytes),
            ("modelFormat", &self.model_format),
            ("managed", &self.managed),
        ] {
            let at = format!("{path}/{field}");
            let needed = ["id", "environmentId", "modelId"].contains(&field);
            if needed && pointer.is_empty() {
                let problem = "empty; say where it stands in an entry of the list, such as /id";
                return Err(ConfigError::new(at, problem));
            }
            if !is_pointer(pointer) {
                return Err(ConfigError::new(
                    at,
                    format!("`{pointer}`: expected a JSON Pointer such as /model/id, or nothing"),
                ));
            }
        }
        for (field, pointer, other, with) in [
            (
                "packageUrl",
                &self.package_url,
                "packageSha256",
                &self.package_sha256,
            ),
            (
                "packageSha256",
                &self.package_sha256,
                "packageUrl",
                &self.package_url,
            ),
        ] {
            if pointer.is_empty() && !with.is_empty() {
                return Err(ConfigError::new(
                    format!("{path}/{field}"),
                    format!("empty, but {path}/{other} is set; a package needs both"),
                ));
            }
        }
        Ok(())
    }
}

/// Whether a text is a JSON Pointer: nothing, or keys with a slash before each, in which
/// `~` stands before 0 or 1.
fn is_pointer(text: &str) -> bool {
    let escapes = |text: &str| {
        let mut after = text.split('~').skip(1);
        after.all(|rest| rest.starts_with(['0', '1']))
    };
    (text.is_empty() || text.starts_with('/')) && escapes(text)
}
