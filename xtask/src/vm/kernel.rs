//! Debian's kernel and the modules that the guest needs, extracted from their package and kept in
//! `target/vm`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::archive::Archive;
use crate::shell;

/// Modules for the machine's devices and file systems, loaded before the host's files are mounted.
pub(super) const BOOT_MODULES: &str = "virtio_pci virtio_console 9pnet_virtio 9p overlay";
/// The driver of eth0.
pub(super) const NET_MODULES: &str = "virtio_net";
/// The modules of rxe0 and of its interface for programs. rxe finds its checksum module by name,
/// not as a dependency.
pub(super) const RDMA_MODULES: &str = "crc32_generic rdma_rxe ib_uverbs rdma_ucm";
/// Modules that commands may load: a virtual cable, a firewall, delays, losses and limits of
/// packets, and SCTP. (Debian's kernel has no Soft-iWARP.)
const OTHER_MODULES: &str = "veth bridge nf_tables nft_numgen sch_netem sch_tbf sctp";
const ALL_MODULES: [&str; 4] = [BOOT_MODULES, NET_MODULES, RDMA_MODULES, OTHER_MODULES];

/// A kernel in the cache.
#[derive(Debug)]
pub(super) struct Kernel {
    directory: PathBuf,
}

impl Kernel {
    /// Finds the kernel that Debian's `linux-image-amd64` depends on, in the cache or as a package.
    /// It asks apt again if apt's lists have changed since.
    pub(super) fn find(cache: &Path) -> Result<Self> {
        fs::create_dir_all(cache).with_context(|| format!("cannot create {}", cache.display()))?;
        let newest = newest(cache)?;
        if let Some((kernel, made)) = &newest
            && fs::metadata(LISTS).is_ok_and(|lists| lists.mtime() <= *made)
        {
            return Ok(Self { directory: kernel.clone() });
        }
        let package = match (Package::of_apt(), newest) {
            (Some(package), _) => package,
            (None, Some((directory, _))) => return Ok(Self { directory }),
            (None, None) => Package::after_update()?,
        };
        let directory = cache.join(package.key());
        // One process prepares the kernel, other processes wait for it.
        let lock = File::create(cache.join("lock"))?;
        if lock.try_lock().is_err() {
            eprintln!("xtask: vm: waiting for another process, which prepares the kernel");
            lock.lock()?;
        }
        if directory.is_dir() {
            // Its time is the time at which apt was asked last.
            File::open(&directory)?.set_modified(std::time::SystemTime::now())?;
        } else {
            package.unpack(&directory)?;
        }
        Ok(Self { directory })
    }

    /// The file that QEMU starts.
    pub(super) fn image(&self) -> PathBuf {
        self.directory.join(IMAGE)
    }

    /// Adds the modules to an archive.
    pub(super) fn add_modules(&self, archive: &mut Archive) -> Result<()> {
        add_files(&self.directory.join(MODULES), MODULES, archive)
    }
}

fn add_files(directory: &Path, path: &str, archive: &mut Archive) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let entry = entry?;
        let path = format!("{path}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            add_files(&entry.path(), &path, archive)?;
        } else {
            archive.file(&path, false, &fs::read(entry.path())?);
        }
    }
    Ok(())
}

/// The newest kernel in the cache with the current list of modules, and when apt was asked last
/// (seconds since 1970).
fn newest(cache: &Path) -> Result<Option<(PathBuf, i64)>> {
    let suffix = suffix();
    let mut newest = None;
    for entry in fs::read_dir(cache)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().ends_with(&suffix) {
            newest = newest.max(Some((entry.metadata()?.mtime(), entry.path())));
        }
    }
    Ok(newest.map(|(time, path)| (path, time)))
}

/// The end of names in the cache: another list of modules or another FORMAT has another suffix.
fn suffix() -> String {
    let mut hasher = DefaultHasher::new();
    (FORMAT, ALL_MODULES).hash(&mut hasher);
    format!("-{:08x}", hasher.finish() as u32)
}

/// The package of a kernel.
#[derive(Debug, Eq, PartialEq)]
struct Package {
    name: String,
    version: String,
}

impl Package {
    /// The package that apt would install now, or `None` if apt does not know it.
    fn of_apt() -> Option<Self> {
        let words = ["apt-cache", "show", "--no-all-versions", "linux-image-amd64"];
        let output = shell::command(&words).stderr(Stdio::null()).output().ok()?;
        Self::parse(&String::from_utf8_lossy(&output.stdout))
    }

