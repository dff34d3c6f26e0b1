//! A worker: it runs one publish, keeps nothing, and may die between any two steps.

use crate::message::{Message, PublishVerdict, StageVerdict};
use crate::mutation::Mutation;
use crate::names::{Participant, Participants, PerParticipant, SequenceId, Txid, WorkerId};
use crate::scenario::Scenario;

/// How far a publish is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The request has not arrived.
    NotArrived,
    /// A plain publish is with its partition.
    Publishing,
    /// What the participants have said to `Stage`.
    Staging(PerParticipant<Option<StageVerdict>>),
    /// `Decide` was sent. There is no way back from here: only the sequencer's word counts (rule 9).
    /// `ids` are those of duplicates.
    Deciding { participants: Participants, ids: PerParticipant<SequenceId> },
    /// Decided; the participants in `missing` have not said that they have applied.
    Applying { missing: Participants, ids: PerParticipant<SequenceId> },
    /// The client has its answer.
    Answered(Answer),
    /// It takes no further step.
    Dead,
}

/// What the client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Success, with the id of each envelope.
    Stored(PerParticipant<SequenceId>),
    /// ABORTED (API-232).
    Aborted,
    /// `HANDLE_TAKEN` (API-296).
    Taken,
    /// UNAVAILABLE: no promise either way.
    Unavailable,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Worker {
    /// Whose publish it runs.
    pub id: WorkerId,
    /// How far it is.
    pub phase: Phase,
    attempt: u8,
    /// The heads read when the publish arrived (API-232).
    pub expected_heads: PerParticipant<Option<SequenceId>>,
    /// The highest id visible anywhere when the publish arrived (API-289).
    pub visible_at_arrival: SequenceId,
}

impl Worker {
    /// A worker whose publish has not arrived.
    pub fn new(id: WorkerId) -> Self {
        Self {
            id,
            phase: Phase::NotArrived,
            attempt: 0,
            expected_heads: PerParticipant::default(),
            visible_at_arrival: 0,
        }
    }

