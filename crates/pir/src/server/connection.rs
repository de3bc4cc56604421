//! Connections: how many, and how long one may be silent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tower_service::Service;

use super::{Limits, Peer, Shared};

/// Time for open connections once the server stops.
const FAREWELL: Duration = Duration::from_secs(5);

/// Takes connections until `stop` completes.
pub(super) async fn accept(
    listener: TcpListener,
    router: Router,
    shared: &Arc<Shared>,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let room = Arc::new(Semaphore::new(shared.limits.connections));
    let mut stop = std::pin::pin!(stop);
    loop {
        // With no room left, the system lets others wait.
        let place = room.clone().acquire_owned().await.map_err(io::Error::other)?;
        let accepted = std::future::poll_fn(|context| {
            if stop.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            listener.poll_accept(context).map(Some)
        });
        let (stream, address) = match accepted.await {
            None => break,
            Some(Ok(connection)) => connection,
            // Too many open files, or a connection that ended before it was taken: neither ends the server.
            Some(Err(_)) => {
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (router, shared) = (router.clone(), shared.clone());
        tokio::spawn(async move {
            shared.metrics.connections.inc();
            // An error here is the other side's: it left, or spoke no HTTP.
            let _ = converse(stream, Peer(address), router, shared.limits).await;
            shared.metrics.connections.dec();
            drop(place);
        });
    }
    let _ = timeout(FAREWELL, room.acquire_many(shared.limits.connections as u32)).await;
    Ok(())
}

async fn converse(
    stream: TcpStream,
    peer: Peer,
    router: Router,
    limits: Limits,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        router.clone().call(request.map(Body::new))
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.request_time);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(64).keep_alive_interval(limits.idle / 2);
    let stream = Idle { inner: stream, limit: limits.idle, sleep: Box::pin(sleep(limits.idle)) };
    builder.serve_connection(TokioIo::new(stream), service).await
}

/// A stream that fails when no byte passes in either direction for some time.
struct Idle<T> {
    inner: T,
    limit: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl<T> Idle<T> {
    /// Passes a result on; counts the time while there is none.
    fn watch<R>(&mut self, context: &mut Context<'_>, result: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if result.is_ready() {
            self.sleep.as_mut().reset(Instant::now() + self.limit);
            return result;
        }
        self.sleep.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Idle<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.inner).poll_read(context, buffer);
        self.watch(context, result)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Idle<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.watch(context, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
