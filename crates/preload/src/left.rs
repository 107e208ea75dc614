//! The public functions of libibverbs that this library does not define, with the reasons.

/// Functions that take no object of a device: numbers, names, files, address ranges.
pub const LEFT: &[&str] = &[
    "ibv_copy_ah_attr_from_kern",
    "ibv_copy_path_rec_from_kern",
    "ibv_copy_path_rec_to_kern",
    "ibv_copy_qp_attr_from_kern",
    "ibv_dofork_range",
    "ibv_dontfork_range",
    "ibv_event_type_str",
    "ibv_get_sysfs_path",
    "ibv_node_type_str",
    "ibv_port_state_str",
    "ibv_rate_to_mbps",
    "ibv_rate_to_mult",
    "ibv_read_sysfs_file",
    // For drivers older than rdma-core: it does nothing.
    "ibv_register_driver",
    "ibv_wc_status_str",
    "mbps_to_ibv_rate",
    "mult_to_ibv_rate",
];

/// Functions that take only objects that cannot exist, because making them is refused (rdma-core 58
/// to 64).
pub const NEVER_MADE: &[&str] = &[
    "ibv_dealloc_dmah",
    "ibv_destroy_comp_cntr",
    "ibv_dm_export_dmabuf_fd",
    "ibv_export_buf_dmabuf_fd",
    "ibv_free_buf",
    "ibv_inc_comp_cntr",
    "ibv_inc_err_comp_cntr",
    "ibv_read_comp_cntr",
    "ibv_read_err_comp_cntr",
    "ibv_set_comp_cntr",
    "ibv_set_err_comp_cntr",
];
