//! Compares the layout of the ABI with the system's own header, member by member.

use std::collections::BTreeMap;
use std::io::Write;
use std::mem::{offset_of, size_of};
use std::process::{Command, Stdio};

use verbs::abi::rdma_cm::*;
use verbs::abi::*;

/// `(name, C expression, Rust value)` of every size and offset.
fn layout() -> Vec<(String, String, usize)> {
    let mut rows = Vec::new();
    macro_rules! rows {
        ($($type:ident $c:literal { $($field:ident $(= $c_field:literal)?),* })*) => {$(
            rows.push((stringify!($type).to_owned(), format!("sizeof({})", $c), size_of::<$type>()));
            $(
                #[allow(unused_mut, unused_assignments)]
                let mut c_field = stringify!($field);
                $(c_field = $c_field;)?
                rows.push((
                    format!("{}.{}", stringify!($type), stringify!($field)),
                    format!("offsetof({}, {})", $c, c_field),
                    offset_of!($type, $field),
                ));
            )*
        )*};
    }
    rows! {
        ibv_gid "union ibv_gid" { raw }
        ibv_gid_entry "struct ibv_gid_entry" { gid, gid_index, port_num, gid_type, ndev_ifindex }
        ibv_device_attr "struct ibv_device_attr" { fw_ver, node_guid, max_mr_size, max_qp, max_qp_wr, max_sge, max_cqe,
            max_pd, atomic_cap, max_srq_sge, max_pkeys, local_ca_ack_delay, phys_port_cnt }
        ibv_port_attr "struct ibv_port_attr" { state, max_mtu, active_mtu, gid_tbl_len, port_cap_flags, max_msg_sz,
            qkey_viol_cntr, pkey_tbl_len, lid, sm_lid, lmc, active_width, active_speed, phys_state, link_layer, flags,
            port_cap_flags2 }
        ibv_wc "struct ibv_wc" { wr_id, status, opcode, vendor_err, byte_len, imm_data, qp_num, src_qp, wc_flags,
            pkey_index, slid, sl, dlid_path_bits }
        ibv_pd "struct ibv_pd" { context, handle }
        ibv_mr "struct ibv_mr" { context, pd, addr, length, handle, lkey, rkey }
        ibv_ah_attr "struct ibv_ah_attr" { grh, dlid, sl, src_path_bits, static_rate, is_global, port_num }
        ibv_global_route "struct ibv_global_route" { dgid, flow_label, sgid_index, hop_limit, traffic_class }
        ibv_qp_init_attr "struct ibv_qp_init_attr" { qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all }
        ibv_qp_cap "struct ibv_qp_cap" { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data }
        ibv_qp_attr "struct ibv_qp_attr" { qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn,
            dest_qp_num, qp_access_flags, cap, ah_attr, alt_ah_attr, pkey_index, alt_pkey_index, en_sqd_async_notify,
            sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry,
            alt_port_num, alt_timeout, rate_limit }
        ibv_sge "struct ibv_sge" { addr, length, lkey }
        ibv_send_wr "struct ibv_send_wr" { wr_id, next, sg_list, num_sge, opcode, send_flags, imm_data, wr,
            remote_srqn = "qp_type.xrc.remote_srqn", reserved = "bind_mw" }
        ibv_recv_wr "struct ibv_recv_wr" { wr_id, next, sg_list, num_sge }
        ibv_srq "struct ibv_srq" { context, srq_context, pd, handle, mutex, cond, events_completed }
        ibv_qp "struct ibv_qp" { context, qp_context, pd, send_cq, recv_cq, srq, handle, qp_num, state, qp_type, mutex,
            cond, events_completed }
        ibv_comp_channel "struct ibv_comp_channel" { context, fd, refcnt }
        ibv_cq "struct ibv_cq" { context, channel, cq_context, handle, cqe, mutex, cond, comp_events_completed,
            async_events_completed }
        ibv_ah "struct ibv_ah" { context, pd, handle }
        ibv_device "struct ibv_device" { ops = "_ops", node_type, transport_type, name, dev_name, dev_path, ibdev_path }
        ibv_context "struct ibv_context" { device, ops, cmd_fd, async_fd, num_comp_vectors, mutex, abi_compat }
        rdma_event_channel "struct rdma_event_channel" { fd }
        rdma_cm_id "struct rdma_cm_id" { verbs, channel, context, qp, route, ps, port_num, event, send_cq_channel, send_cq,
            recv_cq_channel, recv_cq, srq, pd, qp_type }
        rdma_route "struct rdma_route" { addr, path_rec, num_paths }
        rdma_addr "struct rdma_addr" { src_storage, dst_storage, ibaddr = "addr" }
        rdma_ib_addr "struct rdma_ib_addr" { sgid, dgid, pkey }
        rdma_addrinfo "struct rdma_addrinfo" { ai_flags, ai_family, ai_qp_type, ai_port_space, ai_src_len, ai_dst_len,
            ai_src_addr, ai_dst_addr, ai_src_canonname, ai_dst_canonname, ai_route_len, ai_route, ai_connect_len,
            ai_connect, ai_next }
        rdma_conn_param "struct rdma_conn_param" { private_data, private_data_len, responder_resources, initiator_depth,
            flow_control, retry_count, rnr_retry_count, srq, qp_num }
        rdma_ud_param "struct rdma_ud_param" { private_data, private_data_len, ah_attr, qp_num, qkey }
        rdma_cm_event "struct rdma_cm_event" { id, listen_id, event, status, param }
        ibv_context_ops "struct ibv_context_ops" { alloc_mw, bind_mw, dealloc_mw, poll_cq, req_notify_cq, post_srq_recv,
            post_send, post_recv }
        ibv_srq_attr "struct ibv_srq_attr" { max_wr, max_sge, srq_limit }
        ibv_srq_init_attr "struct ibv_srq_init_attr" { srq_context, attr }
        ibv_srq_init_attr_ex "struct ibv_srq_init_attr_ex" { srq_context, attr, comp_mask, srq_type, pd,
            xrcd, cq, tm_cap }
        ibv_async_event "struct ibv_async_event" { element, event_type }
        ibv_odp_caps "struct ibv_odp_caps" { general_caps, rc_odp_caps = "per_transport_caps.rc_odp_caps",
            uc_odp_caps = "per_transport_caps.uc_odp_caps", ud_odp_caps = "per_transport_caps.ud_odp_caps" }
        ibv_device_attr_ex "struct ibv_device_attr_ex" { orig_attr, comp_mask, odp_caps,
            completion_timestamp_mask, hca_core_clock, device_cap_flags_ex, tso_caps, rss_caps,
            max_wq_type_rq, packet_pacing_caps, raw_packet_caps, tm_caps, cq_mod_caps, max_dm_size,
            pci_atomic_caps, xrc_odp_caps, phys_port_cnt_ex }
        ibv_query_device_ex_input "struct ibv_query_device_ex_input" { comp_mask }
        ibv_qp_init_attr_ex "struct ibv_qp_init_attr_ex" { qp_context, send_cq, recv_cq, srq, cap, qp_type,
            sq_sig_all, comp_mask, pd, xrcd, create_flags, max_tso_header, rwq_ind_tbl, rx_hash_conf,
            source_qpn, send_ops_flags }
        ibv_rx_hash_conf "struct ibv_rx_hash_conf" { rx_hash_function, rx_hash_key_len, rx_hash_key,
            rx_hash_fields_mask }
        ibv_cq_init_attr_ex "struct ibv_cq_init_attr_ex" { cqe, cq_context, channel, comp_vector, wc_flags,
            comp_mask, flags, parent_domain }
        ibv_values_ex "struct ibv_values_ex" { comp_mask, raw_clock }
        ibv_data_buf "struct ibv_data_buf" { addr, length }
        ibv_poll_cq_attr "struct ibv_poll_cq_attr" { comp_mask }
        ibv_qp_ex "struct ibv_qp_ex" { qp_base, comp_mask, wr_id, wr_flags, wr_atomic_cmp_swp,
            wr_atomic_fetch_add, wr_bind_mw, wr_local_inv, wr_rdma_read, wr_rdma_write, wr_rdma_write_imm,
            wr_send, wr_send_imm, wr_send_inv, wr_send_tso, wr_set_ud_addr, wr_set_xrc_srqn,
            wr_set_inline_data, wr_set_inline_data_list, wr_set_sge, wr_set_sge_list, wr_start, wr_complete,
            wr_abort, wr_atomic_write }
        ibv_cq_ex "struct ibv_cq_ex" { base = "context", comp_mask, status, wr_id, start_poll, next_poll,
            end_poll, read_opcode, read_vendor_err, read_byte_len, read_imm_data, read_qp_num, read_src_qp,
            read_wc_flags, read_slid, read_sl, read_dlid_path_bits, read_completion_ts, read_cvlan,
            read_flow_tag, read_tm_info, read_completion_wallclock_ns }
        verbs_context "struct verbs_context" { query_port, advise_mr, alloc_null_mr, read_counters,
            attach_counters_point_flow, create_counters, destroy_counters, reg_dm_mr, alloc_dm, free_dm,
            modify_flow_action_esp, destroy_flow_action, create_flow_action_esp, modify_qp_rate_limit,
            alloc_parent_domain, dealloc_td, alloc_td, modify_cq, post_srq_ops, destroy_rwq_ind_table,
            create_rwq_ind_table, destroy_wq, modify_wq, create_wq, query_rt_values, create_cq_ex, private =
            "priv", query_device_ex, ibv_destroy_flow,
            abi_placeholder2 = "ABI_placeholder2", ibv_create_flow,
            abi_placeholder1 = "ABI_placeholder1", open_qp,
            create_qp_ex, get_srq_num, create_srq_ex, open_xrcd, close_xrcd, abi_placeholder3 =
            "_ABI_placeholder3", sz, context }
    }
    rows
}

