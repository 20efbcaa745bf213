//! The HTTP fixtures (`tests/fixtures/http`) through [`Endpoint`](mcp_resources_engine::http::Endpoint), with an in-memory
//! host that only moves turns, and over real sockets.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod host;
#[cfg(test)]
mod request;
#[cfg(test)]
mod response;
mod rules;
pub(crate) mod served;
