//! The identity of a clock: whether two processes that stamp messages read the same one.

use serde::{Deserialize, Serialize};

use super::{Clock, ClockKind};
use crate::environment::Root;

/// What identifies a clock across processes. What could not be read is absent; such a clock is
/// shared with no other.
///
/// Equal domains are evidence, not proof: machines that were restored from one snapshot have one
/// boot id. Exchanges of messages can refute it ([`super::holds_one_clock`]).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Domain {
    /// The kind of clock.
    pub kind: ClockKind,
    /// The running kernel, `/proc/sys/kernel/random/boot_id` (random(4)); of a simulation also its
    /// process.
    pub boot_id: Option<String>,
    /// The time namespace, e.g. `time:[4026531834]`, which has its own offset of `CLOCK_MONOTONIC`
    /// (time_namespaces(7)); `none` where the kernel has no such namespaces.
    pub time_namespace: Option<String>,
}

impl Domain {
    /// The domain of a clock of this process.
    pub fn of(clock: &Clock) -> Self {
        let domain = Self::read(clock.kind(), &Root::new("/".as_ref()));
        match domain.kind {
            ClockKind::Tsc | ClockKind::ClockMonotonic => domain,
            ClockKind::Simulated => {
                let boot_id = domain.boot_id.map(|id| format!("{id}/{}", std::process::id()));
                Self { boot_id, ..domain }
            }
        }
    }

    /// The domain that a file tree describes.
    pub fn read(kind: ClockKind, root: &Root) -> Self {
        let boot_id = root.line("proc/sys/kernel/random/boot_id").filter(|id| id.len() == BOOT_ID_CHARS);
        Self { kind, boot_id, time_namespace: time_namespace(root) }
    }

    /// Whether stamps of both are readings of one clock, so that their difference is a time.
    pub fn shares_with(&self, other: &Self) -> bool {
        let same = |one: &Option<String>, other: &Option<String>| one.is_some() && one == other;
        let same_namespace = match self.kind {
            ClockKind::Tsc | ClockKind::Simulated => true,
            ClockKind::ClockMonotonic => same(&self.time_namespace, &other.time_namespace),
        };
        self.kind == other.kind && same(&self.boot_id, &other.boot_id) && same_namespace
    }
}

/// The link's target; `none` where there are links to other namespaces and none to this kind.
fn time_namespace(root: &Root) -> Option<String> {
    match std::fs::read_link(root.path(&format!("{NAMESPACES}/time"))) {
        Ok(target) => target.into_os_string().into_string().ok(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            (!root.names(NAMESPACES).is_empty()).then(|| "none".to_owned())
        }
        Err(_) => None,
    }
}

const NAMESPACES: &str = "proc/self/ns";
/// The length of a UUID. Any other text is not a boot id of the kernel.
const BOOT_ID_CHARS: usize = 36;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::super::Ticks;
    use super::super::counter::Source;
    use super::*;

    const ONE: &str = "9b1f1f0e-7c0a-4b43-9d53-0c4a3e1f7a11";
    const OTHER: &str = "00000000-7c0a-4b43-9d53-0c4a3e1f7a11";

    /// The domain on a host with this boot id and this link.
    fn domain(kind: ClockKind, boot_id: Option<&str>, time: Option<&str>) -> Domain {
        let tree: TempDir = tempfile::tempdir().unwrap();
        let random = tree.path().join("proc/sys/kernel/random");
        let namespaces = tree.path().join(NAMESPACES);
        fs::create_dir_all(&random).unwrap();
        fs::create_dir_all(&namespaces).unwrap();
        if let Some(id) = boot_id {
            fs::write(random.join("boot_id"), format!("{id}\n")).unwrap();
        }
        if let Some(target) = time {
            symlink(target, namespaces.join("time")).unwrap();
        }
        Domain::read(kind, &Root::new(tree.path()))
    }

    #[test]
    fn the_counter_is_one_for_a_host() {
        let one = domain(ClockKind::Tsc, Some(ONE), Some("time:[1]"));
        assert!(one.shares_with(&one));
        assert!(one.shares_with(&domain(ClockKind::Tsc, Some(ONE), Some("time:[2]"))));
        assert!(one.shares_with(&domain(ClockKind::Tsc, Some(ONE), None)));
        assert!(!one.shares_with(&domain(ClockKind::Tsc, Some(OTHER), Some("time:[1]"))));
        assert!(!one.shares_with(&domain(ClockKind::ClockMonotonic, Some(ONE), Some("time:[1]"))));
    }

    #[test]
    fn the_monotonic_clock_is_one_for_a_time_namespace() {
        let one = domain(ClockKind::ClockMonotonic, Some(ONE), Some("time:[1]"));
        assert!(one.shares_with(&one));
        assert!(!one.shares_with(&domain(ClockKind::ClockMonotonic, Some(ONE), Some("time:[2]"))));
        assert!(!one.shares_with(&domain(ClockKind::ClockMonotonic, Some(OTHER), Some("time:[1]"))));
    }

    #[test]
    fn what_cannot_be_read_is_not_shared_even_with_itself() {
        for kind in [ClockKind::Tsc, ClockKind::ClockMonotonic] {
            for boot_id in [None, Some(""), Some("short")] {
                let domain = domain(kind, boot_id, Some("time:[1]"));
                assert_eq!(domain.boot_id, None);
                assert!(!domain.shares_with(&domain), "{domain:?}");
            }
        }
        let nothing = domain(ClockKind::ClockMonotonic, Some(ONE), None);
        assert_eq!(nothing.time_namespace, None, "an empty directory says nothing");
        assert!(!nothing.shares_with(&nothing));
    }

    #[test]
    fn a_kernel_without_time_namespaces_has_one_monotonic_clock() {
        let tree = tempfile::tempdir().unwrap();
        let namespaces = tree.path().join(NAMESPACES);
        fs::create_dir_all(&namespaces).unwrap();
        symlink("mnt:[3]", namespaces.join("mnt")).unwrap();
        assert_eq!(time_namespace(&Root::new(tree.path())).as_deref(), Some("none"));
    }

    #[test]
    fn this_process_shares_its_clocks_with_itself_and_says_so_to_others() {
        for clock in [
            Clock::monotonic(),
            Clock::with_rate(Source::Tsc, 2e9, 0.0),
            Clock::simulated(Ticks::default, 1e9),
        ] {
            let domain = Domain::of(&clock);
            assert!(domain.shares_with(&domain), "{domain:?}");
            let text = serde_json::to_string(&domain).unwrap();
            assert!(text.contains(&format!("\"kind\":\"{}\"", clock.name())), "{text}");
            assert_eq!(serde_json::from_str::<Domain>(&text).unwrap(), domain);
        }
    }
}
