//! What a plan asks of a fan-out beside its messages.

use super::choices::{Mesh, Notify};
use crate::pattern::settings::settings;

settings! {
    usual {
        // 1:1, beside which every other n stands.
        peers: u32 = PEERS or 1,
    }
    asked {
        mesh: Mesh = MESH or Mesh::Star,
        notify: Option<Notify> = NOTIFY or None,
    }
}
