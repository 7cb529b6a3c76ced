//! Kinds that are questions: created, answered in their status, never stored.

use super::row::Kind;
use super::verbs::Verbs;

const AUTHENTICATION: (&str, &str) = ("authentication.k8s.io", "v1");
const AUTHORIZATION: (&str, &str) = ("authorization.k8s.io", "v1");

pub(super) const ROWS: &[Kind] = &[
    Kind::cluster(AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews").verbs(Verbs::Create),
    Kind::cluster(AUTHENTICATION, "TokenReview", "tokenreviews").verbs(Verbs::Create),
    Kind::namespaced(
        AUTHORIZATION,
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
    )
    .verbs(Verbs::Create),
    Kind::cluster(
        AUTHORIZATION,
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
    )
    .verbs(Verbs::Create),
    Kind::cluster(
        AUTHORIZATION,
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
    )
    .verbs(Verbs::Create),
    Kind::cluster(AUTHORIZATION, "SubjectAccessReview", "subjectaccessreviews")
        .verbs(Verbs::Create),
];
