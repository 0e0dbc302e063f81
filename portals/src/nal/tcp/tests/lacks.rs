//! What a process lacks to connect, or to be connected to.

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
