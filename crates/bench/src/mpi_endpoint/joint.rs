//! Joint operations of all ranks by calls of MPI.

use mpi::{Datatype, Op};

use super::call::JointCall;
use super::collective::CollectiveCall;
use super::endpoint::MpiEndpoint;
use super::halo::HaloCall;
use super::nonblocking::NonblockingCall;
use crate::Error;
use crate::endpoint::collectives::{Collectives, Joint};

impl Collectives for MpiEndpoint {
    fn prepare(&mut self, joint: &Joint) -> Result<(), Error> {
        self.joint = Some(match joint {
            Joint::Collective(spec) if spec.call.is_nonblocking() => {
                JointCall::Nonblocking(NonblockingCall::new(&self.messages, *spec)?)
            }
            Joint::Collective(spec) => JointCall::Collective(CollectiveCall::new(&self.messages, *spec)?),
            Joint::Halo(spec) => JointCall::Halo(HaloCall::new(&self.messages, *spec)?),
        });
        Ok(())
    }

    #[inline]
    fn call(&mut self) -> Result<(), Error> {
        match &mut self.joint {
            Some(JointCall::Collective(call)) => Ok(call.run(&self.messages)?),
            Some(JointCall::Halo(call)) => Ok(call.run(&self.messages)?),
            Some(JointCall::Nonblocking(call)) => {
                call.begin()?;
                call.finish()
            }
            None => Ok(()),
        }
    }

    #[inline]
    fn begin(&mut self) -> Result<(), Error> {
        if let Some(JointCall::Nonblocking(call)) = &mut self.joint { call.begin() } else { self.call() }
    }

    #[inline]
    fn test(&mut self) -> Result<bool, Error> {
        if let Some(JointCall::Nonblocking(call)) = &mut self.joint { call.test() } else { Ok(true) }
    }

    #[inline]
    fn finish(&mut self) -> Result<(), Error> {
        if let Some(JointCall::Nonblocking(call)) = &mut self.joint { call.finish() } else { Ok(()) }
    }

    fn clear(&mut self) -> Result<(), Error> {
        match &mut self.joint {
            Some(JointCall::Collective(call)) => call.clear(),
            Some(JointCall::Halo(call)) => call.clear()?,
            Some(JointCall::Nonblocking(call)) => call.clear(),
            None => {}
        }
        Ok(())
    }

    fn verify(&self) -> Result<(), Error> {
        match &self.joint {
            Some(JointCall::Collective(call)) => call.verify(),
            Some(JointCall::Halo(call)) => call.verify(),
            Some(JointCall::Nonblocking(call)) => call.verify(),
            None => Ok(()),
        }
    }

    #[inline]
    fn meet(&mut self) -> Result<(), Error> {
        Ok(self.messages.barrier()?)
    }

    fn hear(&mut self, number: u64) -> Result<u64, Error> {
        let mut bytes = number.to_ne_bytes();
        self.messages.bcast(&mut bytes, 0)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn largest(&mut self, number: u64) -> Result<u64, Error> {
        let own = Aligned(number.to_ne_bytes());
        let mut largest = Aligned([0; 8]);
        self.messages.allreduce(&own.0, &mut largest.0, Datatype::Uint64, Op::Max)?;
        Ok(u64::from_ne_bytes(largest.0))
    }

    fn give(&mut self, to: u32, number: u64) -> Result<(), Error> {
        Ok(self.messages.send(&number.to_ne_bytes(), to, TAG)?)
    }

    fn take(&mut self, from: u32) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        self.messages.receive(&mut bytes, Some(from), Some(TAG))?;
        Ok(u64::from_ne_bytes(bytes))
    }

    #[inline]
    fn swap(&mut self, to: u32, from: u32) -> Result<(), Error> {
        self.messages.sendrecv((&[], to, TAG), (&mut [], Some(from), Some(TAG)))?;
        Ok(())
    }
}

/// A number as bytes, aligned as an element of a reduction must be.
#[repr(align(8))]
struct Aligned([u8; 8]);

/// The tag of numbers and of empty messages; no operation uses it while these are sent.
const TAG: i32 = 7;
