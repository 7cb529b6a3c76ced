//! Reading one object live, past the store.

use crate::cluster::Cluster;
use crate::identity::Identity;
use crate::object::{Object, ObjectError};
use crate::resource::Resource;
use crate::transport::{Call, CallError, TransportError};
use reeve_core::ObjectReference;

/// Why an object could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The account may not read it.
    #[error("{} may not get {reference}: {message}", account.as_deref().unwrap_or("the agent"))]
    Forbidden {
        /// The object.
        reference: ObjectReference,
        /// The account; none for the agent's own.
        account: Option<String>,
        /// In the API server's words.
        message: String,
    },
    /// The API server does not serve the kind any more.
    #[error("the api server no longer serves the kind of {reference}")]
    NotServed {
        /// The object.
        reference: ObjectReference,
    },
    /// No answer.
    #[error("cannot get {reference}")]
    Unreachable {
        /// The object.
        reference: ObjectReference,
        /// What went wrong on the way.
        source: TransportError,
    },
    /// Any other refusal.
    #[error("the api server refuses to get {reference} ({code}): {message}")]
    Refused {
        /// The object.
        reference: ObjectReference,
        /// HTTP status.
        code: u16,
        /// In the API server's words.
        message: String,
    },
    /// The answer is no object.
    #[error("cannot understand {reference} as it came from the api server")]
    Malformed {
        /// The object.
        reference: ObjectReference,
        /// What is wrong with it.
        source: ObjectError,
    },
}

impl Cluster {
    /// Reads an object as it is now, with the agent's own rights. None when there
    /// is no such object.
    pub async fn get(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, ReadError> {
        self.get_as(resource, namespace, name, None).await
    }

    /// As [`Cluster::get`], with the rights of another account.
    pub async fn get_as(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        identity: Option<&Identity>,
    ) -> Result<Option<Object>, ReadError> {
        let reference = || resource.reference(namespace, name);
        let call = Call::get(resource.object_path(namespace, name));
        let answer = self.call(call.impersonate(identity));
        let status = match answer.await {
            Ok(body) => {
                let object = Object::parse(resource, &body);
                return object.map(Some).map_err(|source| ReadError::Malformed {
                    reference: reference(),
                    source,
                });
            }
            Err(CallError::Transport(source)) => {
                return Err(ReadError::Unreachable {
                    reference: reference(),
                    source,
                });
            }
            Err(CallError::Status(status)) => status,
        };
        match status.code {
            // Only an answer about an object names one; a path that is not
            // served does not.
            404 if !status.details.name.is_empty() => Ok(None),
            404 => Err(ReadError::NotServed {
                reference: reference(),
            }),
            403 => Err(ReadError::Forbidden {
                reference: reference(),
                account: identity.map(ToString::to_string),
                message: status.message,
            }),
            code => Err(ReadError::Refused {
                reference: reference(),
                code,
                message: status.message,
            }),
        }
    }
}
