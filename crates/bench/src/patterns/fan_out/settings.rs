//! The settings of a fan-out.

use super::choices::{Mesh, Notify};
use crate::pattern::settings::settings;

settings! {
    usual {
        // 1:1, with which every other n is compared.
        peers: u32 = PEERS or 1,
    }
    asked {
        mesh: Mesh = MESH or Mesh::Star,
        notify: Option<Notify> = NOTIFY or None,
    }
}
