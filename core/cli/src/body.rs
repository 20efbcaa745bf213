//! Bodies of HTTP requests.

use hyper::body::{Body as _, Incoming};
use std::future::poll_fn;
use std::pin::Pin;

/// A whole body; `None` if it has more than `most` bytes, or is cut off.
pub(crate) async fn collected(mut body: Incoming, most: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Ok(data) = frame.ok()?.into_data() {
            if bytes.len() + data.len() > most {
                return None;
            }
            bytes.extend_from_slice(&data);
        }
    }
    Some(bytes)
}
