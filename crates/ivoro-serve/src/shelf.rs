//! Networks in use, each loaded once and shared by the models that were taught with it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use ivoro_vision::networks::{Asked, Networks};
use ivoro_vision::recogniser::{Classifier as _, FrozenNetwork, NetworkOptions, Taught};

use crate::held::hold;
use crate::problem::Problem;
use crate::snapshot::Snapshot;

/// Networks held at once.
const MOST: usize = 8;

/// The networks in use.
pub(crate) struct Shelf {
    networks: Networks,
    open: Mutex<HashMap<String, Arc<FrozenNetwork>>>,
}

impl Shelf {
    pub(crate) fn new(networks: Networks) -> Self {
        Self { networks, open: Mutex::default() }
    }

    /// The network of a model; of a new one that which ships. The first time this reads a file.
    pub(crate) fn network(
        &self,
        snapshot: &Snapshot,
        near: Option<&Path>,
    ) -> Result<Arc<FrozenNetwork>, Problem> {
        let taught = match snapshot.model.network_description() {
            Some(described) if snapshot.is_empty() => Taught::Described(described),
            _ => snapshot.model.taught(),
        };
        let name = match taught {
            Taught::Nothing => "ships".to_owned(),
            Taught::Features => return Err(ivoro_vision::Error::UnknownNetwork.into()),
            Taught::Hash(hash) => format!("hash {hash}"),
            Taught::Described(described) => serde_json::to_string(described).unwrap_or_default(),
        };
        // one at a time: two at once would be read twice
        let mut open = hold(&self.open);
        if let Some(network) = open.get(&name) {
            return Ok(Arc::clone(network));
        }
        let asked = Asked { network: None, options: NetworkOptions::default(), near };
        let network = Arc::new(self.networks.open(&asked, taught)?);
        if open.len() >= MOST {
            open.clear();
        }
        // the network that ships is the same however it was found
        let same = open.values().find(|other| is_same(other, &network)).map(Arc::clone);
        let network = same.unwrap_or(network);
        open.insert(name, Arc::clone(&network));
        Ok(network)
    }
}

fn is_same(one: &FrozenNetwork, other: &FrozenNetwork) -> bool {
    match (one.describe_queries(), other.describe_queries()) {
        (Ok(one), Ok(other)) => one.check_same(&other).is_ok(),
        _ => false,
    }
}
