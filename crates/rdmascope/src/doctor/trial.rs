//! A trial that makes the resources of a point: only making them shows whether the device has them.

use verbs::abi::IBV_ACCESS_LOCAL_WRITE;
use verbs::{Context, QueuePairOptions, Service};

/// Why the resources could not be made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Refusal {
    pub(super) error: String,
    /// Whether the limit of locked memory may be the reason.
    pub(super) is_memory: bool,
}

/// Makes the resources of one rank for a point of `bw` without flags, and releases them.
pub(super) fn trial(device: &verbs::Device) -> Option<Refusal> {
    let made = device.open().and_then(|context| make(&context));
    made.err().map(|error| Refusal {
        error: error.to_string(),
        is_memory: matches!(error, verbs::Error::Verb { errno: ENOMEM | EPERM, .. }),
    })
}

/// The kernel's error if the limit of locked memory is too small (errno(3)).
const ENOMEM: i32 = 12;
/// The kernel's error if the limit is 0.
const EPERM: i32 = 1;
/// Bytes of a message and depths of the queues: the defaults of a stream.
const MESSAGE_BYTES: usize = 64 << 10;
const SENDS: u32 = 128;
const RECEIVES: u32 = 512;

fn make(context: &Context) -> verbs::Result<()> {
    let domain = context.protection_domain()?;
    let sends = context.completion_queue(SENDS, None)?;
    let receives = context.completion_queue(RECEIVES, None)?;
    let options = QueuePairOptions {
        service: Service::Rc,
        max_send_wr: SENDS,
        max_recv_wr: RECEIVES,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 0,
    };
    let _pair = domain.queue_pair(&options, &sends, &receives)?;
    let _source = domain.memory_region(MESSAGE_BYTES, IBV_ACCESS_LOCAL_WRITE)?;
    let _target = domain.memory_region(MESSAGE_BYTES, IBV_ACCESS_LOCAL_WRITE)?;
    Ok(())
}
