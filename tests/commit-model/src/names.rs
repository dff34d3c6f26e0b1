//! What things are called in the model. Everything is as small as the model needs: ids are bytes, topics are numbers.

use std::ops::{Index, IndexMut};

/// A sequence id. 0 is none.
pub type SequenceId = u8;
/// The block end at which a sequencer instance started (rule 8).
pub type Epoch = u8;

/// Who can take part in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Participant {
    /// A log partition.
    First,
    /// The other log partition.
    Second,
    /// The Directory: it keeps claims and uses no ids.
    Directory,
}

impl Participant {
    /// All of them, in ascending order.
    pub const ALL: [Self; 3] = [Self::First, Self::Second, Self::Directory];
    /// Those that store envelopes, and so can hold ids.
    pub const LOGS: [Self; 2] = [Self::First, Self::Second];

    /// Whether it stores envelopes.
    pub fn is_log(self) -> bool {
        self != Self::Directory
    }
}

/// One value for each participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PerParticipant<T>(pub [T; 3]);

impl<T> Index<Participant> for PerParticipant<T> {
    type Output = T;
    fn index(&self, participant: Participant) -> &T {
        &self.0[participant as usize]
    }
}

impl<T> IndexMut<Participant> for PerParticipant<T> {
    fn index_mut(&mut self, participant: Participant) -> &mut T {
        &mut self.0[participant as usize]
    }
}

/// A set of participants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Participants(u8);

impl Participants {
    /// Everybody.
    pub const ALL: Self = Self(0b111);

    /// The set of those for which `member` holds.
    pub fn of(member: impl Fn(Participant) -> bool) -> Self {
        let mut set = Self::default();
        for participant in Participant::ALL {
            if member(participant) {
                set.insert(participant);
            }
        }
        set
    }

    /// Adds one.
    pub fn insert(&mut self, participant: Participant) {
        self.0 |= 1 << participant as u8;
    }

    /// Whether it holds `participant`.
    pub fn contains(self, participant: Participant) -> bool {
        self.0 & 1 << participant as u8 != 0
    }

    /// Whether it holds all of `other`.
    pub fn contains_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// How many.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its members, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Participant> {
        Participant::ALL.into_iter().filter(move |participant| self.contains(*participant))
    }
}

/// A worker runs one publish of the scenario: the one at its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub u8);

impl WorkerId {
    /// Its place in the scenario's publishes.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A transaction id serves one attempt of one publish (rule 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Txid {
    /// Whose.
    pub worker: WorkerId,
    /// 0 for the first.
    pub attempt: u8,
}

/// The name of a reserve request. Instances have an order, and requests have one within their instance (rule 1); the
/// order of the fields is that order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestName {
    /// Stored before the instance's first message, one higher than its predecessor's.
    pub incarnation: u8,
    /// Rises with every request, retries included.
    pub number: u8,
}
