//! The endpoint as part of an axum application, or of any tower service.

use super::ResourceServer;
use super::http::HttpBuilder;
use crate::transport::http::{HttpServer, ResponseBody};
use axum::Router;
use bytes::Bytes;
use http_body::Body;
use hyper::{Request, Response, StatusCode};
use mcp_resources_engine::http::RulesError;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_service::Service;

/// A tower service for the requests of the endpoint. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HttpService(Arc<HttpServer>);

impl HttpService {
    /// The endpoint behind it.
    pub fn server(&self) -> &Arc<HttpServer> {
        &self.0
    }
}

impl<B> Service<Request<B>> for HttpService
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.0.clone();
        Box::pin(async move {
            // A client that disconnected does not receive this.
            Ok(server.respond(request).await.unwrap_or_else(|_| ResponseBody::none(StatusCode::BAD_REQUEST)))
        })
    }
}

impl HttpBuilder {
    /// Makes a tower service for all paths of the endpoint.
    ///
    /// # Errors
    /// [`RulesError`] if an option is invalid.
    pub fn service(self) -> Result<HttpService, RulesError> {
        self.build().map(HttpService)
    }

    /// Makes an axum router with all paths of the endpoint, to be merged into an application. Its timers run in the
    /// runtime that serves it.
    ///
    /// # Errors
    /// As [`HttpBuilder::service`]; also if a path has characters that axum reads as a pattern.
    pub fn router(self) -> Result<Router, RulesError> {
        let service = self.service()?;
        let paths = service.server().endpoint().paths();
        let is_pattern = |path: &String| {
            path.contains(['{', '}']) || path.split('/').any(|segment| segment.starts_with([':', '*']))
        };
        if paths.iter().any(is_pattern) {
            let expected =
                "a path without braces, and without segments that begin with : or *, in a router of axum";
            return Err(RulesError::new("path", expected));
        }
        Ok(paths.iter().fold(Router::new(), |router, path| router.route_service(path, service.clone())))
    }
}

impl ResourceServer {
    /// Makes an axum router with the endpoint at `/mcp`, for local clients only; [`ResourceServer::http`] has
    /// more options.
    ///
    /// ```no_run
    /// # async fn main_() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = mcp_resources::ResourceServer::builder("notes", "1.0.0").build()?;
    /// let app = axum::Router::new().merge(server.router()?);
    /// axum::serve(tokio::net::TcpListener::bind("127.0.0.1:8000").await?, app).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`HttpBuilder::service`].
    pub fn router(&self) -> Result<Router, RulesError> {
        self.http().router()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body as AnyBody;

    async fn status(router: &mut Router, verb: &str, path: &str, host: &str) -> u16 {
        let request = Request::builder().method(verb).uri(path).header("host", host);
        let response = Service::call(router, request.body(AnyBody::empty()).unwrap()).await.unwrap();
        response.status().as_u16()
    }

    // R-155: paths with and without a final slash, without a redirect.
    #[tokio::test]
    async fn a_router_has_both_spellings_of_each_path() {
        let server = ResourceServer::builder("test", "1").diagnostics(|_| ()).build().unwrap();
        let http = || server.http().health("/health").metrics("/metrics/");
        let mut router = http().router().unwrap();
        for (verb, path, host, expected) in [
            ("PUT", "/mcp", "localhost", 405),
            ("PUT", "/mcp/", "localhost", 405),
            ("PUT", "/mcp//", "localhost", 404),
            ("PUT", "/mcp/", "evil.example", 403),
            ("GET", "/health", "10.0.0.5:8000", 200),
            ("HEAD", "/health/", "10.0.0.5", 200),
            ("GET", "/metrics", "localhost", 200),
            ("GET", "/metrics/", "localhost", 200),
        ] {
            assert_eq!(status(&mut router, verb, path, host).await, expected, "{verb} {path} {host}");
        }
        for path in ["/{a}", "/a/*b", "/:a"] {
            assert!(http().path(path).router().is_err(), "{path}");
        }
        let mut root = server.http().path("/").router().unwrap();
        assert_eq!(status(&mut root, "PUT", "/", "localhost").await, 405);
    }
}