    /// Whether it will take another step.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Answered(_) | Phase::Dead)
    }

    /// The transaction of the present attempt (rule 9).
    pub fn txid(&self, scenario: &Scenario) -> Txid {
        let attempt = if scenario.breaks(Mutation::TxidUsedAgain) { 0 } else { self.attempt };
        Txid { worker: self.id, attempt }
    }

    /// Sends an attempt off. The next attempt does not wait for the withdrawals of the last one: it may conflict with
    /// itself, which costs time but must not cost safety.
    pub fn start_attempt(&mut self, scenario: &Scenario, out: &mut Vec<Message>) {
        let publish = scenario.publish(self.id);
        if let Some(to) = publish.only_partition() {
            out.push(Message::Publish { worker: self.id, to, expected_head: self.expected_heads[to] });
            self.phase = Phase::Publishing;
            return;
        }
        let txid = self.txid(scenario);
        for to in publish.participants().iter() {
            out.push(Message::Stage { txid, to, expected_head: self.expected_heads[to] });
        }
        self.phase = Phase::Staging(PerParticipant::default());
    }

    /// Whether it may give up without asking the sequencer (rule 9, trap 12).
    pub fn may_withdraw(&self, scenario: &Scenario) -> bool {
        match self.phase {
            Phase::Staging(_) => true,
            Phase::Deciding { .. } => scenario.breaks(Mutation::WithdrawAfterDecide),
            _ => false,
        }
    }

    /// Gives up.
    pub fn time_out(&mut self, scenario: &Scenario, out: &mut Vec<Message>) {
        self.end(scenario, Answer::Unavailable, out);
    }

    /// Says again what it waits for. Every command is safe to repeat.
    pub fn retry(&self, scenario: &Scenario, out: &mut Vec<Message>) {
        let txid = self.txid(scenario);
        match &self.phase {
            Phase::Deciding { participants, .. } => {
                out.push(Message::Decide { txid, participants: *participants });
            }
            Phase::Applying { missing, .. } => {
                out.extend(missing.iter().map(|to| Message::Apply { txid, to, ids: None }));
            }
            _ => {}
        }
    }

    /// Handles one message.
    pub fn handle(&mut self, scenario: &Scenario, message: &Message, out: &mut Vec<Message>) {
        let current = self.txid(scenario);
        match message {
            Message::PublishReply { from, verdict, .. } if self.phase == Phase::Publishing => {
                self.published(scenario, *from, *verdict, out);
            }
            Message::StageReply { txid, from, verdict } if *txid == current => {
                if let Phase::Staging(verdicts) = &mut self.phase {
                    verdicts[*from].get_or_insert(*verdict);
                    self.judge(scenario, out);
                }
            }
            Message::DecideReply { txid, ids } if *txid == current => self.decided(scenario, *ids, out),
            Message::Applied { txid, from, id } if *txid == current => self.applied(*from, *id),
            _ => {}
        }
    }

    fn published(
        &mut self,
        scenario: &Scenario,
        from: Participant,
        verdict: PublishVerdict,
        out: &mut Vec<Message>,
    ) {
        match verdict {
            PublishVerdict::Stored(id) => {
                let mut ids = PerParticipant::default();
                ids[from] = id;
                self.phase = Phase::Answered(Answer::Stored(ids));
            }
            PublishVerdict::HeadMoved => self.phase = Phase::Answered(Answer::Aborted),
            PublishVerdict::Conflict => self.conflict(scenario, out),
        }
    }

    /// Judges when all have spoken, in the order of rule 15.
    fn judge(&mut self, scenario: &Scenario, out: &mut Vec<Message>) {
        let Phase::Staging(verdicts) = &self.phase else { return };
        let participants = scenario.publish(self.id).participants();
        if participants.iter().any(|participant| verdicts[participant].is_none()) {
            return;
        }
        let said = |verdict| participants.iter().any(|participant| verdicts[participant] == Some(verdict));
        let mut ids = PerParticipant::default();
        for participant in participants.iter() {
            if let Some(StageVerdict::Duplicate(id)) = verdicts[participant] {
                ids[participant] = id;
            }
        }
        let staged = Participants::of(|participant| verdicts[participant] == Some(StageVerdict::Staged));
        // All envelopes stored: success, whatever the Directory says.
        if participants.iter().filter(|participant| participant.is_log()).all(|log| ids[log] > 0) {
            self.end(scenario, Answer::Stored(ids), out);
        } else if said(StageVerdict::HeadMoved) {
            self.end(scenario, Answer::Aborted, out);
        } else if said(StageVerdict::Taken) {
            self.end(scenario, Answer::Taken, out);
        } else if said(StageVerdict::Conflict) {
            self.conflict(scenario, out);
        } else {
            out.push(Message::Decide { txid: self.txid(scenario), participants: staged });
            self.phase = Phase::Deciding { participants: staged, ids };
        }
    }

    fn conflict(&mut self, scenario: &Scenario, out: &mut Vec<Message>) {
        if self.attempt + 1 < scenario.attempts {
            self.withdraw(scenario, out);
            self.attempt += 1;
            self.start_attempt(scenario, out);
        } else {
            self.end(scenario, Answer::Unavailable, out);
        }
    }

    fn decided(
        &mut self,
        scenario: &Scenario,
        decided: Option<PerParticipant<SequenceId>>,
        out: &mut Vec<Message>,
    ) {
        let Phase::Deciding { participants, ids } = self.phase.clone() else { return };
        let Some(decided) = decided else {
            self.end(scenario, Answer::Unavailable, out);
            return;
        };
        let txid = self.txid(scenario);
        for to in participants.iter() {
            let carried = scenario.breaks(Mutation::IdsCarriedByApply).then_some(decided[to]);
            out.push(Message::Apply { txid, to, ids: carried });
        }
        self.phase = Phase::Applying { missing: participants, ids };
        if scenario.breaks(Mutation::AnsweredBeforeApplied) {
            let mut ids = ids;
            for participant in participants.iter() {
                ids[participant] = decided[participant];
            }
            self.phase = Phase::Answered(Answer::Stored(ids));
        }
    }

    /// Success when all have applied, with the ids of the stored rows, never those of the reply to `decide` (rule 14).
    fn applied(&mut self, from: Participant, id: SequenceId) {
        let Phase::Applying { missing, ids } = &mut self.phase else { return };
        ids[from] = id;
        *missing = Participants::of(|participant| participant != from && missing.contains(participant));
        if missing.is_empty() {
            self.phase = Phase::Answered(Answer::Stored(*ids));
        }
    }

    fn end(&mut self, scenario: &Scenario, answer: Answer, out: &mut Vec<Message>) {
        self.withdraw(scenario, out);
        self.phase = Phase::Answered(answer);
    }

    /// Tells every participant that the attempt is over, those too that may not have heard of it (rule 10).
    fn withdraw(&self, scenario: &Scenario, out: &mut Vec<Message>) {
        let publish = scenario.publish(self.id);
        if publish.only_partition().is_none() {
            let txid = self.txid(scenario);
            out.extend(publish.participants().iter().map(|to| Message::Withdraw { txid, to }));
        }
    }
}
