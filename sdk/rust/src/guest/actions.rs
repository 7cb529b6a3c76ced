//! Inside a component with outside effects: the exports and imports of the world
//! `actions`, and HTTP from WASI.

use bindings::exports::reeve::plugin::actions_api as api;
use bindings::reeve::plugin::sql;
use wasi::http::{outgoing_handler, types};
use wasi::io::streams::StreamError;

use super::report_panics;
use crate::Failure;
use crate::action::{Actuation, Verb};
use crate::outside::{
    HttpError, Outside, Request, Response, Rows, Sql, SqlError, SqlPart, SqlValue, split_url,
};
use crate::plugin::Actuates;

#[expect(missing_docs, reason = "generated; the contract is documented in WIT")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/v0.1",
        world: "actions",
        pub_export_macro: true,
        export_macro_name: "export_actions",
        with: {
            "reeve:plugin/types@0.1.0": crate::guest::bindings::reeve::plugin::types,
            "reeve:plugin/log@0.1.0": crate::guest::bindings::reeve::plugin::log,
        },
    });
}

mod http {
    wit_bindgen::generate!({
        path: "wit",
        world: "reeve:sdk/http",
        generate_all,
    });
}

use http::wasi;

impl<P: Actuates> api::Guest for P {
    fn actuate(call: api::Actuation) -> Result<api::Completion, api::Failure> {
        report_panics();
        let actuation = Actuation {
            name: call.action.name,
            key: call.action.key,
            verb: match call.verb {
                api::Verb::Apply => Verb::Apply,
                api::Verb::Verify => Verb::Verify,
                api::Verb::Retire => Verb::Retire,
            },
            input: call.action.input,
            fact: call.fact,
        };
        let outside = Outside {
            backend: OutsideBackend,
        };
        match P::actuate(&actuation, &call.config, &outside) {
            Ok(completion) => Ok(api::Completion {
                in_place: completion.in_place,
                fact: completion.fact,
            }),
            Err(Failure::Retry(text)) => Err(api::Failure::Retry(text)),
            Err(Failure::Terminal(text)) => Err(api::Failure::Terminal(text)),
            Err(Failure::NotReady(text)) => Err(api::Failure::NotReady(text)),
        }
    }
}

/// The outside as the host serves it.
#[derive(Debug)]
pub(crate) struct OutsideBackend;

impl OutsideBackend {
    pub(crate) fn query(&self, connection: &str, statement: &Sql) -> Result<Rows, SqlError> {
        Ok(sql::query(connection, &statement.into())?.into())
    }

    pub(crate) fn transaction(&self, connection: &str, all: &[Sql]) -> Result<Vec<Rows>, SqlError> {
        let statements: Vec<sql::Statement> = all.iter().map(Into::into).collect();
        let all = sql::transaction(connection, &statements)?;
        Ok(all.into_iter().map(Into::into).collect())
    }

    pub(crate) fn send(&self, request: &Request) -> Result<Response, HttpError> {
        let response = begin(request)?;
        let pollable = response.subscribe();
        let response = loop {
            match response.get() {
                Some(Ok(Ok(response))) => break response,
                Some(Ok(Err(error))) => return Err(said(error)),
                Some(Err(())) => return Err(HttpError("the response was taken twice".to_owned())),
                None => pollable.block(),
            }
        };
        let headers = response.headers().entries();
        let headers = headers.into_iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(&value).into_owned();
            (name.to_ascii_lowercase(), value)
        });
        Ok(Response {
            status: response.status(),
            headers: headers.collect(),
            body: read(&response)?,
        })
    }
}

fn begin(request: &Request) -> Result<types::FutureIncomingResponse, HttpError> {
    let refused = |what: &str| HttpError(format!("{}: {what}", request.url));
    let Some((scheme, authority, path)) = split_url(&request.url) else {
        return Err(refused("no absolute URL"));
    };
    let headers = types::Fields::new();
    for (name, value) in &request.headers {
        headers
            .append(name, value.as_bytes())
            .map_err(|_| refused(&format!("header {name} is not allowed, or malformed")))?;
    }
    let outgoing = types::OutgoingRequest::new(headers);
    let scheme = match scheme {
        "http" => types::Scheme::Http,
        "https" => types::Scheme::Https,
        other => types::Scheme::Other(other.to_owned()),
    };
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    let set = outgoing
        .set_method(&method(&request.method))
        .and_then(|()| outgoing.set_scheme(Some(&scheme)))
        .and_then(|()| outgoing.set_authority(Some(authority)))
        .and_then(|()| outgoing.set_path_with_query(Some(&path)));
    set.map_err(|()| refused("a malformed method or URL"))?;
    let body = outgoing.body().map_err(|()| refused("no body"))?;
    let sent = outgoing_handler::handle(outgoing, None).map_err(said)?;
    {
        /// As much as WASI takes at once.
        const CHUNK: usize = 4096;
        let stream = body.write().map_err(|()| refused("no body"))?;
        for chunk in request.body.chunks(CHUNK) {
            stream
                .blocking_write_and_flush(chunk)
                .map_err(|_| refused("the body cannot be sent"))?;
        }
    }
    types::OutgoingBody::finish(body, None).map_err(said)?;
    Ok(sent)
}

