//! A log partition, as far as one watching session is concerned (rules 4 to 10).

mod debts;
mod watches;

use crate::effects::Effects;
use crate::message::{Item, Message, Page, Pull, Push, PushName};
use crate::mutation::Mutation;
use crate::names::{Generation, PartitionId, PerTopic, Rows, SequenceId, Topic};
use crate::scenario::Scenario;

pub use debts::Debts;

/// One partition: what is durable, and the running instance, if one runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    /// Which.
    id: PartitionId,
    /// Its tables.
    pub stored: Stored,
    /// `None`: not running. Any event starts it.
    pub memory: Option<Memory>,
}

/// What survives a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stored {
    /// The log.
    pub rows: PerTopic<Rows>,
    /// The session's watches.
    watches: PerTopic<Option<Generation>>,
    /// The highest Control number of the session (rule 4).
    last_number: u8,
    /// Everything up to here has been acknowledged (rule 8).
    pushed_through: SequenceId,
    /// The alarm is armed.
    pub alarm: bool,
    /// Rises with every instance.
    incarnation: u8,
}

/// What a crash takes away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// The watches in force; `None` until they are loaded (rule 8).
    index: Option<PerTopic<Option<Generation>>>,
    /// News that the session has not been sent.
    owed: Debts,
    /// The push that is with the session; at most one (rule 6).
    in_flight: Option<Debts>,
    /// Pushes sent by this instance.
    pushes: u8,
}

impl Partition {
    /// A running partition with these rows; nobody watches.
    pub fn new(id: PartitionId, rows: PerTopic<Rows>) -> Self {
        let mut stored = Stored { rows, ..Stored::default() };
        stored.pushed_through = stored.newest();
        let mut partition = Self { id, stored, memory: None };
        partition.load(&Scenario::new("the first instance", []));
        partition
    }

    /// Starts an instance, if none runs. It takes a new incarnation before it says anything.
    pub fn start(&mut self, scenario: &Scenario) -> &mut Memory {
        if self.memory.is_none() && !scenario.breaks(Mutation::IncarnationNotStored) {
            self.stored.incarnation += 1;
        }
        self.memory.get_or_insert_default()
    }

    /// Reads the watches, and owes a hint for each watched topic that may have news (rule 8).
    pub fn load(&mut self, scenario: &Scenario) {
        self.start(scenario);
        let Some(memory) = self.memory.as_mut().filter(|memory| memory.index.is_none()) else { return };
        if scenario.breaks(Mutation::WatchesInMemory) {
            self.stored.watches = PerTopic::default();
        }
        for (topic, generation) in self.stored.watches.iter() {
            let head = self.stored.rows[topic].head();
            if head > self.stored.pushed_through && !scenario.breaks(Mutation::NoMark) {
                memory.owed.join(scenario, topic, Item::hint(*generation, head));
            }
        }
        memory.index = Some(self.stored.watches);
    }

    /// Whether the instance runs and has not loaded yet.
    pub fn may_load(&self) -> bool {
        self.memory.is_some_and(|memory| memory.index.is_none())
    }

    /// Memory is lost. The next event starts the next instance.
    pub fn crash(&mut self) {
        self.memory = None;
    }

    /// The alarm fires: it goes on until nothing is owed (rule 7). Then the mark is raised, in the write that arms the
    /// alarm for later.
    pub fn alarm(&mut self, scenario: &Scenario, effects: &mut Effects) {
        self.load(scenario);
        self.stored.alarm = self.owes_anything();
        if !self.stored.alarm {
            self.raise_mark(scenario, effects);
        } else if scenario.breaks(Mutation::MarkWhileOwed) {
            self.stored.pushed_through = self.stored.newest();
        }
    }

    /// Whether the session has still to be told, or to answer.
    pub fn owes_anything(&self) -> bool {
        self.memory.is_some_and(|memory| !memory.owed.is_empty() || memory.in_flight.is_some())
    }

