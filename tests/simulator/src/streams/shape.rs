//! What a seed asks of the deployment, and what it does to it.

use bytes::Bytes;
use sealog_log::session::Limits;
use sealog_log::{Nanos, SECOND};

use crate::random::Random;

/// Which faults a run meets, in thousandths.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    /// Whether any of the following happens still.
    pub(super) active: bool,
    /// Per message between objects.
    pub(super) drop: u64,
    pub(super) duplicate: u64,
    /// Per message: it takes up to a minute and a half.
    pub(super) late: u64,
    /// Per event of a partition: it crashes right after it.
    pub(super) crash: u64,
    /// Per event of a session: its memory is lost somewhere in it, its socket is not.
    pub(super) loss: u64,
    /// Per quiet moment of a session: it hibernates.
    pub(super) sleep: u64,
    /// Per write of an object: it never becomes durable, and the object starts anew.
    pub(super) flush: u64,
    /// Per event of an object: a statement of it fails.
    pub(super) statement: u64,
    /// Per frame: the client stops reading for a while.
    pub(super) stall: u64,
    /// Per thing that a client does: it is gone instead.
    pub(super) vanish: u64,
}

/// Everything that a seed fixes before the run.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) partitions: u32,
    pub(super) topics: Vec<Bytes>,
    /// Bidirectional and static.
    pub(super) clients: (usize, usize),
    pub(super) limits: Limits,
    pub(super) faults: Faults,
    /// When the last fault strikes.
    pub(super) calm_at: Nanos,
    /// When each publish begins, the index of its topic, and the bytes of its envelope.
    pub(super) publishes: Vec<(Nanos, usize, usize)>,
    /// After the rest, all clients go, and a day passes.
    pub(super) a_day_later: bool,
}

impl Shape {
    pub(super) fn new(random: &mut Random) -> Self {
        let partitions = random.small(1, 3);
        let topics: Vec<Bytes> = (0..random.small(2, 6)).map(topic).collect();
        let calm_at = random.between(20, 150) * SECOND;
        // Few and long envelopes fill what a stream may have out; many short ones make many pages.
        let long = random.chance(150);
        let (count, bytes) = if long { (30, 900_000) } else { (80, 200) };
        let mut publishes: Vec<(Nanos, usize, usize)> = (0..random.between(5, count))
            .map(|_| {
                let at = if random.chance(300) { 0 } else { random.below(calm_at) };
                (at, random.index(topics.len()), random.index(bytes) + 1)
            })
            .collect();
        publishes.sort_unstable();
        let max_response_bytes = if long || random.chance(300) { 26_214_400 } else { 900 };
        Self {
            partitions,
            topics,
            clients: (random.index(3) + 1, random.index(2)),
            limits: Limits { max_response_bytes, ..Limits::default() },
            faults: Faults::new(random),
            calm_at,
            publishes,
            a_day_later: random.chance(60),
        }
    }
}

impl Faults {
    fn new(random: &mut Random) -> Self {
        let mut faults = Self {
            active: true,
            drop: 0,
            duplicate: 0,
            late: 0,
            crash: 0,
            loss: 0,
            sleep: 0,
            flush: 0,
            statement: 0,
            stall: 0,
            vanish: 0,
        };
        // One seed in eight is calm; the others get each fault or not, more or less of it.
        if !random.chance(125) {
            for (rate, most) in [
                (&mut faults.drop, 100),
                (&mut faults.duplicate, 150),
                (&mut faults.late, 50),
                (&mut faults.crash, 40),
                (&mut faults.loss, 15),
                (&mut faults.sleep, 400),
                (&mut faults.flush, 10),
                (&mut faults.statement, 10),
                (&mut faults.stall, 40),
                (&mut faults.vanish, 60),
            ] {
                if random.chance(500) {
                    *rate = random.between(1, most);
                }
            }
        }
        faults
    }

    /// Nothing happens that may end a stream.
    pub(super) fn are_harmless(&self) -> bool {
        let Self { drop, late, crash, loss, flush, statement, stall, vanish, .. } = self;
        [drop, late, crash, loss, flush, statement, stall, vanish].iter().all(|rate| **rate == 0)
    }
}

/// A group-message topic.
fn topic(number: u32) -> Bytes {
    [&[0; 13][..], &number.to_be_bytes()].concat().into()
}