    /// As `of_apt`, after an update of apt's lists, which only root can do.
    fn after_update() -> Result<Self> {
        ensure!(shell::is_root(), "apt does not know a package linux-image-amd64: run `sudo apt-get update`");
        run_in(&shell::root(), &["apt-get", "update", "-qq"])?;
        Self::of_apt().context("apt does not know a package linux-image-amd64: only Debian has this package")
    }

    /// Reads the line `Depends: linux-image-6.1.0-56-amd64 (= 6.1.192-2)`.
    fn parse(text: &str) -> Option<Self> {
        let dependency = text.lines().find_map(|line| line.strip_prefix("Depends: "))?;
        let (name, rest) = dependency.split_once(" (= ")?;
        let version = rest.split_once(')')?.0;
        Some(Self { name: name.to_owned(), version: version.to_owned() })
    }

    /// The name of the package's directory in the cache.
    fn key(&self) -> String {
        format!("{}_{}{}", self.name, self.version, suffix())
    }

    /// Downloads the package and extracts the needed files into `directory`, which is created when
    /// it is complete.
    fn unpack(&self, directory: &Path) -> Result<()> {
        eprintln!("xtask: vm: preparing {} {}, only once", self.name, self.version);
        let work = directory.with_file_name(WORK);
        if work.exists() {
            fs::remove_dir_all(&work)?;
        }
        let tree = work.join("tree");
        let done = work.join("done");
        for new in [&tree, &done] {
            fs::create_dir_all(new)?;
        }
        // By default, apt downloads for root as a user that may not write here.
        let wanted = format!("{}={}", self.name, self.version);
        run_in(&work, &["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", &wanted])?;
        let package = only_file(&work, "deb")?;
        run_in(&work, &[OsStr::new("dpkg"), OsStr::new("-x"), package.as_os_str(), tree.as_os_str()])?;

        let release = self.name.strip_prefix("linux-image-").unwrap_or(&self.name);
        let compressed = fs::read(tree.join(format!("boot/vmlinuz-{release}")))?;
        fs::write(done.join(IMAGE), uncompressed(&compressed, &work)?)?;
        modules(&tree, &done, release)?;
        fs::rename(&done, directory)?;
        fs::remove_dir_all(&work)?;
        Ok(())
    }
}

/// The kernel as an ELF file, which QEMU starts by its PVH entry: under emulation, the kernel would
/// take three seconds to unpack itself. A kernel that is not compressed with xz, unlike Debian's,
/// is returned unchanged.
fn uncompressed(image: &[u8], work: &Path) -> Result<Vec<u8>> {
    let Some(payload) = payload(image).filter(|payload| payload.starts_with(XZ_MAGIC)) else {
        return Ok(image.to_vec());
    };
    // The uncompressed length, four bytes, follows the stream.
    let (stream, length) = payload.split_last_chunk::<4>().context("the kernel has no payload")?;
    let from = work.join("kernel.xz");
    let to = work.join("kernel");
    File::create(&from)?.write_all(stream)?;
    let mut unpack = Command::new("xz");
    let status = unpack.arg("-dc").stdin(File::open(from)?).stdout(File::create(&to)?).status();
    ensure!(status.context("cannot start xz")?.success(), "xz cannot unpack the kernel");
    let kernel = fs::read(to)?;
    ensure!(kernel.len() == u32::from_le_bytes(*length) as usize, "the unpacked kernel has a wrong length");
    Ok(kernel)
}

/// The payload of a bzImage (Documentation/x86/boot.rst of Linux: setup_sects, payload_offset,
/// payload_length).
fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let setup_sectors = match image[0x1f1] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = (setup_sectors + 1) * 512 + word(0x248)?;
    image.get(start..start.checked_add(word(0x24c)?)?)
}

