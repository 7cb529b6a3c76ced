//! The clouds, and how each calls the same thing.

/// A cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cloud {
    Aws,
    Gcp,
    Azure,
}

impl Cloud {
    pub(crate) const ALL: [Self; 3] = [Self::Aws, Self::Gcp, Self::Azure];

    /// As `cloudProvider`, its block in the configuration and Flux call it.
    pub(crate) fn name(self) -> &'static str {
        self.of(["aws", "gcp", "azure"])
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cloud| cloud.name() == name)
    }

    /// The one of three that is this cloud's.
    pub(crate) fn of<T: Copy>(self, [aws, gcp, azure]: [T; 3]) -> T {
        match self {
            Self::Aws => aws,
            Self::Gcp => gcp,
            Self::Azure => azure,
        }
    }

    /// The annotation by which a ServiceAccount has an identity of the cloud.
    pub(crate) fn identity_annotation(self) -> &'static str {
        self.of([
            "eks.amazonaws.com/role-arn",
            "iam.gke.io/gcp-service-account",
            "azure.workload.identity/client-id",
        ])
    }
}
