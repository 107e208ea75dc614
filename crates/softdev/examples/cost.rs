use softdev::PROVIDER;
use verbs::abi::*;
use verbs::*;
fn tsc() -> u64 {
    unsafe { core::arch::x86_64::_rdtsc() }
}
fn main() {
    let ctx = devices(&PROVIDER).unwrap()[0].open().unwrap();
    let pd = ctx.protection_domain().unwrap();
    let opts = QueuePairOptions {
        service: Service::Rc,
        max_send_wr: 128,
        max_recv_wr: 512,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 64,
    };
    let gid = ctx.gid(1, 0).unwrap();
    let cqs: Vec<_> = (0..4).map(|_| ctx.completion_queue(1024, None).unwrap()).collect();
    let a = pd.queue_pair(&opts, &cqs[0], &cqs[1]).unwrap().init(1, 0).unwrap();
    let b = pd.queue_pair(&opts, &cqs[2], &cqs[3]).unwrap().init(1, 0).unwrap();
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
    let ma = pd.memory_region(4096, IBV_ACCESS_LOCAL_WRITE).unwrap();
    let mut r = ReceiveRequest::new(7, vec![ma.sge(64, 8).unwrap()]);
    let mut s = SendRequest::send(9, vec![ma.sge(0, 8).unwrap()]).signaled(true);
    for _ in 0..100 {
        b.post_receive(&mut r).unwrap();
    }
    let n = 3_000_000u64;
    let mut t = [0u64; 6];
    let mut wc = [Completion::default(); 16];
    for _ in 0..n {
        let t0 = tsc();
        a.post_send(&mut s).unwrap();
        let t1 = tsc();
        assert_eq!(cqs[3].poll(&mut wc).unwrap().len(), 1);
        let t2 = tsc();
        b.post_receive(&mut r).unwrap();
        let t3 = tsc();
        assert_eq!(cqs[0].poll(&mut wc).unwrap().len(), 1);
        let t4 = tsc();
        assert_eq!(cqs[3].poll(&mut wc).unwrap().len(), 0);
        let t5 = tsc();
        let t6 = tsc();
        for (i, d) in [t1 - t0, t2 - t1, t3 - t2, t4 - t3, t5 - t4, t6 - t5].into_iter().enumerate() {
            t[i] += d;
        }
    }
    for (name, v) in ["post_send", "poll recv", "post_recv", "poll send", "poll empty", "stamp"].iter().zip(t)
    {
        println!("{name}: {:.1} ns", v as f64 / n as f64 / 2.596);
    }
}
