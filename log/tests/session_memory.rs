//! What a stream of the most topics holds in memory. An isolate has 128 MB for all of its streams.
//!
//! One test, so that nothing else allocates in this process while it watches the peak.

#[path = "session/support/mod.rs"]
#[allow(dead_code, unreachable_pub)] // another crate's, which uses all of it
mod support;

use peak_alloc::PeakAlloc;
use sealog_log::session::{Limits, Session, Setup};
use support::World;

const MIB: usize = 1 << 20;
const TOPICS: u32 = 100_000;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Bytes that the session holds.
fn held(world: &mut World) -> usize {
    let setup = Setup { session: bytes::Bytes::from_static(&[1; 32]), ..world.setup.clone() };
    let ctx = sealog_log::session::Context {
        sql: &sealog_log::native::Native::new(),
        now: world.now,
        elsewhere: 0,
    };
    let (empty, _) = Session::load(&ctx, setup, None).expect("empty storage loads");
    let before = ALLOCATOR.current_usage();
    drop(std::mem::replace(&mut world.session, empty));
    before - ALLOCATOR.current_usage()
}

#[test]
fn a_registration_costs_little_more_than_a_hundred_bytes() {
    let mut world = World::with(8, Limits::default());
    // Topics come in no order, as identifiers are random.
    let topic = |nth: u32| nth.wrapping_mul(2_654_435_761);
    let adds: Vec<(u32, u64)> = (0..TOPICS).map(|nth| (topic(nth), 0)).collect();
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    world.update(1, &adds, &[]);
    let peak = ALLOCATOR.peak_usage() - before;
    println!("taking up the Update: {peak} bytes at most, with the test's own");
    assert!(peak <= 64 * MIB);
    world.run();
    world.take();
    world.frames.clear();
    let registered = held(&mut world);
    world.restart();
    world.update(2, &[(topic(TOPICS), 0)], &[topic(0)]);
    world.run();
    let loaded = held(&mut world);
    let each = |bytes: usize| bytes / TOPICS as usize;
    println!("a registration: {} bytes when added, {} when loaded", each(registered), each(loaded));
    assert!(each(registered) <= 145 && each(loaded) <= 145);
    // A sleeping stream that is woken by its alarm.
    world.restart();
    world.event(Session::alarm);
    let asleep = held(&mut world);
    println!("a keepalive holds {asleep} bytes");
    assert!(asleep <= 4_096);
}
