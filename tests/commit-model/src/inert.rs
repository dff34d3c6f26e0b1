//! Messages that can change nothing any more.

use crate::message::Message;
use crate::mutation::Mutation;
use crate::scenario::Scenario;
use crate::worker::Phase;
use crate::world::World;

impl World {
    /// Loses the messages whose arrival can change nothing any more, now or later. Many states become one by it.
    pub fn forget_inert(&mut self, scenario: &Scenario) {
        let mut network = std::mem::take(&mut self.network);
        network.retain(|message| !self.is_inert(scenario, message));
        self.network = network;
    }

    fn is_inert(&self, scenario: &Scenario, message: &Message) -> bool {
        let mutation = scenario.mutation;
        match message {
            // The names of requests rise, so a reply that is not awaited now never will be (rule 3).
            Message::Reserved(reply) => {
                let matched_loosely = matches!(
                    mutation,
                    Some(Mutation::ReplyOfDeadInstanceAccepted | Mutation::ReplyToEarlierAttemptAccepted)
                );
                !matched_loosely && !self.partitions[reply.to].may_accept(reply.name)
            }
            // Epochs rise, and a new instance must hear everybody anew (rule 8).
            Message::Settled { epoch, .. } => *epoch != self.sequencer.epoch(),
            Message::Settle { to, epoch } => *epoch < self.partitions[*to].store.durable.epoch,
            // A finished transaction stays finished (rule 10).
            Message::Stage { txid, to, .. }
            | Message::Withdraw { txid, to }
            | Message::Resolved { txid, to, .. } => {
                let forgets =
                    matches!(mutation, Some(Mutation::StageRepeatedAfterEnd | Mutation::TxidUsedAgain));
                let store = &self.partitions[*to].store;
                !forgets && store.durable.is_finished(*txid) && store.memory.is_finished(*txid)
            }
            // A worker goes forward only.
            Message::PublishReply { worker, .. } => self.workers[worker.index()].is_over(),
            Message::StageReply { txid, from, .. } => {
                let worker = &self.workers[txid.worker.index()];
                let awaited = matches!(&worker.phase, Phase::Staging(verdicts) if verdicts[*from].is_none());
                mutation != Some(Mutation::TxidUsedAgain) && (*txid != worker.txid(scenario) || !awaited)
            }
            Message::DecideReply { txid, .. } => {
                !matches!(self.workers[txid.worker.index()].phase, Phase::Deciding { .. })
            }
            Message::Applied { txid, .. } => {
                !matches!(self.workers[txid.worker.index()].phase, Phase::Applying { .. })
            }
            _ => false,
        }
    }
}
