use softdev::PROVIDER;
use verbs::abi::*;
use verbs::*;
#[test]
fn rc() {
    let ctx = devices(&PROVIDER).unwrap()[0].open().unwrap();
    let pd = ctx.protection_domain().unwrap();
    let opts = QueuePairOptions {
        service: Service::Rc,
        max_send_wr: 16,
        max_recv_wr: 16,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 64,
    };
    let gid = ctx.gid(1, 0).unwrap();
    let cqs: Vec<_> = (0..2).map(|_| ctx.completion_queue(64, None).unwrap()).collect();
    let a = pd.queue_pair(&opts, &cqs[0], &cqs[0]).unwrap().init(1, 0).unwrap();
    let b = pd.queue_pair(&opts, &cqs[1], &cqs[1]).unwrap().init(1, 0).unwrap();
    let conn = |n| Connection {
        qp_num: n,
        peer_psn: 5,
        own_psn: 5,
        mtu: Mtu::from_bytes(4096).unwrap(),
        route: Route { port: 1, gid_index: 0, gid, lid: 0, service_level: 0, traffic_class: 0 },
        timeout: 14,
        retry_count: 7,
        rnr_retry: 7,
        min_rnr_timer: 12,
    };
    let (ca, cb) = (conn(b.number()), conn(a.number()));
    let mut a = a.ready_to_receive(&ca).unwrap().ready_to_send(&ca).unwrap();
    let mut b = b.ready_to_receive(&cb).unwrap().ready_to_send(&cb).unwrap();
    for size in [0, 1, 8, 32, 33, 4096, 8192, 100_000, 8 << 20] {
        let mut ma = pd.memory_region(size.max(1), IBV_ACCESS_LOCAL_WRITE).unwrap();
        let mb = pd.memory_region(size.max(1), IBV_ACCESS_LOCAL_WRITE).unwrap();
        let data: Vec<u8> = (0..size).map(|i| (i * 7) as u8).collect();
        ma.write(0, &data).unwrap();
        b.post_receive(&mut ReceiveRequest::new(7, vec![mb.sge(0, size).unwrap()])).unwrap();
        a.post_send(&mut SendRequest::send(9, vec![ma.sge(0, size).unwrap()]).signaled(true)).unwrap();
        let mut wc = [Completion::default(); 4];
        let got = cqs[0].poll(&mut wc).unwrap();
        assert_eq!((got.len(), got[0].id()), (1, 9));
        assert!(got[0].status().is_success(), "{}", got[0].status());
        let got = cqs[1].poll(&mut wc).unwrap();
        assert_eq!((got.len(), got[0].id(), got[0].byte_len()), (1, 7, size as u32));
        assert!(got[0].status().is_success());
        let mut back = vec![0; size];
        mb.read(0, &mut back).unwrap();
        assert!(back == data);
    }
}
