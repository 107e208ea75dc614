//! Options of an identifier (man rdma_set_option).

use rustix::io::Errno;

use crate::abi::EventKind;
use crate::abi::answer::Told;
use crate::host::{Host, Memory};
use crate::identifier::{Service, Stage};
use crate::manager::state::Manager;

/// The option levels `RDMA_OPTION_ID` and `RDMA_OPTION_IB`.
const OF_IDENTIFIER: u32 = 0;
const OF_INFINIBAND: u32 = 1;

impl<H: Host> Manager<H> {
    /// rdma_set_option().
    pub(super) fn set_option(
        &mut self,
        id: u32,
        level: u32,
        name: u32,
        memory: &impl Memory,
        value: u64,
        length: u32,
    ) -> Result<(), Errno> {
        /// More than any option needs.
        const MOST_BYTES: u32 = 4096;
        if length > MOST_BYTES {
            return Err(Errno::INVAL);
        }
        let mut bytes = vec![0; length as usize];
        memory.read(value, &mut bytes)?;
        let byte = || <[u8; 1]>::try_from(&bytes[..]).map(|[byte]| byte).map_err(|_| Errno::INVAL);
        let switch = || <[u8; 4]>::try_from(&bytes[..]).map(|word| word != [0; 4]).map_err(|_| Errno::INVAL);
        let found = self.id(id);
        match (level, name) {
            (OF_IDENTIFIER, 0) => found.options.service_type = byte()?,
            (OF_IDENTIFIER, 1) => {
                let is_shared = switch()?;
                // Sharing cannot be withdrawn after another identifier may have relied on it.
                let may = found.stage == Stage::Idle || is_shared && found.stage != Stage::Listen;
                if !may {
                    return Err(Errno::INVAL);
                }
                found.options.is_shared = is_shared;
                return self.mark(id);
            }
            (OF_IDENTIFIER, 2) => {
                let is_of_one_family = switch()?;
                if !matches!(found.stage, Stage::Idle | Stage::AddressBound) {
                    return Err(Errno::INVAL);
                }
                found.options.is_of_one_family = Some(is_of_one_family);
                return self.mark(id);
            }
            (OF_IDENTIFIER, 3) => {
                /// The highest value of a queue pair's attribute.
                const MOST: u8 = 31;
                let timeout = byte()?.min(MOST);
                if found.service == Service::Ud {
                    return Err(Errno::INVAL);
                }
                found.options.ack_timeout = Some(timeout);
            }
            // A path that the program has found itself. There is only one path.
            (OF_INFINIBAND, 1) => {
                const EACH: usize = 72;
                if bytes.is_empty() || !bytes.len().is_multiple_of(EACH) {
                    return Err(Errno::INVAL);
                }
                self.expect(id, Stage::AddressResolved)?;
                self.id(id).stage = Stage::RouteResolved;
                self.raise(id, EventKind::RouteResolved, 0, Told::default());
            }
            _ => return Err(Errno::NOSYS),
        }
        Ok(())
    }

    /// Publishes the options of an identifier's port to other processes.
    fn mark(&mut self, id: u32) -> Result<(), Errno> {
        let found = self.id(id);
        let Some(mut hold) = found.hold.take() else { return Ok(()) };
        let is_ipv4 = found.source.is_some_and(|source| source.is_ipv4());
        let is_shared = found.options.is_shared;
        let is_of_one_family = found.options.is_of_one_family.unwrap_or(is_ipv4);
        let marked = self.host.mark(&mut hold, is_shared, is_of_one_family);
        self.id(id).hold = Some(hold);
        marked
    }
}
