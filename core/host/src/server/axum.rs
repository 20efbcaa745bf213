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
    /// As [`HttpBuilder::service`].
    pub fn router(self) -> Result<Router, RulesError> {
        let service = self.service()?;
        let paths = service.server().endpoint().paths();
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
