//! The environment variables of ranks: those of a transport and, for RDMA verbs, those of the
//! device that MPI is to use.

use verbs::LinkModel;

use crate::Error;
use crate::mpi_endpoint::transports::{self, NET_DEVICES};
use crate::point::{MpiTransport, World};

/// A device that carries the messages of MPI.
#[derive(Clone, Debug)]
pub struct MpiDevice {
    /// The name and port, as `mlx5_0:1`.
    pub name_and_port: String,
    /// The index of the GID, where one is chosen.
    pub gid_index: Option<u8>,
    /// The variables without which the library of MPI does not find the device.
    pub variables: Vec<(String, String)>,
    /// The name of the variable for its link model, or why it cannot have one.
    pub link_variable: Result<&'static str, &'static str>,
}

impl MpiDevice {
    fn variables(&self, link: Option<LinkModel>) -> Result<Vec<(String, String)>, Error> {
        let mut variables = self.variables.clone();
        variables.push((NET_DEVICES.to_owned(), self.name_and_port.clone()));
        variables.extend(self.gid_index.map(|index| (GID_INDEX.to_owned(), index.to_string())));
        match (link, self.link_variable) {
            (None, _) => {}
            (Some(link), Ok(name)) => variables.push((name.to_owned(), link.to_string())),
            (Some(_), Err(reason)) => return Err(Error::Impossible { reason: reason.to_owned() }),
        }
        Ok(variables)
    }
}

/// Returns the environment variables that the ranks of a world are started with.
///
/// # Errors
/// [`Error::Impossible`] where there is no device, or the device has no link model.
pub(super) fn variables(
    world: &World,
    device: Option<&Result<MpiDevice, String>>,
) -> Result<Vec<(String, String)>, Error> {
    let of_transport = transports::variables(world.transport).iter();
    let mut variables: Vec<_> =
        of_transport.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    match device.filter(|_| world.transport == MpiTransport::Verbs) {
        Some(Ok(device)) => variables.extend(device.variables(world.link)?),
        Some(Err(reason)) => return Err(Error::Impossible { reason: reason.clone() }),
        None => {}
    }
    Ok(variables)
}

/// The variable of UCX for the index of the GID on RoCE.
const GID_INDEX: &str = "UCX_IB_GID_INDEX";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::MpiMap;

    fn world(transport: MpiTransport, link: Option<&str>) -> World {
        let link = link.map(|link| link.parse().unwrap());
        World { ranks: 2, map: MpiMap::Launcher, transport, link, launch: None }
    }

    fn device(link_variable: Result<&'static str, &'static str>) -> Result<MpiDevice, String> {
        let variables = vec![("LD_PRELOAD".to_owned(), "/lib/x.so".to_owned())];
        Ok(MpiDevice { name_and_port: "soft0:1".to_owned(), gid_index: None, variables, link_variable })
    }

    #[test]
    fn ranks_over_verbs_are_told_the_device_and_its_link() {
        let device = device(Ok("LINK"));
        let found = variables(&world(MpiTransport::Verbs, Some("latency=5us")), Some(&device)).unwrap();
        for (name, value) in
            [("LD_PRELOAD", "/lib/x.so"), ("UCX_NET_DEVICES", "soft0:1"), ("LINK", "latency=5us")]
        {
            assert!(found.contains(&(name.to_owned(), value.to_owned())), "no {name} in {found:?}");
        }
        let plain = variables(&world(MpiTransport::Verbs, None), Some(&device)).unwrap();
        assert!(plain.iter().all(|(name, _)| name != "LINK"), "{plain:?}");
        let tcp = variables(&world(MpiTransport::Tcp, None), Some(&device)).unwrap();
        assert!(tcp.iter().all(|(name, _)| name != "LD_PRELOAD" && name != "UCX_NET_DEVICES"), "{tcp:?}");
    }

    #[test]
    fn an_adapter_whose_link_is_what_it_is_imitates_none() {
        let device = device(Err("its links are what they are"));
        let refused = variables(&world(MpiTransport::Verbs, Some("4X FDR")), Some(&device)).unwrap_err();
        assert!(
            refused.is_limit() && refused.to_string().contains("its links are what they are"),
            "{refused}"
        );
        let none = Err("there is no device".to_owned());
        let refused = variables(&world(MpiTransport::Verbs, None), Some(&none)).unwrap_err();
        assert!(refused.is_limit() && refused.to_string().contains("there is no device"), "{refused}");
        assert!(variables(&world(MpiTransport::Tcp, None), Some(&none)).is_ok());
    }
}
