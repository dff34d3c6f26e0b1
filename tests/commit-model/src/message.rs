//! What the objects say to each other. The network may lose, repeat and reorder any of it.

use crate::names::{
    Epoch, Participant, Participants, PerParticipant, RequestName, SequenceId, Txid, WorkerId,
};

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    /// Worker to partition: store the one envelope that this publish has (no transaction).
    Publish { worker: WorkerId, to: Participant, expected_head: Option<SequenceId> },
    /// Partition to worker: what became of it.
    PublishReply { worker: WorkerId, from: Participant, verdict: PublishVerdict },

    /// Worker to participant: keep this transaction's part, durable and invisible.
    Stage { txid: Txid, to: Participant, expected_head: Option<SequenceId> },
    /// Participant to worker.
    StageReply { txid: Txid, from: Participant, verdict: StageVerdict },
    /// Worker to participant: this attempt is over. Never sent once `Decide` was (rule 9).
    Withdraw { txid: Txid, to: Participant },
    /// Worker to participant: the transaction is decided. A nudge; the ids come through the channel (rule 16).
    /// `ids` is empty, but for [`crate::Mutation::IdsCarriedByApply`].
    Apply { txid: Txid, to: Participant, ids: Option<SequenceId> },
    /// Participant to worker: applied, and this is the id of the stored row (0 at the Directory).
    Applied { txid: Txid, from: Participant, id: SequenceId },

    /// Worker to sequencer: commit, at those participants (rule 20).
    Decide { txid: Txid, participants: Participants },
    /// Sequencer to worker. `None`: refused, the transaction is aborted.
    DecideReply { txid: Txid, ids: Option<PerParticipant<SequenceId>> },

    /// Partition to sequencer: ids, and news of decided transactions (rule 2).
    Reserve(Reserve),
    /// Sequencer to partition (rule 4).
    Reserved(Reserved),

    /// Participant to sequencer: what became of a transaction staged long ago (rule 12)?
    Resolve { from: Participant, txid: Txid },
    /// Sequencer to participant. Not aborted means decided.
    Resolved { to: Participant, txid: Txid, aborted: bool },

    /// Sequencer to participant: say this epoch's number, and ask for ids once more (rules 8 and 17).
    Settle { to: Participant, epoch: Epoch },
    /// Participant to sequencer: no reply of an older epoch will be accepted here any more.
    Settled { from: Participant, epoch: Epoch },
}

/// A partition's request for ids (rule 2).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reserve {
    /// Who asks.
    pub from: Participant,
    /// Which of its requests this is.
    pub name: RequestName,
    /// The newest epoch the partition has seen.
    pub epoch_seen: Epoch,
    /// Ids wanted.
    pub count: u8,
    /// `first_id` of the last reply whose step is durable. The only confirmation there is.
    pub applied: SequenceId,
}

/// The answer, computed in one event (rule 4).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reserved {
    /// Who asked.
    pub to: Participant,
    /// The request that this answers.
    pub name: RequestName,
    /// Of the instance that answers.
    pub epoch: Epoch,
    /// Decided transactions of this participant that it has not confirmed, by rising position, all below `first_id`.
    pub decided: Vec<Listed>,
    /// The list was cut: ask again at once (rule 5).
    pub more: bool,
    pub first_id: SequenceId,
    /// Ids given: as many as were wanted, or none when the list was cut.
    pub count: u8,
}

/// A decided transaction as one participant is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Listed {
    /// Its lowest id over all participants.
    pub position: SequenceId,
    /// Which.
    pub txid: Txid,
    /// This participant's id; 0 at the Directory.
    pub id: SequenceId,
}

/// How a plain publish ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PublishVerdict {
    /// Stored now or before (API-222), at this id.
    Stored(SequenceId),
    /// ABORTED (API-232).
    HeadMoved,
    /// A staged transaction holds the envelope or the inbox.
    Conflict,
}

/// What a participant says to `Stage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StageVerdict {
    /// Kept.
    Staged,
    /// The envelope is stored already, at this id.
    Duplicate(SequenceId),
    /// ABORTED (API-232).
    HeadMoved,
    /// Another inbox holds the handle: its claim is applied (rule 15).
    Taken,
    /// Another transaction holds the envelope, the inbox or the handle, and its end is open.
    Conflict,
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The one sequencer, whichever instance runs.
    Sequencer,
    /// A participant, whichever instance runs.
    Partition(Participant),
    /// The worker of one publish.
    Worker(WorkerId),
}

impl Message {
    /// Where it goes.
    pub fn destination(&self) -> Destination {
        match self {
            Self::Publish { to, .. }
            | Self::Stage { to, .. }
            | Self::Withdraw { to, .. }
            | Self::Apply { to, .. }
            | Self::Resolved { to, .. }
            | Self::Settle { to, .. } => Destination::Partition(*to),
            Self::Reserved(reply) => Destination::Partition(reply.to),
            Self::PublishReply { worker, .. } => Destination::Worker(*worker),
            Self::StageReply { txid, .. } | Self::Applied { txid, .. } | Self::DecideReply { txid, .. } => {
                Destination::Worker(txid.worker)
            }
            Self::Decide { .. } | Self::Reserve(_) | Self::Resolve { .. } | Self::Settled { .. } => {
                Destination::Sequencer
            }
        }
    }
}
