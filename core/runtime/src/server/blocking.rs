//! Handlers that block their thread.

use std::pin::Pin;

/// The future of a function wrapped by [`blocking`].
pub type Blocking<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Wraps a function that blocks its thread (files, databases, computing) as a handler: it runs on tokio's pool for such
/// work, where it delays no other request. It is not interrupted when its request is cancelled; it may check
/// [`Context::is_cancelled`](super::Context::is_cancelled). Until it returns it counts towards
/// [`Limits::in_flight`](mcp_resources_engine::limits::Limits::in_flight).
///
/// ```
/// use mcp_resources::{Resource, ResourceServer, blocking};
///
/// let server = ResourceServer::builder("files", "1.0.0")
///     .resource(Resource::new("file:///etc/motd"), blocking(|_| std::fs::read_to_string("/etc/motd")))
///     .build()?;
/// # Ok::<(), mcp_resources::RegistrationError>(())
/// ```
pub fn blocking<Request, T, F>(function: F) -> impl Fn(Request) -> Blocking<T> + Send + Sync + 'static
where
    Request: Send + 'static,
    T: Send + 'static,
    F: Fn(Request) -> T + Send + Sync + 'static,
{
    let function = std::sync::Arc::new(function);
    move |request| {
        let function = function.clone();
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || function(request)).await {
                Ok(returned) => returned,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // The runtime is shutting down, so this future will not be polled again.
                    Err(_) => std::future::pending().await,
                },
            }
        })
    }
}
