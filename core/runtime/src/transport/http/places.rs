//! Counts the connections of each client, so that one address cannot take all connections.

use crate::sync::Mutex;
use mcp_resources_engine::principal::Network;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;

/// The number of connections by client. Limited by the total number of connections.
#[derive(Debug)]
pub(super) struct Places {
    max: usize,
    taken: Mutex<HashMap<Network, usize>>,
}

/// Counts one connection until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    network: Network,
    places: Arc<Places>,
}

impl Places {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, taken: Mutex::default() })
    }

    /// Counts a connection; `None` if this client has too many.
    pub(super) fn take(self: &Arc<Self>, client: IpAddr) -> Option<Place> {
        let network = Network::from_address(client);
        let mut taken = self.taken.lock();
        let own = taken.entry(network).or_default();
        if *own >= self.max {
            return None;
        }
        *own += 1;
        Some(Place { network, places: self.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Entry::Occupied(mut own) = self.places.taken.lock().entry(self.network) {
            *own.get_mut() -= 1;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_so_many() {
        let places = Places::new(2);
        let client = |number: u8| places.take(IpAddr::from([192, 0, 2, number]));
        let one = client(1);
        let two = client(1);
        assert!(one.is_some() && two.is_some() && client(1).is_none() && client(2).is_some());
        drop(one);
        assert!(client(1).is_some());
        drop(two);
        assert!(places.taken.lock().is_empty());
    }
}
