//! Random walks: rows, registrations, lost, late and repeated messages, dying instances; then the faults stop, and
//! every session has heard of every row.

use std::collections::BTreeMap;

use bytes::Bytes;
use sealog_log::partition::watch::pull;
use sealog_log::{SECOND, Sql};
use sealog_proto::internal::{
    ControlRequest, PullRequest, PushReply, PushRequest, control_reply::Verdict, control_request::Kind,
    pull_request::Position,
};

use crate::support::{Reader, World, call, session_id, topic, watches};

const SESSIONS: u32 = 4;
const TOPICS: u32 = 5;

/// A small generator: walks are told apart by their seed, and repeat.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(sides)).unwrap()
    }
}

struct Walk {
    world: World,
    dice: Dice,
    readers: Vec<Reader>,
    /// The last number of each session's calls.
    numbers: Vec<u64>,
    /// Calls and pushes that were delivered, and may be again.
    old_calls: Vec<ControlRequest>,
    old_pushes: Vec<PushRequest>,
}

impl Walk {
    fn step(&mut self) {
        match self.dice.roll(20) {
            0..=5 => {
                let rows: Vec<_> =
                    (0..=self.dice.roll(3)).map(|_| (topic(self.dice.roll(TOPICS)), 10)).collect();
                self.world.commit(&rows);
            }
            6..=8 => self.register(),
            9 => {
                if let Some(call) = self.old_calls.get(self.dice.roll(16) as usize).cloned() {
                    self.world.control(&call); // a late copy
                }
            }
            10..=14 => {
                if let Some(push) = self.world.pushes.pop_front() {
                    self.deliver(&push);
                }
            }
            15 => {
                if let Some(push) = self.world.pushes.pop_front() {
                    if self.dice.roll(2) == 0 {
                        self.reader(&push.session).take(&push); // it came, its answer did not
                    }
                    self.world.answer(&push, None);
                }
            }
            16 => {
                if let Some(push) = self.old_pushes.get(self.dice.roll(16) as usize).cloned() {
                    self.reader(&push.session).take(&push); // a late copy
                }
            }
            17 => {
                self.world.now += SECOND;
                if self.world.rings_at.is_some() {
                    self.world.ring();
                }
            }
            18 => self.world.die(), // nobody starts it but its alarm, or the next event
            _ => {
                let session = self.dice.roll(SESSIONS) as usize;
                self.catch_up(session);
            }
        }
    }

    fn reader(&mut self, session: &Bytes) -> &mut Reader {
        let session = (0..SESSIONS).find(|number| session_id(*number) == session).unwrap();
        &mut self.readers[session as usize]
    }

    /// A session adds or removes a topic.
    fn register(&mut self) {
        let session = self.dice.roll(SESSIONS);
        let topic = topic(self.dice.roll(TOPICS));
        self.numbers[session as usize] += 1;
        let number = self.numbers[session as usize];
        let reader = &mut self.readers[session as usize];
        let request = match reader.topics.remove(&topic) {
            Some(old) => {
                let remove = watches(std::slice::from_ref(&topic), old.generation.into());
                call(session, Kind::Bidi, number, &[], &remove)
            }
            None => call(session, Kind::Bidi, number, &watches(std::slice::from_ref(&topic), number), &[]),
        };
        let lost = self.dice.roll(4) == 0;
        if lost {
            self.world.control(&request); // its answer is lost, and it is repeated
        }
        let reply = self.world.control(&request);
        assert_eq!(reply.verdict(), Verdict::Done);
        if let Some(head) = reply.heads.first() {
            let generation = u32::try_from(number).unwrap();
            self.readers[session as usize].register(&topic, generation, head.head);
        }
        self.old_calls.insert(0, request);
    }

    fn deliver(&mut self, push: &PushRequest) {
        let unwanted = self.reader(&push.session).take(push);
        let reply = PushReply { incarnation: push.incarnation, number: push.number, gone: false, unwanted };
        self.world.answer(push, Some(&reply));
        self.old_pushes.insert(0, push.clone());
    }

    /// A session that is behind pulls.
    fn catch_up(&mut self, session: usize) {
        for (topic, it) in &mut self.readers[session].topics {
            while it.known > it.position {
                let position =
                    Position { topic: topic.clone(), generation: it.generation, after: it.position };
                let request = PullRequest { number: 1, budget: 1 << 20, positions: vec![position] };
                let page = pull(&self.world.storage, &request).unwrap();
                it.delivered.extend(
                    page.items[0]
                        .rows
                        .iter()
                        .map(|row| row.meta.as_ref().unwrap().cursor.unwrap().sequence_id),
                );
                it.position = page.items[0].through;
                it.known = it.known.max(page.items[0].head);
            }
        }
    }

    /// The faults stop.
    fn finish(&mut self) {
        for _ in 0..200 {
            while let Some(push) = self.world.pushes.pop_front() {
                self.deliver(&push);
            }
            if let Some(at) = self.world.rings_at
                && at <= self.world.now + 60 * SECOND
            {
                self.world.ring();
            }
        }
        for session in 0..self.readers.len() {
            self.catch_up(session);
        }
    }

    fn check(&self, seed: u64) {
        let mut log: BTreeMap<Bytes, Vec<u64>> = BTreeMap::new();
        let statement = "SELECT topic, sequence_id FROM envelopes ORDER BY sequence_id";
        self.world
            .storage
            .query(statement, &[], &mut |row| {
                log.entry(row[0].blob()?).or_default().push(row[1].uint8()?);
                Ok(std::ops::ControlFlow::Continue(()))
            })
            .unwrap();
        let mut watches = 0;
        for reader in &self.readers {
            watches += reader.topics.len();
            for (topic, it) in &reader.topics {
                let rows = log.get(topic).map_or(&[][..], Vec::as_slice);
                let expected: Vec<u64> = rows.iter().copied().filter(|id| *id > it.target).collect();
                assert_eq!(it.delivered, expected, "seed {seed}: nothing skipped, nothing twice");
                assert_eq!(it.position, rows.last().copied().unwrap_or(0), "seed {seed}: nothing unheard");
            }
        }
        let (here, ..) = self.world.machine.sizes();
        assert!(here >= watches, "seed {seed}: a watch is missing");
        assert_eq!(self.world.pushes.len(), 0);
    }
}

#[test]
fn whatever_is_lost_late_or_repeated_every_row_is_heard_of() {
    let (mut hints, mut rows) = (0, 0);
    for seed in 0..200 {
        let mut walk = Walk {
            world: World::new(),
            dice: Dice(seed),
            readers: (0..SESSIONS).map(|_| Reader::default()).collect(),
            numbers: vec![0; SESSIONS as usize],
            old_calls: Vec::new(),
            old_pushes: Vec::new(),
        };
        for _ in 0..300 {
            walk.step();
        }
        walk.finish();
        walk.check(seed);
        let counters = walk.world.machine.counters();
        hints += counters.hints;
        rows += counters.items - counters.hints;
    }
    assert!(hints > 100 && rows > 1_000, "both kinds were told: {hints} hints, {rows} with rows");
}