/// Compiles and runs a C program that prints every size and offset; `None` if the header is not
/// installed.
fn measured_by_c(rows: &[(String, String, usize)]) -> Option<BTreeMap<String, usize>> {
    let mut program =
        "#include <stdio.h>\n#include <stddef.h>\n#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\nint main(void){\n"
            .to_owned();
    for (name, expression, _) in rows {
        program += &format!("printf(\"{name} %zu\\n\", (size_t)({expression}));\n");
    }
    program += "return 0;}\n";
    let directory = std::env::temp_dir().join(format!("verbs-header-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let binary = directory.join("layout");
    let mut compiler = Command::new("cc")
        .args(["-x", "c", "-", "-o"])
        .arg(&binary)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    compiler.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    let compiled = compiler.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success() || errors.contains(".h: No such file"), "{errors}");
    let printed = compiled.status.success().then(|| Command::new(&binary).output().unwrap().stdout);
    std::fs::remove_dir_all(&directory).unwrap();
    let printed = String::from_utf8(printed?).unwrap();
    Some(
        printed
            .lines()
            .map(|line| line.rsplit_once(' ').unwrap())
            .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
            .collect(),
    )
}

#[test]
fn every_member_stands_where_the_header_has_it() {
    let rows = layout();
    let Some(c) = measured_by_c(&rows) else {
        let required = std::env::var("RDMASCOPE_REQUIRE").unwrap_or_default();
        assert!(!required.contains("header"), "infiniband/verbs.h and rdma/rdma_cma.h are required here");
        println!(
            "SKIPPED: verbs.h or rdma_cma.h is not installed (apt-get install libibverbs-dev librdmacm-dev)"
        );
        return;
    };
    assert_eq!(c.len(), rows.len());
    for (name, _, rust) in rows {
        assert_eq!(c[&name], rust, "{name}");
    }
}