/// Copies the needed modules with their dependencies, and lists them for `modprobe`.
fn modules(tree: &Path, done: &Path, release: &str) -> Result<()> {
    run_in(tree, &[OsStr::new("/sbin/depmod"), OsStr::new("-b"), tree.as_os_str(), OsStr::new(release)])?;
    let names = ALL_MODULES.map(str::split_whitespace).into_iter().flatten();
    for name in names {
        let mut depends = Command::new("/sbin/modprobe");
        depends.arg("-d").arg(tree).args(["-S", release, "--show-depends", name]);
        let output = depends.stderr(Stdio::inherit()).output().context("cannot start modprobe")?;
        ensure!(output.status.success(), "{release} has no module {name}");
        for line in String::from_utf8(output.stdout)?.lines() {
            // Other modules are built into the kernel.
            let Some(path) = line.strip_prefix("insmod ") else { continue };
            let path = Path::new(path.trim_end());
            let to =
                done.join(path.strip_prefix(tree).context("modprobe names a module outside the package")?);
            fs::create_dir_all(to.parent().unwrap_or(done))?;
            fs::copy(path, to)?;
        }
    }
    let directory = Path::new(MODULES).join(release);
    for list in ["modules.builtin", "modules.builtin.modinfo", "modules.order"] {
        fs::copy(tree.join(&directory).join(list), done.join(&directory).join(list))?;
    }
    run_in(done, &[OsStr::new("/sbin/depmod"), OsStr::new("-b"), done.as_os_str(), OsStr::new(release)])
}

fn run_in<S: AsRef<OsStr>>(directory: &Path, words: &[S]) -> Result<()> {
    let shown: Vec<_> = words.iter().map(|word| word.as_ref().to_string_lossy()).collect();
    let shown = shown.join(" ");
    // Standard output belongs to the command in the guest.
    let status = Command::new(&words[0])
        .args(&words[1..])
        .current_dir(directory)
        .stdout(std::io::stderr())
        .status()
        .with_context(|| format!("cannot start `{shown}`: is it installed?"))?;
    ensure!(status.success(), "`{shown}` failed ({status})");
    Ok(())
}

fn only_file(directory: &Path, extension: &str) -> Result<PathBuf> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new(extension)) {
            return Ok(path);
        }
    }
    bail!("{} has no .{extension} file", directory.display())
}

/// The directory of apt's lists; its time changes when they change.
const LISTS: &str = "/var/lib/apt/lists";
/// The directory in which a directory of the cache is prepared, under the lock.
const WORK: &str = "unfinished";
/// Names in a directory of the cache.
const IMAGE: &str = "kernel";
const MODULES: &str = "lib/modules";
/// The version of the format of a directory in the cache.
const FORMAT: u32 = 2;
/// The magic bytes (section 2.1.1.1 of the xz file format).
const XZ_MAGIC: &[u8] = b"\xfd7zXZ\0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_the_one_that_the_metapackage_depends_on() {
        let text = "Package: linux-image-amd64\nVersion: 6.1.192-2\nProvides: wireguard-modules (= 1.0.0)\n\
                    Depends: linux-image-6.1.0-56-amd64 (= 6.1.192-2)\nDescription: Linux\n";
        let package = Package::parse(text).unwrap();
        assert_eq!((&*package.name, &*package.version), ("linux-image-6.1.0-56-amd64", "6.1.192-2"));
        assert!(package.key().starts_with("linux-image-6.1.0-56-amd64_6.1.192-2-"), "{}", package.key());
        assert_eq!(Package::parse(""), None);
        assert_eq!(Package::parse("Depends: linux-image-6.1.0-56-amd64\n"), None);
    }

    #[test]
    fn the_payload_is_found_and_nothing_outside_the_image() {
        let mut image = vec![0; 0x1000];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&0x10u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&3u32.to_le_bytes());
        image[0x410..0x413].copy_from_slice(b"abc");
        assert_eq!(payload(&image), Some(&b"abc"[..]));
        image[0x24c..0x250].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(payload(&image), None);
        assert_eq!(payload(&image[..0x100]), None);
        assert_eq!(payload(b""), None);
    }

    #[test]
    fn an_unfinished_directory_is_not_taken_for_a_kernel() {
        let cache = std::env::temp_dir().join(format!("xtask-vm-{}", std::process::id()));
        let finished = cache.join(format!("linux-image-1_1{}", suffix()));
        fs::create_dir_all(cache.join(WORK)).unwrap();
        fs::create_dir_all(cache.join("linux-image-1_1-00000000")).unwrap();
        assert_eq!(newest(&cache).unwrap(), None);
        fs::create_dir_all(&finished).unwrap();
        assert_eq!(newest(&cache).unwrap().map(|(path, _)| path), Some(finished));
        fs::remove_dir_all(&cache).unwrap();
    }
}