fn read(response: &types::IncomingResponse) -> Result<Vec<u8>, HttpError> {
    let broken = |()| HttpError("the response has no body".to_owned());
    let body = response.consume().map_err(broken)?;
    let stream = body.stream().map_err(broken)?;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(64 << 10) {
            Ok(chunk) => bytes.extend(chunk),
            Err(StreamError::Closed) => return Ok(bytes),
            Err(StreamError::LastOperationFailed(_)) => {
                return Err(HttpError("the response broke off".to_owned()));
            }
        }
    }
}

fn method(name: &str) -> types::Method {
    match name {
        "GET" => types::Method::Get,
        "HEAD" => types::Method::Head,
        "POST" => types::Method::Post,
        "PUT" => types::Method::Put,
        "DELETE" => types::Method::Delete,
        "PATCH" => types::Method::Patch,
        "OPTIONS" => types::Method::Options,
        other => types::Method::Other(other.to_owned()),
    }
}

/// The host's own words, if it has any.
fn said(error: types::ErrorCode) -> HttpError {
    // What the host does not put into words is rare, and the text of all of it large.
    let text = match error {
        types::ErrorCode::InternalError(Some(text)) => return HttpError(text),
        types::ErrorCode::DnsTimeout | types::ErrorCode::DnsError(_) => {
            "the name of the host cannot be resolved"
        }
        types::ErrorCode::ConnectionRefused => "the connection was refused",
        types::ErrorCode::ConnectionTerminated => "the connection was ended",
        types::ErrorCode::ConnectionTimeout
        | types::ErrorCode::ConnectionReadTimeout
        | types::ErrorCode::ConnectionWriteTimeout
        | types::ErrorCode::HttpResponseTimeout => "the host took too long",
        types::ErrorCode::TlsProtocolError
        | types::ErrorCode::TlsCertificateError
        | types::ErrorCode::TlsAlertReceived(_) => "no secure connection to the host can be made",
        types::ErrorCode::HttpRequestDenied => "the request is not allowed",
        types::ErrorCode::HttpProtocolError => "the host does not speak HTTP",
        _ => "the exchange failed",
    };
    HttpError(text.to_owned())
}

impl From<&Sql> for sql::Statement {
    fn from(statement: &Sql) -> Self {
        let part = |part: &SqlPart| match part {
            SqlPart::Text(text) => sql::Part::Text((*text).to_owned()),
            SqlPart::Identifier(name) => sql::Part::Identifier(name.clone()),
            SqlPart::Literal(value) => sql::Part::Literal(value.clone()),
            SqlPart::Password(name) => sql::Part::Password(name.clone()),
        };
        let value = |value: &SqlValue| match value {
            SqlValue::Null => sql::Value::Null,
            SqlValue::Boolean(value) => sql::Value::Boolean(*value),
            SqlValue::Integer(value) => sql::Value::Integer(*value),
            SqlValue::Float(value) => sql::Value::Float(*value),
            SqlValue::Text(value) => sql::Value::Text(value.clone()),
            SqlValue::Bytes(value) => sql::Value::Bytes(value.clone()),
        };
        Self {
            parts: statement.parts.iter().map(part).collect(),
            parameters: statement.parameters.iter().map(value).collect(),
        }
    }
}

impl From<sql::Rows> for Rows {
    fn from(rows: sql::Rows) -> Self {
        let value = |value| match value {
            sql::Value::Null => SqlValue::Null,
            sql::Value::Boolean(value) => SqlValue::Boolean(value),
            sql::Value::Integer(value) => SqlValue::Integer(value),
            sql::Value::Float(value) => SqlValue::Float(value),
            sql::Value::Text(value) => SqlValue::Text(value),
            sql::Value::Bytes(value) => SqlValue::Bytes(value),
        };
        let row = |row: Vec<sql::Value>| row.into_iter().map(value).collect();
        Self {
            columns: rows.columns,
            rows: rows.rows.into_iter().map(row).collect(),
            affected: rows.affected,
        }
    }
}

impl From<sql::SqlError> for SqlError {
    fn from(error: sql::SqlError) -> Self {
        match error {
            sql::SqlError::Forbidden(text) => Self::Forbidden(text),
            sql::SqlError::Connection(text) => Self::Connection(text),
            sql::SqlError::Refused(sql::Refusal { state, message }) => {
                Self::Refused { state, message }
            }
            sql::SqlError::Timeout(text) => Self::Timeout(text),
            sql::SqlError::TooLarge(text) => Self::TooLarge(text),
            sql::SqlError::Invalid(text) => Self::Invalid(text),
        }
    }
}
