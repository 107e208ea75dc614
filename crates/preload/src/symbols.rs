//! The table of exported symbols: name, parameters, and implementation.

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};

use libc::{FILE, dirent64, mode_t};

use softdev::{PROVIDER, more};
use verbs::abi::*;

use crate::asked::Path;
use crate::files::{self, Stat, Statx};
use crate::listing::{self, Filter, List, Order, Stream};
use crate::{address, gid, manager, memory, opening, refused};

macro_rules! symbols {
    ($($name:ident($($type:ty),*) $(-> $answer:ty)? = $to:expr;)*) => {
        /// The names of the functions that the library defines.
        pub const SYMBOLS: &[&str] = &[$(stringify!($name)),*];

        /// Returns the function of libibverbs with a name.
        pub(crate) fn verb(name: &[u8]) -> Option<*mut c_void> {
            if !name.starts_with(b"ibv_") && !name.starts_with(b"_ibv_") {
                return None;
            }
            $(if name == stringify!($name).as_bytes() {
                return Some($name as *mut c_void);
            })*
            None
        }

        $(symbols!(@define $name [a b c d e f] ($($type),*) ($($answer)?) $to);)*
    };
    (@define $name:ident $names:tt ($($type:ty),*) ($($answer:ty)?) $to:expr) => {
        symbols!(@zip $name $names ($($type,)*) () ($($answer)?) $to);
    };
    (@zip $name:ident [$arg:ident $($args:ident)*] ($type:ty, $($types:ty,)*) ($($done:tt)*) $answer:tt $to:expr) => {
        symbols!(@zip $name [$($args)*] ($($types,)*) ($($done)* ($arg $type)) $answer $to);
    };
    (@zip $name:ident $unused:tt () ($(($arg:ident $type:ty))*) ($($answer:ty)?) $to:expr) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $type),*) $(-> $answer)? {
            // SAFETY: the caller keeps the contract of the function of this name, which is also the
            // contract of its implementation.
            unsafe { ($to)($($arg),*) }
        }
    };
}

type Context = *mut ibv_context;
type Device = *mut ibv_device;
type Pd = *mut ibv_pd;
type Mr = *mut ibv_mr;
type Channel = *mut ibv_comp_channel;
type Cq = *mut ibv_cq;
type Qp = *mut ibv_qp;
type Srq = *mut ibv_srq;
type Ah = *mut ibv_ah;
type Gid = *mut ibv_gid;
type Entry = *mut ibv_gid_entry;
type Any = *mut c_void;
type Header = *mut [u8; 40];

