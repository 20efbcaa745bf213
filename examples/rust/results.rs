//! A cache of results: what takes long is computed once for all who ask, and kept for ten minutes.
//!
//! analyze:///{topic}             computes the analysis of a topic, unless it is kept, and says where it is
//! wallbounce:///{analysisId}     an analysis that is kept; is listed, and watched
//! wallbounce:///                 all that are kept

use mcp_resources::providers::results::{ComputeError, PutOptions, ResultOptions, Results};
use mcp_resources::{ReadError, ReadRequest, ResourceServer, Template};
use std::error::Error;
use std::time::Duration;

/// What takes long.
async fn analyze(topic: &str) -> Result<String, ReadError> {
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(format!("{} letters", topic.chars().count()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let results = Results::new(ResultOptions::new().scheme("wallbounce").ttl(Duration::from_secs(600)))?;
    let cache = results.clone();
    let server = ResourceServer::builder("results", "1.0.0")
        .mount(results)
        .template(Template::new("analyze:///{topic}"), move |request: ReadRequest| {
            let cache = cache.clone();
            async move {
                let topic = request.param("topic").unwrap_or_default();
                let compute = || async { analyze(topic).await.map_err(|error| error.to_string()) };
                let made = cache.get_or_compute(topic, PutOptions::new(), compute).await;
                made.map_err(|_: ComputeError| ReadError::Failed)?;
                Ok::<_, ReadError>(format!("wallbounce:///{topic}"))
            }
        })
        .build()?;
    Ok(server.run_stdio().await?)
}
