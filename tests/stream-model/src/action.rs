//! What may happen next. `stateright` tries all of it in every state.

use stateright::{Model, Property};

use crate::check;
use crate::message::Message;
use crate::names::{PartitionId, Topic};
use crate::scenario::Scenario;
use crate::world::World;

/// One event, or one act of the adversary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The client sends its next Update, which arrives.
    Update,
    /// A row becomes visible.
    Commit(Topic),
    /// A message arrives.
    Deliver(Message),
    /// A message arrives, and will once more.
    Repeat(Message),
    /// A partition's memory is lost.
    Crash(PartitionId),
    /// A partition is started, by somebody else's request.
    Start(PartitionId),
    /// A started partition loads its watches.
    Load(PartitionId),
    /// A partition's alarm fires.
    Alarm(PartitionId),
    /// What a partition owes becomes hints.
    Overflow(PartitionId),
    /// A partition pushes what it owes.
    Push(PartitionId),
    /// A partition gives up a push.
    PushTimesOut(PartitionId),
    /// The session asks for a page. At any moment: this covers every limit of output.
    Pull(Topic),
    /// The session gives up a pull.
    PullTimesOut(Topic),
    /// The session gives up a Control, and sends it again.
    ControlTimesOut(PartitionId),
    /// The session hibernates.
    Hibernate,
    /// The session's memory is lost while it is busy.
    LoseMemory,
    /// The session's alarm fires.
    Wake,
}

impl World {
    /// Everything that may happen.
    pub fn actions(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        for message in self.network.messages() {
            actions.push(Action::Deliver(*message));
            if self.faults.repeats > 0 {
                actions.push(Action::Repeat(*message));
            }
        }
        if usize::from(self.client.sent) < scenario.updates.len() && !self.session.over {
            actions.push(Action::Update);
        }
        if self.newest < scenario.last_id() {
            actions.extend(scenario.committed.iter().copied().map(Action::Commit));
        }
        for partition in PartitionId::ALL.into_iter().filter(|partition| scenario.uses(*partition)) {
            self.partition_actions(partition, actions);
        }
        self.session_actions(scenario, actions);
    }

    fn partition_actions(&self, at: PartitionId, actions: &mut Vec<Action>) {
        let partition = &self.partitions[at];
        let running = partition.memory.is_some();
        let time_outs = self.faults.time_outs > 0;
        let possible = [
            (running && self.faults.crashes > 0, Action::Crash(at)),
            (!running, Action::Start(at)),
            (partition.may_load(), Action::Load(at)),
            (partition.stored.alarm, Action::Alarm(at)),
            (self.faults.overflows > 0 && partition.has_queued_rows(), Action::Overflow(at)),
            (partition.may_push(), Action::Push(at)),
            (time_outs && partition.is_pushing(), Action::PushTimesOut(at)),
            (time_outs && self.session.awaited_number(at).is_some(), Action::ControlTimesOut(at)),
        ];
        actions.extend(possible.into_iter().filter_map(|(possible, action)| possible.then_some(action)));
    }

    fn session_actions(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        let session = &self.session;
        for topic in Topic::ALL {
            if session.may_pull(scenario, topic) {
                actions.push(Action::Pull(topic));
            }
            if self.faults.time_outs > 0 && session.is_pulling(topic) {
                actions.push(Action::PullTimesOut(topic));
            }
        }
        if self.faults.hibernations > 0 && session.may_hibernate() {
            actions.push(Action::Hibernate);
        }
        if self.faults.losses > 0 && session.is_busy() {
            actions.push(Action::LoseMemory);
        }
        if session.memory.is_none() && !session.over {
            actions.push(Action::Wake);
        }
    }
}

impl Model for Scenario {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::start(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        // What comes after a violation is of no interest.
        if world.broken.is_none() {
            world.actions(self, actions);
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut next = last.clone();
        next.perform(self, &action);
        (next != *last).then_some(next)
    }

    /// One property, so that the search ends at the first state, and so with a shortest trace.
    /// [`check::violation`] says what broke in it.
    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("nothing breaks, and everything arrives", |scenario, world| {
            check::violation(scenario, world).is_none()
        })]
    }
}
