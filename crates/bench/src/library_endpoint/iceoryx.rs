//! iceoryx2 (0.10): the publisher lends memory that the subscriber reads; ranks of one host. A
//! message is written once into the loan and read from there.

use std::ffi::CString;
use std::fs::remove_dir;
use std::path::PathBuf;
use std::time::Duration;

use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::{LoanError, SendError};
use iceoryx2::prelude::{
    BackpressureStrategy, Config, FileName, LogLevel, Node, NodeBuilder, Path, SemanticString, ServiceName,
    SignalHandlingMode, ipc, set_log_level,
};

use super::socket::{Messages, QUEUE, Role};
use crate::topology::PartSpec;

type Service = ipc::Service;

/// The largest memory of a queue: long messages have shorter queues.
const QUEUE_BYTES: usize = 64 << 20;
/// The smallest loan, which holds a start message.
const SHORTEST: usize = 64;
/// The prefix of the names of its files.
const PREFIX: &[u8] = b"rdmascope_";

/// One rank's port of one direction.
pub(super) struct Iceoryx {
    role: Role,
    size: usize,
    /// Whether the receiver sleeps, and the sender wakes it.
    sleeps: bool,
    port: Option<Port>,
    /// Dropped after its port.
    node: Node<Service>,
    /// Dropped last.
    _root: Root,
}

/// The directory in which the nodes of all runs find each other.
struct Root(PathBuf);

impl Root {
    fn new() -> Self {
        Self(std::env::temp_dir().join("rdmascope-iceoryx2"))
    }
}

impl Drop for Root {
    /// Removes what is left after the last node: empty directories, and the memory of 16 bytes that
    /// numbers the nodes.
    fn drop(&mut self) {
        let is_last = ["nodes", "services"].into_iter().all(|name| remove_dir(self.0.join(name)).is_ok());
        if !is_last || remove_dir(&self.0).is_err() {
            return;
        }
        let all = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        for file in all.filter(|file| is_numbering(file.file_name().as_encoded_bytes())) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

fn is_numbering(name: &[u8]) -> bool {
    name.starts_with(PREFIX) && name.ends_with(b".global_mgmt")
}

enum Port {
    Into { subscriber: Subscriber<Service, [u8], ()>, bell: Listener<Service> },
    Out { publisher: Publisher<Service, [u8], ()>, bell: Option<Notifier<Service>> },
}

impl Iceoryx {
    pub(super) fn open(spec: &PartSpec, role: Role) -> Result<Self, String> {
        if role == Role::Pair {
            return Err("iceoryx2 has no pair sockets: use the protocol pub_sub".to_owned());
        }
        set_log_level(LogLevel::Fatal);
        let mut config = Config::default();
        config.global.prefix = FileName::new(PREFIX).map_err(words)?;
        let root = Root::new();
        config.global.set_root_path(&Path::new(root.0.as_os_str().as_encoded_bytes()).map_err(words)?);
        // Creating a node also removes what killed nodes have left.
        let node = NodeBuilder::new()
            .config(&config)
            .signal_handling_mode(SignalHandlingMode::Disabled)
            .create::<Service>()
            .map_err(words)?;
        let size = spec.message.size().max(SHORTEST);
        Ok(Self { role, size, sleeps: spec.message.poll.sleeps(), port: None, node, _root: root })
    }

    /// Opens a port of the service, which the first rank creates.
    fn join(&mut self, name: &CString) -> Result<(), String> {
        let name = ServiceName::new(&name.to_string_lossy()).map_err(words)?;
        let queue = (QUEUE_BYTES / self.size).clamp(2, QUEUE as usize);
        let service = self
            .node
            .service_builder(&name)
            .publish_subscribe::<[u8]>()
            .max_publishers(1)
            .max_subscribers(1)
            .subscriber_max_buffer_size(queue)
            .enable_safe_overflow(false)
            .history_size(0)
            .open_or_create()
            .map_err(words)?;
        let event = self.node.service_builder(&name).event().open_or_create().map_err(words)?;
        self.port = Some(match self.role {
            Role::Subscriber => {
                let bell = event.listener_builder().create().map_err(words)?;
                let subscriber = service.subscriber_builder().buffer_size(queue).create().map_err(words)?;
                Port::Into { subscriber, bell }
            }
            Role::Pair | Role::Publisher => {
                let bell = match self.sleeps {
                    true => Some(event.notifier_builder().create().map_err(words)?),
                    false => None,
                };
                let publisher = service
                    .publisher_builder()
                    .initial_max_slice_len(self.size)
                    .max_loaned_samples(1)
                    .backpressure_strategy(BackpressureStrategy::DiscardData)
                    .create()
                    .map_err(words)?;
                Port::Out { publisher, bell }
            }
        });
        Ok(())
    }
}

impl Messages for Iceoryx {
    fn bind(&mut self, name: &CString) -> Result<(), String> {
        self.join(name)
    }

    fn connect(&mut self, name: &CString) -> Result<(), String> {
        self.join(name)
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<bool, String> {
        let Some(Port::Out { publisher, bell }) = &self.port else { return Ok(false) };
        let loan = match publisher.loan_slice_uninit(message.len()) {
            Ok(loan) => loan,
            Err(LoanError::OutOfMemory) => return Ok(false),
            Err(error) => return Err(words(error)),
        };
        match loan.write_from_slice(message).send() {
            // There is no subscriber, or it has no room.
            Ok(0) | Err(SendError::UnableToDeliver) => Ok(false),
            Ok(_) => {
                if let Some(bell) = bell {
                    bell.notify().map_err(words)?;
                }
                Ok(true)
            }
            Err(error) => Err(words(error)),
        }
    }

    #[inline]
    fn receive(&mut self, message: &mut [u8]) -> Result<Option<usize>, String> {
        let Some(Port::Into { subscriber, .. }) = &self.port else { return Ok(None) };
        let came = subscriber.receive().map_err(words)?;
        Ok(came.map(|came| {
            let fits = came.len().min(message.len());
            message[..fits].copy_from_slice(&came[..fits]);
            came.len()
        }))
    }

    fn wait(&mut self, limit: Duration) -> Result<(), String> {
        match &self.port {
            Some(Port::Into { bell, .. }) => bell.timed_wait(|_| (), limit).map(drop).map_err(words),
            _ => Ok(()),
        }
    }

    fn version(&self) -> String {
        "iceoryx2 0.10".to_owned()
    }
}

/// Returns the text of an iceoryx2 error, which is its name.
fn words(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}
