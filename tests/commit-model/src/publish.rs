//! What is published.

use crate::names::{Participant, Participants, PerParticipant, SequenceId};

/// An envelope, as far as ordering is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// A topic lives in one partition.
    pub topic: u8,
    /// Equal on one topic means duplicate (API-222).
    pub hash: u8,
    /// An identity update: stored only on the head that its worker has read (API-232). Its topic is its inbox.
    pub identity: bool,
}

impl Envelope {
    /// What a worker that has read `head` expects it to be when the envelope is stored.
    pub fn expected_head(self, head: SequenceId) -> Option<SequenceId> {
        self.identity.then_some(head)
    }
}

/// A claim of a handle, made with an identity update (API-296).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// What is claimed.
    pub handle: u8,
    /// For whom.
    pub inbox: u8,
}

/// One publish: at most one envelope in each log partition, and perhaps a claim at the Directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Publish {
    /// None at the Directory.
    pub envelopes: PerParticipant<Option<Envelope>>,
    /// Kept by the Directory.
    pub claim: Option<Claim>,
}

impl Publish {
    /// A message on the one topic of `partition` that messages use.
    #[must_use]
    pub fn message(self, partition: Participant, hash: u8) -> Self {
        self.envelope(partition, Envelope { topic: partition as u8, hash, identity: false })
    }

    /// An update of the one inbox of `partition`.
    #[must_use]
    pub fn identity(self, partition: Participant, hash: u8) -> Self {
        self.envelope(partition, Envelope { topic: 10 + partition as u8, hash, identity: true })
    }

    /// A claim of `handle` for the inbox of `partition`.
    #[must_use]
    pub fn claim(mut self, partition: Participant, handle: u8) -> Self {
        self.claim = Some(Claim { handle, inbox: 10 + partition as u8 });
        self
    }

    fn envelope(mut self, partition: Participant, envelope: Envelope) -> Self {
        self.envelopes[partition] = Some(envelope);
        self
    }

    /// Everybody that keeps a part of it.
    pub fn participants(&self) -> Participants {
        Participants::of(|participant| {
            self.envelopes[participant].is_some() || !participant.is_log() && self.claim.is_some()
        })
    }

    /// The partition of a publish that needs no transaction.
    pub fn only_partition(&self) -> Option<Participant> {
        let participants = self.participants();
        if participants.len() == 1 {
            participants.iter().find(|participant| participant.is_log())
        } else {
            None
        }
    }
}
