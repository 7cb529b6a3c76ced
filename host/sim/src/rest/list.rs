//! List and watch.

use std::sync::Arc;

use http::StatusCode;

use super::Call;
use super::continuation::{again, behind, decode};
use super::options::{ListOptions, VersionMatch};
use crate::http::negotiate::{Encoding, Form};
use crate::http::response::{self, Answer};
use crate::selection::Selection;
use crate::status::ApiError;
use crate::store::{Object, Range};
use crate::watch::{self, Start};

/// Part of a list: the objects of a page, at one version.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The version.
    pub(crate) version: u64,
    /// The token of the next page; empty at the end.
    pub(crate) next: String,
    /// How many objects are left, where that is known.
    pub(crate) remaining: Option<usize>,
    /// The objects.
    pub(crate) objects: Vec<Arc<Object>>,
}

/// Answers the selected objects, a page at a time where that is asked.
pub(super) async fn list(call: &Call) -> Result<Answer, ApiError> {
    let options = ListOptions::parse(&call.query, false)?;
    let listed = select(call, &options).await?;
    let rendering = call.rendering();
    if call.accepted.encoding == Encoding::Json && call.accepted.form == Form::Object {
        let body = rendering.list_json(&listed);
        return Ok(response::bytes(StatusCode::OK, "application/json", body));
    }
    let value = rendering.list(&listed);
    Ok(response::encoded(
        StatusCode::OK,
        call.accepted.encoding,
        &value,
    ))
}

/// Reads the objects of one page, once the version has come that is asked for.
pub(super) async fn select(call: &Call, options: &ListOptions) -> Result<Listed, ApiError> {
    let mut selection = selection(call, options)?;
    if options.token.is_none() {
        selection = selection.narrowed();
    }
    let token = options.token.as_deref().map(decode).transpose()?;
    let asked = match &token {
        Some(token) => token.version,
        None => options.version,
    };
    if let Some(version) = asked {
        wait_for(call, version).await?;
    }
    let (at, start) = match &token {
        Some(token) => (token.version, token.start.as_str()),
        None if options.matching == Some(VersionMatch::Exact) => (options.version, ""),
        // Pages of a version are of that one, though nobody says so.
        None if options.matching.is_none() && options.limit.is_some() => {
            (options.version.filter(|version| *version > 0), "")
        }
        None => (None, ""),
    };
    // Who takes any version gets it whole, and one object has no second page.
    let whole = options.version == Some(0) || selection.is_of_one();
    let limit = options.limit.filter(|_| token.is_some() || !whole);
    let from = match start {
        "" => String::new(),
        start => format!("{}{start}", selection.prefix()),
    };
    let range = Range {
        prefix: selection.prefix(),
        from: &from,
    };
    let page = call
        .server
        .store
        .list(&call.resource.table, &range, at)
        .map_err(|_| match &token {
            Some(token) => ApiError::expired_page(again(&token.start)),
            None => ApiError::expired("The resourceVersion for the provided list is too old."),
        })?;
    let (mut version, mut found) = (page.version, page.objects);
    // Who takes any version gets what is known.
    if at.is_none() && options.version == Some(0) && call.resource.has_converter() {
        (found, version) = call.resource.all_shown(found, version).await;
    }
    let total = found.len();
    let mut objects = Vec::new();
    let (mut next, mut remaining) = (String::new(), None);
    for (index, object) in found.into_iter().enumerate() {
        let object = call.resource.shown(object).await?;
        if selection.is_whole() || selection.matches(&object) {
            objects.push(object);
        }
        if limit != Some(objects.len()) {
            continue;
        }
        let left = total - index - 1;
        // What is left is not looked at: it may all be of no interest.
        if left > 0
            && let Some(last) = objects.last()
        {
            let start = last
                .key()
                .get(selection.prefix().len()..)
                .unwrap_or_default();
            next = behind(version, start);
            remaining = selection.is_whole().then_some(left);
        }
        break;
    }
    Ok(Listed {
        version,
        next,
        remaining,
        objects,
    })
}

/// Answers a stream of changes to the selected objects.
pub(super) async fn watch(call: &Call) -> Result<Answer, ApiError> {
    let options = ListOptions::parse(&call.query, true)?;
    let selection = selection(call, &options)?;
    let start = match (options.initial_events, options.version) {
        (Some(true), _) if options.bookmarks => Start::PresentThenBookmark,
        (Some(true), _) => Start::Present,
        (Some(false), None | Some(0)) => Start::After(call.server.store.version()),
        (None, None | Some(0)) => Start::Present,
        (_, Some(version)) => Start::After(version),
    };
    let stream = watch::stream(
        call.server.store.clone(),
        call.server.clock.clone(),
        call.server.faults.watches(),
        watch::Request {
            table: call.resource.table.clone(),
            service: call.server.registry.service(&call.resource),
            selection,
            rendering: call.rendering(),
            start,
            // What is there is sent as of a version, which may be yet to come.
            not_before: options
                .version
                .filter(|_| options.initial_events == Some(true)),
            timeout: options.timeout,
            bookmarks: options.bookmarks.then_some(call.server.bookmark_interval),
        },
    );
    Ok(response::stream("application/json", stream))
}

fn selection(call: &Call, options: &ListOptions) -> Result<Selection, ApiError> {
    let namespace = call.namespace();
    // The older path of a watch may name the one object to follow.
    let named = (call.path.watch && call.path.name.is_some())
        .then(|| format!("metadata.name={}", call.name()));
    Selection::parse(
        (!namespace.is_empty()).then_some(namespace),
        options.labels.as_deref(),
        named.as_deref().or(options.fields.as_deref()),
        &call.resource,
    )
}

/// Waits until `version` has been written, for a while.
pub(super) async fn wait_for(call: &Call, version: u64) -> Result<(), ApiError> {
    watch::reached(&call.server.store, version).await
}
