//! Keys from a URL.

use std::io;
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);
const LARGEST: u64 = 1 << 20;

/// The text at `url`. Redirects are not followed: keys come from where the author said.
pub(super) async fn get(url: Arc<str>) -> io::Result<String> {
    let work = move || {
        let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).max_redirects(0).build();
        let mut response =
            ureq::Agent::new_with_config(config).get(&*url).call().map_err(io::Error::other)?;
        response.body_mut().with_config().limit(LARGEST).read_to_string().map_err(io::Error::other)
    };
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
