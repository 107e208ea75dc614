//! What a program sets of an identifier (man rdma_set_option).

use rustix::io::Errno;

use crate::abi::EventKind;
use crate::abi::answer::Told;
use crate::host::{Host, Memory};
use crate::identifier::Stage;
use crate::manager::state::Manager;

/// `RDMA_OPTION_ID` and `RDMA_OPTION_IB`: whose options they are.
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
        /// More than any option has.
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
                if !matches!(found.stage, Stage::Idle | Stage::AddressBound) {
                    return Err(Errno::INVAL);
                }
                found.options.is_shared = is_shared;
            }
            (OF_IDENTIFIER, 2) => {
                let is_of_one_family = switch()?;
                if !matches!(found.stage, Stage::Idle | Stage::AddressBound) {
                    return Err(Errno::INVAL);
                }
                found.options.is_of_one_family = Some(is_of_one_family);
            }
            (OF_IDENTIFIER, 3) => {
                /// The highest that a queue pair's attribute holds.
                const MOST: u8 = 31;
                found.options.ack_timeout = Some(byte()?.min(MOST));
            }
            // A path that the program has found by itself. There is only the one.
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
}
