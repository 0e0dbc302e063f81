//! What a process lacks to connect, and the lock of its connections.

use super::*;

/// A process that cannot connect for now says so once, and its messages wait. They leave over a
/// connection that the peer makes.
#[test]
fn a_lack_of_ports_ends_no_connection() {
    static LACKS: AtomicU64 = AtomicU64::new(0);
    let change = |nid, wire: &mut TcpWire| {
        if nid == 0 {
            // No host has this address, so the system gives no port of it.
            wire.end.address = "192.0.2.1:9".parse().unwrap();
            wire.end.on_lack = |_| {
                LACKS.fetch_add(1, Ordering::Relaxed);
            };
        }
    };
    let job = JobSpec { hosts: vec![1, 1], secrets: secret, change }.start();
    let [a, b] = &job[..] else { unreachable!() };
    let ((_memories, from), (_others, back)) = (bound_and_exposed(a, b), bound_and_exposed(b, a));
    a.put(from, (0, 64), b, 7, 0, 0);
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(u64::from(LOST_MS) + 500) {
        a.ni.progress();
    }
    assert_eq!((a.failed().len(), LACKS.load(Ordering::Relaxed)), (0, 1));
    b.put(back, (0, 64), a, 7, 0, 0);
    events(&[a, b], 3);
    events(&[b, a], 3);
    assert!(a.failed().is_empty() && b.failed().is_empty());
}

/// A process that ends sends and receives in a signal handler, which may have interrupted the
/// thread that has the lock.
#[test]
fn nothing_that_an_exit_calls_waits_for_the_lock() {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let spec = TcpSpec {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            ports: 0..=0,
            secret: secret(0),
            library: LibraryVersion::new("test"),
            on_failure: Box::new(|_| {}),
            on_lack: |_| {},
        };
        let wire = TcpWire::open(spec).unwrap();
        let numbering = HostNumbering::new(0, &[1, 1]).unwrap();
        assert!(wire.connect(id(0, 0), &numbering, wire.address().repeat(2).into()));
        let _network = wire.network.lock();
        // SAFETY: no pieces.
        let sent = unsafe { wire.send(1, &[0; 8], &[], false) };
        done.send((sent, wire.receive(0, 1, &mut |_: u32, _: &[u8]| {}))).unwrap();
    });
    let found = is_done.recv_timeout(Duration::from_secs(30)).expect("it waits");
    assert_eq!(found, (FrameSent::Full, false));
}