    /// A row commits: one event and one write, with the alarm and the mark (rules 7 and 8).
    pub fn commit(&mut self, scenario: &Scenario, topic: Topic, id: SequenceId, effects: &mut Effects) {
        self.start(scenario);
        let previous = self.stored.rows[topic].head();
        self.stored.rows[topic].extend(Rows::of(id));
        let Some(memory) = &mut self.memory else { return };
        let watch = memory.index.map(|index| index[topic]);
        if let Some(Some(generation)) = watch {
            let item = Item { generation, previous, rows: Rows::of(id), head: id };
            memory.owed.join(scenario, topic, item);
        }
        if watch != Some(None) && !scenario.breaks(Mutation::NoAlarm) {
            self.stored.alarm = true;
        }
        self.raise_mark(scenario, effects);
    }

    /// Whether rows are queued.
    pub fn has_queued_rows(&self) -> bool {
        self.memory.is_some_and(|memory| memory.owed.has_rows())
    }

    /// More is queued than may be kept: hints remain.
    pub fn overflow(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.owed.overflow();
        }
    }

    /// Whether a push may leave: after loading, one at a time.
    pub fn may_push(&self) -> bool {
        self.memory.is_some_and(|memory| {
            memory.index.is_some() && memory.in_flight.is_none() && !memory.owed.is_empty()
        })
    }

    /// Sends what is owed.
    pub fn push(&mut self, effects: &mut Effects) {
        let Some(memory) = &mut self.memory else { return };
        memory.pushes += 1;
        let debts = std::mem::take(&mut memory.owed);
        memory.in_flight = Some(debts);
        let name = PushName { from: self.id, incarnation: self.stored.incarnation, number: memory.pushes };
        effects.send(Message::Push(Push { name, items: debts.items() }));
    }

    /// Whether a push is with the session.
    pub fn is_pushing(&self) -> bool {
        self.memory.is_some_and(|memory| memory.in_flight.is_some())
    }

    /// A push is not answered in time: it is owed again (rule 10: nothing else follows from it).
    pub fn push_times_out(&mut self, scenario: &Scenario) {
        let Some(memory) = &mut self.memory else { return };
        let Some(mut debts) = memory.in_flight.take() else { return };
        if scenario.breaks(Mutation::TimeOutMeansGone) {
            self.forget_session();
        } else if !scenario.breaks(Mutation::PushNotRetried) {
            // What was committed meanwhile follows what was in flight, and grows it.
            debts.join_all(scenario, memory.owed);
            debts.retain(|topic, item| self.stored.watches[topic] == Some(item.generation));
            memory.owed = debts;
        }
    }

    /// Handles one message.
    pub fn handle(&mut self, scenario: &Scenario, message: &Message, effects: &mut Effects) {
        match message {
            Message::Control(control) => self.control(scenario, control, effects),
            Message::StoreWatches(control, reply) => {
                self.load(scenario);
                if self.apply(scenario, control, effects) {
                    effects.send(Message::ControlReply(*reply));
                }
            }
            Message::PushReply(reply) => self.push_reply(scenario, *reply),
            Message::Pull(pull) => {
                self.start(scenario);
                effects.send(Message::Page(self.page(*pull)));
            }
            Message::ControlReply(_) | Message::Push(_) | Message::Page(_) => {}
        }
    }

    /// One page, read in one event: the first row, and how far the topic goes (rule 14).
    fn page(&self, pull: Pull) -> Page {
        let log = self.stored.rows[pull.topic];
        let wanted = log.above(pull.after);
        let rows = wanted.first().map(Rows::of).unwrap_or_default();
        let head = log.head();
        let through = if wanted.len() > 1 { rows.head() } else { head };
        Page { pull, rows, through, head }
    }
}

impl Stored {
    /// The newest id of the partition.
    fn newest(&self) -> SequenceId {
        self.rows.0.into_iter().map(Rows::head).max().unwrap_or(0)
    }
}
