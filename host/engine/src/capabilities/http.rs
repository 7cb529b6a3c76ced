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
use wasmtime::component::Linker;
use wasmtime_wasi_http::{
    Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView,
};

/// The largest body of a request: a settings document, not an upload.
const REQUEST_BYTES: usize = 4 << 20;

/// Requests of one call that are under way at once.
const AT_ONCE: usize = 4;

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
        Self {
            ctx: WasiHttpCtx::new(),
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
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)
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