symbols! {
    // Tells rdmascope that the manager is emulated.
    rdmascope_manager() = manager::is_emulated;

    // Devices.
    ibv_get_device_list(*mut c_int) -> *mut Device = PROVIDER.get_device_list;
    ibv_free_device_list(*mut Device) = PROVIDER.free_device_list;
    ibv_get_device_name(Device) -> *const c_char = PROVIDER.get_device_name;
    ibv_get_device_guid(Device) -> u64 = gid::device_guid;
    ibv_get_device_index(Device) -> c_int = gid::device_index;
    ibv_open_device(Device) -> Context = PROVIDER.open_device;
    ibv_import_device(c_int) -> Context = refused::import_device;
    ibv_close_device(Context) -> c_int = PROVIDER.close_device;
    ibv_query_device(Context, *mut ibv_device_attr) -> c_int = PROVIDER.query_device;
    ibv_query_port(Context, u8, *mut ibv_port_attr) -> c_int = PROVIDER.query_port;
    ibv_query_port_speed(Context, u32, *mut u64) -> c_int = refused::query_port_speed;
    ibv_query_gid(Context, u8, c_int, Gid) -> c_int = PROVIDER.query_gid;
    ibv_query_gid_type(Context, u8, u32, *mut u32) -> c_int = gid::query_gid_type;
    _ibv_query_gid_ex(Context, u32, u32, Entry, u32, usize) -> c_int = more::query_gid_ex;
    _ibv_query_gid_table(Context, Entry, usize, u32, usize) -> isize = gid::query_gid_table;
    ibv_query_pkey(Context, u8, c_int, *mut u16) -> c_int = PROVIDER.query_pkey;
    ibv_get_pkey_index(Context, u8, u16) -> c_int = gid::pkey_index;
    ibv_get_async_event(Context, *mut ibv_async_event) -> c_int = PROVIDER.get_async_event;
    ibv_ack_async_event(*mut ibv_async_event) = PROVIDER.ack_async_event;
    ibv_fork_init() -> c_int = memory::fork_init;
    ibv_is_fork_initialized() -> c_int = memory::is_fork_initialized;

    // Protection domains and memory.
    ibv_alloc_pd(Context) -> Pd = PROVIDER.alloc_pd;
    ibv_import_pd(Context, u32) -> Pd = refused::import_pd;
    ibv_unimport_pd(Pd) = refused::unimport;
    ibv_dealloc_pd(Pd) -> c_int = PROVIDER.dealloc_pd;
    ibv_reg_mr(Pd, Any, usize, c_int) -> Mr = PROVIDER.reg_mr;
    ibv_reg_mr_iova(Pd, Any, usize, u64, c_int) -> Mr = memory::reg_mr_iova2;
    ibv_reg_mr_iova2(Pd, Any, usize, u64, c_int) -> Mr = memory::reg_mr_iova2;
    ibv_reg_mr_ex(Pd, Any) -> Mr = refused::reg_mr_ex;
    ibv_reg_dmabuf_mr(Pd, u64, usize, u64, c_int, c_int) -> Mr = refused::reg_dmabuf_mr;
    ibv_rereg_mr(Mr, c_int, Pd, Any, usize, c_int) -> c_int = more::rereg_mr;
    ibv_import_mr(Pd, u32) -> Mr = refused::import_mr;
    ibv_unimport_mr(Mr) = refused::unimport;
    ibv_dereg_mr(Mr) -> c_int = PROVIDER.dereg_mr;
    ibv_import_dm(Context, u32) -> Any = refused::import_dm;
    ibv_unimport_dm(Any) = refused::unimport;
    ibv_alloc_dmah(Context, Any) -> Any = refused::alloc_dmah;
    ibv_alloc_buf(Pd, usize, *mut Any) -> Any = refused::alloc_buf;
    ibv_reg_buf_mr(Pd, Any, Any, usize, c_int) -> Mr = refused::reg_buf_mr;

    // Completions.
    ibv_create_comp_channel(Context) -> Channel = PROVIDER.create_comp_channel;
    ibv_destroy_comp_channel(Channel) -> c_int = PROVIDER.destroy_comp_channel;
    ibv_create_cq(Context, c_int, Any, Channel, c_int) -> Cq = PROVIDER.create_cq;
    ibv_resize_cq(Cq, c_int) -> c_int = PROVIDER.resize_cq;
    ibv_destroy_cq(Cq) -> c_int = PROVIDER.destroy_cq;
    ibv_get_cq_event(Channel, *mut Cq, *mut Any) -> c_int = PROVIDER.get_cq_event;
    ibv_ack_cq_events(Cq, u32) = PROVIDER.ack_cq_events;
    _ibv_query_comp_cntr_caps(Context, Any, usize) -> c_int = refused::query_comp_cntr_caps;
    ibv_create_comp_cntr(Context, Any) -> Any = refused::create_comp_cntr;

    // Shared receive queues.
    ibv_create_srq(Pd, *mut ibv_srq_init_attr) -> Srq = PROVIDER.create_srq;
    ibv_modify_srq(Srq, *mut ibv_srq_attr, c_int) -> c_int = PROVIDER.modify_srq;
    ibv_query_srq(Srq, *mut ibv_srq_attr) -> c_int = PROVIDER.query_srq;
    ibv_destroy_srq(Srq) -> c_int = PROVIDER.destroy_srq;

    // Queue pairs.
    ibv_create_qp(Pd, *mut ibv_qp_init_attr) -> Qp = PROVIDER.create_qp;
    ibv_qp_to_qp_ex(Qp) -> *mut ibv_qp_ex = more::qp_to_qp_ex;
    ibv_modify_qp(Qp, *mut ibv_qp_attr, c_int) -> c_int = PROVIDER.modify_qp;
    ibv_query_qp(Qp, *mut ibv_qp_attr, c_int, *mut ibv_qp_init_attr) -> c_int = PROVIDER.query_qp;
    ibv_query_qp_data_in_order(Qp, u32, u32) -> c_int = memory::data_in_order;
    ibv_qp_attach_comp_cntr(Qp, Any, Any) -> c_int = refused::qp_attach_comp_cntr;
    ibv_query_ece(Qp, Any) -> c_int = refused::ece;
    ibv_set_ece(Qp, Any) -> c_int = refused::ece;
    ibv_destroy_qp(Qp) -> c_int = PROVIDER.destroy_qp;

    // Addresses.
    ibv_create_ah(Pd, *mut ibv_ah_attr) -> Ah = PROVIDER.create_ah;
    ibv_init_ah_from_wc(Context, u8, *mut ibv_wc, Header, *mut ibv_ah_attr) -> c_int = address::init_ah_from_wc;
    ibv_create_ah_from_wc(Pd, *mut ibv_wc, Header, u8) -> Ah = address::create_ah_from_wc;
    ibv_resolve_eth_l2_from_gid(Context, *mut ibv_ah_attr, *mut u8, *mut u16) -> c_int = address::resolve_eth_l2;
    ibv_destroy_ah(Ah) -> c_int = PROVIDER.destroy_ah;
    ibv_attach_mcast(Qp, *const ibv_gid, u16) -> c_int = PROVIDER.attach_mcast;
    ibv_detach_mcast(Qp, *const ibv_gid, u16) -> c_int = PROVIDER.detach_mcast;

    // Files of the devices: functions of libc.
    stat(Path, Stat) -> c_int = files::stat;
    stat64(Path, Stat) -> c_int = files::stat64;
    lstat(Path, Stat) -> c_int = files::lstat;
    lstat64(Path, Stat) -> c_int = files::lstat64;
    fstatat(c_int, Path, Stat, c_int) -> c_int = files::fstatat;
    fstatat64(c_int, Path, Stat, c_int) -> c_int = files::fstatat64;
    __xstat(c_int, Path, Stat) -> c_int = files::__xstat;
    __xstat64(c_int, Path, Stat) -> c_int = files::__xstat64;
    __lxstat(c_int, Path, Stat) -> c_int = files::__lxstat;
    __lxstat64(c_int, Path, Stat) -> c_int = files::__lxstat64;
    __fxstatat(c_int, c_int, Path, Stat, c_int) -> c_int = files::__fxstatat;
    __fxstatat64(c_int, c_int, Path, Stat, c_int) -> c_int = files::__fxstatat64;
    statx(c_int, Path, c_int, c_uint, Statx) -> c_int = files::statx;
    access(Path, c_int) -> c_int = files::access;
    euidaccess(Path, c_int) -> c_int = files::euidaccess;
    eaccess(Path, c_int) -> c_int = files::eaccess;
    faccessat(c_int, Path, c_int, c_int) -> c_int = files::faccessat;
    open(Path, c_int, mode_t) -> c_int = opening::open;
    open64(Path, c_int, mode_t) -> c_int = opening::open64;
    openat(c_int, Path, c_int, mode_t) -> c_int = opening::openat;
    openat64(c_int, Path, c_int, mode_t) -> c_int = opening::openat64;
    __open_2(Path, c_int) -> c_int = opening::__open_2;
    __open64_2(Path, c_int) -> c_int = opening::__open64_2;
    __openat_2(c_int, Path, c_int) -> c_int = opening::__openat_2;
    __openat64_2(c_int, Path, c_int) -> c_int = opening::__openat64_2;
    fopen(Path, Path) -> *mut FILE = opening::fopen;
    fopen64(Path, Path) -> *mut FILE = opening::fopen64;
    readlink(Path, *mut c_char, usize) -> isize = opening::readlink;
    realpath(Path, *mut c_char) -> *mut c_char = opening::realpath;
    __realpath_chk(Path, *mut c_char, usize) -> *mut c_char = opening::__realpath_chk;
    canonicalize_file_name(Path) -> *mut c_char = opening::canonicalize_file_name;
    write(c_int, *const c_void, usize) -> isize = manager::write;
    close(c_int) -> c_int = manager::close;
    dup(c_int) -> c_int = manager::dup;
    dup2(c_int, c_int) -> c_int = manager::dup2;
    dup3(c_int, c_int, c_int) -> c_int = manager::dup3;
    fstat(c_int, Stat) -> c_int = manager::fstat;
    fstat64(c_int, Stat) -> c_int = manager::fstat64;
    __fxstat(c_int, c_int, Stat) -> c_int = manager::__fxstat;
    __fxstat64(c_int, c_int, Stat) -> c_int = manager::__fxstat64;
    opendir(Path) -> Stream = listing::opendir;
    readdir(Stream) -> *mut dirent64 = listing::readdir;
    readdir64(Stream) -> *mut dirent64 = listing::readdir64;
    readdir_r(Stream, *mut dirent64, *mut *mut dirent64) -> c_int = listing::readdir_r;
    readdir64_r(Stream, *mut dirent64, *mut *mut dirent64) -> c_int = listing::readdir64_r;
    closedir(Stream) -> c_int = listing::closedir;
    rewinddir(Stream) = listing::rewinddir;
    telldir(Stream) -> c_long = listing::telldir;
    seekdir(Stream, c_long) = listing::seekdir;
    dirfd(Stream) -> c_int = listing::dirfd;
    scandir(Path, List, Filter, Order) -> c_int = listing::scandir;
    scandir64(Path, List, Filter, Order) -> c_int = listing::scandir64;
}
