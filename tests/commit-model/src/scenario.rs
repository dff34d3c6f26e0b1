//! What one run of the model is about: the publishes, what the adversary may do, and which rule is broken, if any.

use crate::mutation::Mutation;
use crate::names::{Participant, Participants, Txid, WorkerId};
use crate::publish::{Claim, Envelope, Publish};

/// How often the adversary may act in one run. Losing and reordering messages costs nothing: a message that never
/// arrives is lost, and any may arrive next. A worker dies by never taking another step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// The sequencer loses its memory; its successor starts on what is durable. Replies of the old instance may still
    /// be under way: a superseded instance equals this one, because it can neither start an event nor touch storage.
    pub sequencer_crashes: u8,
    /// A participant loses its memory, its queue included.
    pub participant_crashes: u8,
    /// A message is delivered and stays under way.
    pub repeats: u8,
    /// A partition gives up its request and makes another (rule 1).
    pub time_outs: u8,
    /// A participant asks for the outcome of a staged transaction, however young: covers every skew of the clocks.
    pub resolves: u8,
    /// The sequencer asks a participant for its epoch and its progress (rules 8 and 17).
    pub settles: u8,
    /// A worker gives up before it has decided.
    pub worker_time_outs: u8,
}

/// How durability is modelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Gate {
    /// An event, its write and its messages are one step: by the gate, a crash in between undoes all three.
    #[default]
    Atomic,
    /// Write, flush and send are separate steps.
    Explicit,
}

/// One instance of the model.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What meets what.
    pub name: &'static str,
    /// One worker runs each.
    pub publishes: Vec<Publish>,
    /// Who exists.
    pub participants: Participants,
    /// What the adversary may do.
    pub faults: Faults,
    /// How durability is modelled.
    pub gate: Gate,
    /// Attempts of one publish after conflicts, the first included.
    pub attempts: u8,
    /// Ids per block.
    pub block: u8,
    /// Transactions per list (rule 5).
    pub list_limit: usize,
    /// The sequencer keeps the `clean` mark (rule 19).
    pub clean_mark: bool,
    /// Progress is tested from every state, not only safety.
    pub progress: bool,
    /// The rule that is broken.
    pub mutation: Option<Mutation>,
}

impl Scenario {
    /// A scenario without faults. Participants are those of its publishes.
    pub fn new(name: &'static str, publishes: impl IntoIterator<Item = Publish>) -> Self {
        let publishes: Vec<_> = publishes.into_iter().collect();
        let takes_part =
            |participant| publishes.iter().any(|publish| publish.participants().contains(participant));
        Self {
            name,
            participants: Participants::of(|participant| participant.is_log() || takes_part(participant)),
            publishes,
            faults: Faults::default(),
            gate: Gate::Atomic,
            attempts: 1,
            block: 4,
            list_limit: usize::MAX,
            clean_mark: false,
            progress: false,
            mutation: None,
        }
    }

    /// The same; the sequencer may crash so often.
    #[must_use]
    pub fn sequencer_crashes(mut self, times: u8) -> Self {
        self.faults.sequencer_crashes = times;
        self
    }

    /// The same; participants may crash so often.
    #[must_use]
    pub fn participant_crashes(mut self, times: u8) -> Self {
        self.faults.participant_crashes = times;
        self
    }

    /// The same; so many messages may be repeated.
    #[must_use]
    pub fn repeats(mut self, times: u8) -> Self {
        self.faults.repeats = times;
        self
    }

    /// The same; so many requests may time out.
    #[must_use]
    pub fn time_outs(mut self, times: u8) -> Self {
        self.faults.time_outs = times;
        self
    }

    /// The same; so often may a participant ask for an outcome.
    #[must_use]
    pub fn resolves(mut self, times: u8) -> Self {
        self.faults.resolves = times;
        self
    }

    /// The same; so often may the sequencer settle.
    #[must_use]
    pub fn settles(mut self, times: u8) -> Self {
        self.faults.settles = times;
        self
    }

    /// The same; so many workers may give up.
    #[must_use]
    pub fn worker_time_outs(mut self, times: u8) -> Self {
        self.faults.worker_time_outs = times;
        self
    }

    /// The same, with progress tested from every state.
    #[must_use]
    pub fn with_progress(mut self) -> Self {
        self.progress = true;
        self
    }

    /// The same with write, flush and send as separate steps.
    #[must_use]
    pub fn explicit_gate(mut self) -> Self {
        self.gate = Gate::Explicit;
        self
    }

    /// The same with so many attempts for each publish.
    #[must_use]
    pub fn attempts(mut self, attempts: u8) -> Self {
        self.attempts = attempts;
        self
    }

    /// The same with lists cut to so many transactions.
    #[must_use]
    pub fn list_limit(mut self, limit: usize) -> Self {
        self.list_limit = limit;
        self
    }

    /// The same with the `clean` mark kept.
    #[must_use]
    pub fn clean_mark(mut self) -> Self {
        self.clean_mark = true;
        self
    }

    /// The same with a rule broken.
    #[must_use]
    pub fn mutated(mut self, mutation: Mutation) -> Self {
        self.mutation = Some(mutation);
        self
    }

    /// Whether this run breaks the protocol in this way.
    pub fn breaks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// What a worker publishes.
    pub fn publish(&self, worker: WorkerId) -> &Publish {
        &self.publishes[worker.index()]
    }

    /// The envelope that a transaction has at a log partition.
    pub fn envelope(&self, txid: Txid, participant: Participant) -> Option<Envelope> {
        self.publish(txid.worker).envelopes[participant]
    }

    /// The claim that a transaction has at the Directory.
    pub fn claim(&self, txid: Txid) -> Option<Claim> {
        self.publish(txid.worker).claim
    }

    /// All workers.
    pub fn workers(&self) -> impl Iterator<Item = WorkerId> + use<> {
        (0..self.publishes.len()).filter_map(|index| u8::try_from(index).ok()).map(WorkerId)
    }
}
