//! How much a server may send.
//!
//! The client library takes each message whole before anybody sees a part of it, and
//! has no bound. So what comes is measured on its way there: a message that is too
//! long is refused when its header is read, before the rest of it is.

use parking_lot::Mutex;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

/// What a message may have beside the values in it: lengths, names of columns, where in
/// the server an error came about.
const FRAMING: u64 = 256 << 10;

/// Bytes before the body of a message: its type, and a length that counts itself.
const HEADER: usize = 5;
const LENGTH: u64 = 4;

/// What may still come over one connection. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Allowance(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Bytes of one message.
    message: u64,
    /// Bytes that may come for one statement.
    sum: u64,
    left: AtomicU64,
    /// Why nothing more is taken.
    overrun: Mutex<Option<String>>,
}

impl Allowance {
    /// Lets through what holds so many bytes of values.
    pub(super) fn new(values: usize) -> Self {
        let values = u64::try_from(values).unwrap_or(u64::MAX);
        let message = values.saturating_add(FRAMING);
        // What comes beside the rows: descriptions, notices, an error.
        let sum = message.saturating_mul(2);
        Self(Arc::new(Inner {
            message,
            sum,
            left: AtomicU64::new(sum),
            overrun: Mutex::default(),
        }))
    }

    /// Begins to count anew, for one more statement.
    pub(super) fn renew(&self) {
        self.0.left.store(self.0.sum, Ordering::Relaxed);
    }

    /// Why the connection was given up, if that is since too much came.
    pub(super) fn overrun(&self) -> Option<String> {
        self.0.overrun.lock().clone()
    }

    fn refuse(&self, text: String) -> io::Error {
        *self.0.overrun.lock() = Some(text.clone());
        io::Error::other(text)
    }

    fn take_message(&self, length: u64) -> io::Result<()> {
        let Inner { message, sum, .. } = *self.0;
        if length > message {
            return Err(self.refuse(format!(
                "the database answers with a message of {length} bytes, and at most {message} are let through; select less"
            )));
        }
        let left = self.0.left.load(Ordering::Relaxed).checked_sub(length);
        let Some(left) = left else {
            return Err(self.refuse(format!(
                "the database answers with more than the {sum} bytes that are let through for one statement; select less"
            )));
        };
        self.0.left.store(left, Ordering::Relaxed);
        Ok(())
    }
}

/// Follows the messages in what a server sends.
#[derive(Debug)]
struct Meter {
    allowance: Allowance,
    /// What has come of a header.
    header: [u8; HEADER],
    known: usize,
    /// What is still to come of a body.
    body: u64,
}

impl Meter {
    fn new(allowance: Allowance) -> Self {
        Self {
            allowance,
            header: [0; HEADER],
            known: 0,
            body: 0,
        }
    }

    /// Takes the next bytes, which begin and end wherever they do.
    fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let [first, rest @ ..] = bytes {
            if self.body > 0 {
                let here = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                let skipped = self.body.min(here);
                self.body -= skipped;
                let skipped = usize::try_from(skipped).unwrap_or(bytes.len());
                bytes = bytes.get(skipped..).unwrap_or_default();
                continue;
            }
            if let Some(place) = self.header.get_mut(self.known) {
                *place = *first;
            }
            self.known += 1;
            bytes = rest;
            if self.known == HEADER {
                self.known = 0;
                let [_, length @ ..] = self.header;
                // One that is negative is as good as too long.
                let length = u64::from(u32::from_be_bytes(length));
                let Some(body) = length.checked_sub(LENGTH) else {
                    let text = format!("the database sends a message of {length} bytes");
                    return Err(self.allowance.refuse(text));
                };
                self.allowance.take_message(length.saturating_add(1))?;
                self.body = body;
            }
        }
        Ok(())
    }
}

/// A stream of which no more is read than is let through.
#[derive(Debug)]
pub(super) struct Bounded<S> {
    inner: S,
    meter: Meter,
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, meter } = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(inner).poll_read(context, buffer);
        match polled {
            Poll::Ready(Ok(())) => {
                let new = buffer.filled().get(before..).unwrap_or_default();
                Poll::Ready(meter.take(new))
            }
            other => other,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

impl<S: TlsStream + Unpin> TlsStream for Bounded<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.inner.channel_binding()
    }
}

/// Makes TLS streams that are bounded. What comes before TLS is one byte, and the
/// handshake has bounds of its own; messages begin after it.
pub(super) struct BoundedConnect<C> {
    pub(super) inner: C,
    pub(super) allowance: Allowance,
}

