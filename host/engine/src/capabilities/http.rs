//! `wasi:http`, linked always and answered by the caller of `actuate`.
//!
//! A request leaves when its body is complete, and the guest gets the response when
//! all of it is there: both are small, and so nothing streams past the limits.

use crate::outside::Outside;
use crate::state::State;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Semaphore;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::p2::bindings::http::types::{HostOutgoingRequest as _, Method, Scheme};
use wasmtime_wasi_http::p2::types::HostOutgoingRequest;
use wasmtime_wasi_http::{
    Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView,
};

/// The largest body of a request: a settings document, not an upload.
const REQUEST_BYTES: usize = 4 << 20;

/// Requests of one call that are under way at once.
const AT_ONCE: usize = 4;

/// The longest method, scheme, authority, and path with query of a request. Each is kept on
/// the host, with the request's handle.
const TEXT_BYTES: usize = 8 << 10;

/// Bytes of the header fields behind one handle.
const FIELDS_BYTES: usize = 32 << 10;

/// The most that is written to a body at once. Two such pieces wait in the host, whether or
/// not the request is ever sent.
const CHUNK_BYTES: usize = 16 << 10;

/// The interface that [`bound`] sees to, in the version that is linked.
const TYPES: &str = "wasi:http/types@0.2.12";

/// Bytes of all responses of one call. They are held for the guest outside of the
/// memory that it is given.
const RESPONSE_BYTES: usize = 32 << 20;

/// What the host keeps for `wasi:http` within one call.
pub(crate) struct HttpState {
    ctx: WasiHttpCtx,
    hooks: Hooks,
}

struct Hooks {
    outside: Option<Arc<dyn Outside>>,
    function: &'static str,
    turns: Arc<Semaphore>,
    /// Bytes of responses that may still come.
    room: Arc<Mutex<usize>>,
}

impl HttpState {
    pub(crate) fn new(outside: Option<Arc<dyn Outside>>, function: &'static str) -> Self {
        let mut ctx = WasiHttpCtx::new();
        ctx.set_field_size_limit(FIELDS_BYTES);
        Self {
            ctx,
            hooks: Hooks {
                outside,
                function,
                turns: Arc::new(Semaphore::new(AT_ONCE)),
                room: Arc::new(Mutex::new(RESPONSE_BYTES)),
            },
        }
    }
}

/// Links `wasi:http/types` and `wasi:http/outgoing-handler`.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    linker.allow_shadowing(true);
    bound(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}

type Asked = Resource<HostOutgoingRequest>;
type Set = Result<(), ()>;

/// Has what is kept of a request refused where it is longer than any server would take it.
fn bound(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    fn fits(text: Option<&String>) -> bool {
        text.is_none_or(|text| text.len() <= TEXT_BYTES)
    }
    fn set(
        store: &mut StoreContextMut<'_, State>,
        fits: bool,
        set: impl FnOnce(&mut WasiHttpCtxView<'_>) -> wasmtime::Result<Set>,
    ) -> wasmtime::Result<(Set,)> {
        let mut view = store.data_mut().http();
        Ok((if fits { set(&mut view)? } else { Err(()) },))
    }
    let mut types = linker.instance(TYPES)?;
    types.func_wrap(
        "[method]outgoing-request.set-method",
        |mut store, (request, method): (Asked, Method)| {
            let fits = match &method {
                Method::Other(text) => fits(Some(text)),
                _ => true,
            };
            set(&mut store, fits, |view| view.set_method(request, method))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-scheme",
        |mut store, (request, scheme): (Asked, Option<Scheme>)| {
            let fits = match &scheme {
                Some(Scheme::Other(text)) => fits(Some(text)),
                _ => true,
            };
            set(&mut store, fits, |view| view.set_scheme(request, scheme))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-authority",
        |mut store, (request, text): (Asked, Option<String>)| {
            let fits = fits(text.as_ref());
            set(&mut store, fits, |view| view.set_authority(request, text))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-path-with-query",
        |mut store, (request, text): (Asked, Option<String>)| {
            let fits = fits(text.as_ref());
            set(&mut store, fits, |view| {
                view.set_path_with_query(request, text)
            })
        },
    )
}

impl WasiHttpView for State {
    /// Called once for each call of a function of `wasi:http`.
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let wasi = self.wasi();
        WasiHttpCtxView {
            hooks: &mut wasi.http.hooks,
            table: &mut wasi.table,
            ctx: &mut wasi.http.ctx,
        }
    }
}

type Sent = Result<(Response<WasiBody>, Rest), Error>;
type Rest = Box<dyn Future<Output = Result<(), Error>> + Send>;

impl WasiHttpHooks for Hooks {
    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK_BYTES
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        _: Option<RequestOptions>,
        _: Rest,
    ) -> Box<dyn Future<Output = Sent> + Send> {
        let outside = self.outside.clone();
        let function = self.function;
        let (turns, room) = (Arc::clone(&self.turns), Arc::clone(&self.room));
        Box::new(async move {
            let Some(outside) = outside else {
                return Err(said(format!(
                    "outgoing HTTP answers in `actuate` only, not in `{function}`; ask for an action instead"
                )));
            };
            // Nobody closes it; without a turn the request still goes.
            let _turn = turns.acquire().await;
            let request = complete(request).await?;
            let response = outside.http(request).await.map_err(said)?;
            {
                let mut room = room.lock();
                *room = room.checked_sub(response.body().len()).ok_or_else(|| {
                    said(format!(
                        "the responses of this call have more than {RESPONSE_BYTES} bytes"
                    ))
                })?;
            }
            let response = response.map(|body| Full::new(body).map_err(Error::from).boxed_unsync());
            let rest: Rest = Box::new(async { Ok(()) });
            Ok((response, rest))
        })
    }
}

/// The request with its whole body.
async fn complete(request: Request<WasiBody>) -> Result<Request<Bytes>, Error> {
    let (parts, body) = request.into_parts();
    let collected = Limited::new(body, REQUEST_BYTES).collect().await;
    let body = collected.map_err(|error| {
        if error.is::<LengthLimitError>() {
            return said(format!(
                "the request's body has more than {REQUEST_BYTES} bytes"
            ));
        }
        said(format!("the request's body is not complete: {error}"))
    })?;
    Ok(Request::from_parts(parts, body.to_bytes()))
}

/// An error whose words reach the guest.
fn said(text: String) -> Error {
    Error::InternalError(Some(text))
}
