//! The registrations of a stream, and whose turn it is (rules 13, 16).

use std::collections::BTreeMap;

use crate::Fault;
use crate::key::Key;

/// How many removed topics are remembered for assertion (d).
const MAX_REMEMBERED: usize = 1_024;

/// A topic of the stream. Every visible row in (cursor, position] has been handed to the socket.
#[derive(Clone, Debug)]
pub(super) struct Registration {
    pub(super) cursor: u64,
    /// The head when the topic was registered; while it is registering, what is known of it so far.
    pub(super) target: u64,
    pub(super) position: u64,
    /// The highest head heard of. A maximum, never an assignment (trap 2).
    pub(super) known: u64,
    /// Its place in the rounds; 0 while it is not behind. It keeps its turn until it is served.
    turn: u64,
    /// Names it in what is stored; never used again.
    pub(super) slot: u32,
    /// The ordinal of the Update that registered it.
    pub(super) generation: u32,
    pub(super) partition: u32,
    /// Its Applied has left.
    pub(super) applied: bool,
    /// A pull for it is in flight.
    pub(super) pulling: bool,
}

impl Registration {
    pub(super) fn new(slot: u32, generation: u32, partition: u32, cursor: u64) -> Self {
        Self {
            cursor,
            target: 0,
            position: cursor,
            known: 0,
            turn: 0,
            slot,
            generation,
            partition,
            applied: false,
            pulling: false,
        }
    }

    /// It has history and got none of it yet (rule 16).
    pub(super) fn is_unserved(&self) -> bool {
        self.applied && self.position == self.cursor && self.cursor < self.target
    }

    pub(super) fn is_behind(&self) -> bool {
        self.applied && self.known > self.position
    }

    fn class(&self) -> Class {
        if self.is_unserved() {
            Class::Unserved
        } else if self.position < self.target {
            Class::Served
        } else {
            Class::Free
        }
    }

    fn standing(&self) -> Standing {
        let waits = self.is_behind() && !self.pulling;
        Standing {
            unserved: self.is_unserved(),
            behind: self.is_behind(),
            place: waits.then(|| (self.class(), self.turn)),
        }
    }
}

/// What a registration that is behind waits for, in the order in which it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// Its first helping of history.
    Unserved,
    /// Another helping of history: not while any other is unserved (API-261).
    Served,
    /// What came after its target: free of that.
    Free,
}

/// What of a registration the registry counts and queues.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    unserved: bool,
    behind: bool,
    /// Where it waits to be pulled, if it does.
    place: Option<(Class, u64)>,
}

/// Turns of one partition's registrations.
type Queue = BTreeMap<(Class, u64), Key>;

/// All registrations. Whatever changes one goes through [`Registry::change`], so that the counts and queues are right.
#[derive(Debug, Default)]
pub(super) struct Registry {
    topics: BTreeMap<Key, Registration>,
    /// The registrations that are behind and not being pulled, by partition.
    queues: BTreeMap<u32, Queue>,
    last_turn: u64,
    unserved: usize,
    behind: usize,
    /// Targets of removed registrations.
    remembered: BTreeMap<Key, u64>,
}

impl Registry {
    pub(super) fn len(&self) -> usize {
        self.topics.len()
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Registration> {
        self.topics.get(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Registration)> {
        self.topics.iter()
    }

    /// Whether any registration lacks what is known of its topic.
    pub(super) fn is_behind(&self) -> bool {
        self.behind > 0
    }

    /// Whether some registration has history and got none of it yet.
    pub(super) fn has_unserved(&self) -> bool {
        self.unserved > 0
    }

    pub(super) fn insert(&mut self, key: Key, registration: Registration) {
        self.remove(&key);
        self.topics.insert(key, registration);
        self.settle(&key, Standing::default());
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Registration> {
        // What is not applied is in no count and in no queue.
        self.change(key, |registration| registration.applied = false);
        let removed = self.topics.remove(key)?;
        if self.remembered.len() >= MAX_REMEMBERED {
            self.remembered.pop_first();
        }
        self.remembered.insert(*key, removed.target);
        Some(removed)
    }

    /// Puts a target in force, and all that goes with Applied (rule 12).
    pub(super) fn apply(&mut self, key: &Key) -> Result<(), Fault> {
        if let Some(earlier) = self.remembered.remove(key) {
            let target = self.get(key).map_or(0, |registration| registration.target);
            Fault::assert(target >= earlier, "a topic's targets never fall")?;
        }
        self.change(key, |registration| {
            registration.applied = true;
            registration.known = registration.known.max(registration.target);
        });
        Ok(())
    }

    /// Changes a registration, if it is there.
    pub(super) fn change(&mut self, key: &Key, change: impl FnOnce(&mut Registration)) {
        if let Some(registration) = self.topics.get_mut(key) {
            let before = registration.standing();
            change(registration);
            self.settle(key, before);
        }
    }

    /// The registration was served: if it is still behind, it goes to the end of the round.
    pub(super) fn end_turn(&mut self, key: &Key) {
        self.change(key, |registration| registration.turn = 0);
    }

    /// Brings counts and queues up to date with a registration, which stood like `before`.
    fn settle(&mut self, key: &Key, before: Standing) {
        let Some(registration) = self.topics.get_mut(key) else { return };
        if !registration.is_behind() {
            registration.turn = 0;
        } else if registration.turn == 0 {
            self.last_turn += 1;
            registration.turn = self.last_turn;
        }
        let now = registration.standing();
        self.unserved = self.unserved + usize::from(now.unserved) - usize::from(before.unserved);
        self.behind = self.behind + usize::from(now.behind) - usize::from(before.behind);
        if before.place == now.place {
            return;
        }
        let queue = self.queues.entry(registration.partition).or_default();
        if let Some(place) = before.place {
            queue.remove(&place);
        }
        if let Some(place) = now.place {
            queue.insert(place, *key);
        }
        if queue.is_empty() {
            self.queues.remove(&registration.partition);
        }
    }

    /// Whose turn it is: at most `most` topics of one partition that is not among `closed`, in order.
    pub(super) fn next(&self, closed: impl Fn(u32) -> bool, most: usize) -> Option<(u32, Vec<Key>)> {
        let open = self.queues.iter().filter(|(partition, _)| !closed(**partition));
        let firsts = open.filter_map(|(partition, queue)| Some((self.first(queue)?, *partition)));
        let ((_, _), partition) = firsts.min()?;
        let keys = self.in_turn(&self.queues[&partition]).take(most).map(|(_, key)| *key).collect();
        Some((partition, keys))
    }

    fn first(&self, queue: &Queue) -> Option<(bool, u64)> {
        let ((class, turn), _) = self.in_turn(queue).next()?;
        Some((*class != Class::Unserved, *turn))
    }

    /// Unserved registrations first; the others in rounds, without those that must wait for them.
    fn in_turn<'a>(&self, queue: &'a Queue) -> impl Iterator<Item = (&'a (Class, u64), &'a Key)> {
        let class = |class| queue.range((class, 0)..=(class, u64::MAX)).peekable();
        let mut unserved = class(Class::Unserved);
        let mut served = class(Class::Served);
        let mut free = class(Class::Free);
        let wait = self.has_unserved();
        std::iter::from_fn(move || {
            if let Some(first) = unserved.next() {
                return Some(first);
            }
            if wait {
                return free.next();
            }
            let turn = |entry: Option<&(&(Class, u64), &Key)>| entry.map_or(u64::MAX, |((_, turn), _)| *turn);
            if turn(served.peek()) < turn(free.peek()) { served.next() } else { free.next() }
        })
    }
}