impl<S, C> TlsConnect<S> for BoundedConnect<C>
where
    C: TlsConnect<S>,
    C::Future: Send + 'static,
{
    type Stream = Bounded<C::Stream>;
    type Error = C::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Stream, C::Error>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let Self { inner, allowance } = self;
        let connecting = inner.connect(stream);
        Box::pin(async move {
            Ok(Bounded {
                inner: connecting.await?,
                meter: Meter::new(allowance),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use std::convert::Infallible;
    use std::future::{Ready, ready};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    /// A message with a body of so many bytes, each of them one that could be a length.
    fn message(body: u32) -> Vec<u8> {
        let mut bytes = vec![b'D'];
        bytes.extend((body + 4).to_be_bytes());
        bytes.extend(vec![255; usize::try_from(body).unwrap()]);
        bytes
    }

    /// Lets through messages of 100 bytes, and 200 of all.
    fn small() -> Allowance {
        let allowance = Allowance::new(0);
        let inner = Arc::into_inner(allowance.0).unwrap();
        Allowance(Arc::new(Inner {
            message: 100,
            sum: 200,
            left: AtomicU64::new(200),
            ..inner
        }))
    }

    fn check(chunks: &[&[u8]], expected: Result<u64, &str>) {
        let allowance = small();
        let mut meter = Meter::new(allowance.clone());
        let taken = chunks.iter().try_for_each(|chunk| meter.take(chunk));
        match expected {
            Ok(left) => {
                taken.unwrap();
                assert_eq!(allowance.0.left.load(Ordering::Relaxed), left);
                assert_eq!(allowance.overrun(), None);
            }
            Err(part) => {
                let text = taken.unwrap_err().to_string();
                assert!(text.contains(part), "{text}");
                assert_eq!(allowance.overrun(), Some(text));
            }
        }
    }

    #[test]
    fn messages_are_followed_wherever_reads_split_them() {
        let all = [message(0), message(95), message(10)].concat();
        check(&[&all], Ok(80));
        for size in 1..all.len() {
            let chunks: Vec<&[u8]> = all.chunks(size).collect();
            check(&chunks, Ok(80));
        }
        check(&[], Ok(200));
        check(&[&[b'Z', 0, 0]], Ok(200));
    }

    #[test]
    fn what_is_too_long_is_refused_by_its_header() {
        let long = "a message of 101 bytes, and at most 100";
        let header = message(96);
        check(&[&header[..5]], Err(long));
        check(&[&message(3), &header[..2], &header[2..5]], Err(long));
        check(&[&[b'D', 0x7f, 255, 255, 255]], Err("of 2147483648 bytes"));
        check(&[&[b'D', 255, 255, 255, 255]], Err("of 4294967296 bytes"));
        check(&[&[b'D', 0, 0, 0, 3]], Err("a message of 3 bytes"));
    }

    #[test]
    fn the_sum_is_bounded_for_each_statement() {
        let two = [message(95), message(95)].concat();
        check(&[&two], Ok(0));
        check(&[&two, &message(0)], Err("more than the 200 bytes"));
        let allowance = small();
        let mut meter = Meter::new(allowance.clone());
        meter.take(&two).unwrap();
        allowance.renew();
        meter.take(&two).unwrap();
        meter.take(&message(0)).unwrap_err();
    }

    /// A row of the largest size that is promised gets through, with all that is around it.
    #[test]
    fn what_is_promised_gets_through() {
        let values = 1 << 20;
        let columns = 1664 * 4;
        let mut meter = Meter::new(Allowance::new(values));
        meter.take(&message(1664 * 90)).unwrap();
        let row = u32::try_from(values).unwrap() + 2 + columns;
        meter.take(&message(row)).unwrap();
        let mut meter = Meter::new(Allowance::new(values));
        meter.take(&message(2 * row)).unwrap_err();
    }

    struct Plain;

    struct PlainStream(DuplexStream);

    impl AsyncRead for PlainStream {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for PlainStream {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(context)
        }

        fn poll_shutdown(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(context)
        }
    }

    impl TlsStream for PlainStream {
        fn channel_binding(&self) -> ChannelBinding {
            ChannelBinding::none()
        }
    }

    impl TlsConnect<DuplexStream> for Plain {
        type Stream = PlainStream;
        type Error = Infallible;
        type Future = Ready<Result<PlainStream, Infallible>>;

        fn connect(self, stream: DuplexStream) -> Self::Future {
            ready(Ok(PlainStream(stream)))
        }
    }

    #[tokio::test]
    async fn nothing_is_read_behind_a_header_that_is_refused() {
        let (mut server, client) = duplex(64);
        // What was read before TLS is not counted.
        let (mut client, mut greeting) = (client, [0]);
        server.write_all(b"S").await.unwrap();
        client.read_exact(&mut greeting).await.unwrap();
        let connect = BoundedConnect {
            inner: Plain,
            allowance: small(),
        };
        let allowance = connect.allowance.clone();
        let mut client = connect.connect(client).await.unwrap();
        client.write_all(b"hello").await.unwrap();
        let mut said = [0; 5];
        server.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"hello");
        let mut bytes = message(20);
        bytes.extend_from_slice(&message(1_000_000));
        let sending = tokio::spawn(async move { server.write_all(&bytes).await });
        let mut found = Vec::new();
        let read = client.read_to_end(&mut found).await;
        assert!(read.unwrap_err().to_string().contains("1000005 bytes"));
        assert!(allowance.overrun().is_some());
        assert!(found.len() < 200, "{}", found.len());
        assert!(sending.now_or_never().is_none(), "the rest was not read");
    }
}
