//! The sequencer: the one object that gives out sequence ids (API-286 to API-289).
//!
//! It answers from memory. What must outlive it is stored ahead: ids come out of a block whose end is stored before
//! the first of them leaves, times stay below a stored limit. An instance starts at both, so whatever its predecessor
//! gave out lies behind it. The block end at which an instance started is its *epoch* (rule 8).

mod boundary;
mod clock;
mod decide;
mod reservations;
mod store;
mod transactions;

use bytes::Bytes;
use sealog_proto::MAX_SEQUENCE_ID;
use sealog_proto::internal::{
    JoinReply, JoinRequest, Participant, ReserveReply, ReserveRequest, failure::Kind,
    participant::Kind as Role,
};

use crate::{CommandError, Fault, Nanos, SECOND, Sql};
use clock::Clock;
use reservations::{Reservations, Turn};
use store::Stored;
use transactions::{Transactions, key};

pub use boundary::Lagging;

/// Ids per block. Large, because each new block costs a flush that delays every reply behind it; small, because a
/// restart throws the rest of a block away. 2^63 ids last for 2^51 restarts.
const BLOCK: u64 = 4_096;
/// When participants of an unfinished transaction are nudged (rule 17). Its worker does so at once; this is for the
/// worker that died.
const NUDGE_AFTER: Nanos = 2 * SECOND;

/// What the shell does for the machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Set the object's alarm, in the same event as the writes before it; it calls [`Sequencer::alarm`].
    Alarm {
        /// From now, in nanoseconds.
        after: Nanos,
    },
    /// Send `apply` to a participant. Its answer is of no interest: what it applied, it tells with its next `reserve`.
    Nudge {
        /// Whom.
        participant: Participant,
        /// Of which transaction.
        txid: Bytes,
    },
}

/// The state machine. See the module's page.
#[derive(Debug)]
pub struct Sequencer {
    stored: Stored,
    clock: Clock,
    /// Block end at the start of this instance.
    epoch: u64,
    /// The next id to give out.
    next: u64,
    reservations: Reservations,
    transactions: Transactions,
}

impl Sequencer {
    /// Starts an instance on what is stored. The actions are its first.
    pub fn load(sql: &dyn Sql) -> Result<(Self, Vec<Action>), Fault> {
        let stored = Stored::load(sql)?;
        let this = Self {
            clock: Clock::start(stored.clock_limit),
            epoch: stored.block_end,
            next: stored.block_end + 1,
            reservations: Reservations::starting(stored.clean),
            transactions: Transactions::load(sql)?,
            stored,
        };
        let actions = this.rearm();
        Ok((this, actions))
    }

    /// The alarm rang: participants of unfinished transactions are nudged (rule 17).
    pub fn alarm(&mut self) -> Vec<Action> {
        let mut actions = self.rearm();
        actions.extend(
            self.transactions
                .unconfirmed()
                .into_iter()
                .map(|(participant, txid)| Action::Nudge { participant, txid: txid.to_bytes() }),
        );
        actions
    }

    /// The alarm stays armed while a transaction is unfinished.
    fn rearm(&self) -> Vec<Action> {
        let unfinished = self.transactions.lowest_unfinished().is_some();
        unfinished.then_some(Action::Alarm { after: NUDGE_AFTER }).into_iter().collect()
    }

    /// Command `join`: fixes how many log partitions and Directories there are the first time it hears, tells it ever
    /// after.
    ///
    /// Idempotent. Writes once in the life of a deployment, and once more in one that is older than its Directories. The
    /// worker calls it before its first other call and refuses to work when the answer is not its own setting: topics
    /// and identifiers would be looked for where they are not. A request without `log_partitions` only asks; what nobody
    /// has fixed yet is 0 in the answer.
    pub fn join(&mut self, sql: &dyn Sql, request: &JoinRequest) -> Result<JoinReply, CommandError> {
        let Stored { log_partitions, directory_partitions, .. } = &mut self.stored;
        let before = (*log_partitions, *directory_partitions);
        if request.log_partitions == 0 {
            return Ok(JoinReply { log_partitions: before.0, directory_partitions: before.1 });
        }
        if *log_partitions == 0 {
            *log_partitions = request.log_partitions;
        }
        if *directory_partitions == 0 {
            // A worker older than the Directories names no number.
            *directory_partitions = request.directory_partitions;
        }
        let reply =
            JoinReply { log_partitions: *log_partitions, directory_partitions: *directory_partitions };
        if before != (reply.log_partitions, reply.directory_partitions) {
            self.stored.save(sql)?;
        }
        Ok(reply)
    }

    /// Command `reserve` (rules 1 to 5): ids, a time, and the decisions that the participant has not confirmed.
    ///
    /// Repeating it is safe and gives fresh ids: never old ids with a new list (trap 3). Writes only when the block or
    /// the time limit is used up. The participant retries, under a new number.
    pub fn reserve(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        request: &ReserveRequest,
    ) -> Result<ReserveReply, CommandError> {
        let participant = self.check(request.participant)?;
        // A partition that knows a later epoch, or ids that were never given out, has seen this instance's successor.
        Fault::assert(request.epoch_seen <= self.epoch, "no participant has seen a later epoch")?;
        Fault::assert(request.applied <= self.next, "no participant has applied ids not given out")?;

        let participant_key = key(participant);
        if self.reservations.turn(participant_key, request) == Turn::Superseded {
            return Ok(ReserveReply { superseded: true, ..Default::default() });
        }
        if request.epoch_seen == self.epoch {
            self.reservations.heard(participant_key);
        }
        self.transactions.confirm(participant_key, request.applied);
        let list = self.transactions.list(participant_key);
        // A cut list comes without ids, or the rest of it would be applied behind them (rule 5, trap 13).
        let count = if list.cut_at.is_some() { 0 } else { request.count };
        let first_id = list.cut_at.unwrap_or(self.next);
        if count > 0 {
            self.allocate(u64::from(count))?;
            self.reservations.open(participant_key, first_id);
        }
        let server_ns = self.clock.read(now);
        self.keep_ahead(sql)?;
        Ok(ReserveReply {
            superseded: false,
            incarnation: request.incarnation,
            number: request.number,
            epoch: self.epoch,
            more: list.cut_at.is_some(),
            decided: list.decided,
            first_id,
            count,
            server_ns,
        })
    }

    /// This instance's epoch: what participants are asked to say (rule 8).
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether such a participant exists.
    fn check(&self, participant: Option<Participant>) -> Result<Participant, CommandError> {
        let Some(participant) = participant else {
            return Err(CommandError::refused(Kind::BadCommand, "the request names no participant"));
        };
        let (setting, number) = match participant.kind() {
            Role::Log => ("LOG_PARTITIONS", self.stored.log_partitions),
            // Until a worker says how many there are, any may.
            Role::Directory if self.stored.directory_partitions == 0 => return Ok(participant),
            Role::Directory => ("DIRECTORY_PARTITIONS", self.stored.directory_partitions),
        };
        if participant.index >= number {
            let message = format!("partition {} of {setting} = {number} does not exist", participant.index);
            return Err(CommandError::refused(Kind::Configuration, message));
        }
        Ok(participant)
    }

    /// Takes the next `count` ids.
    fn allocate(&mut self, count: u64) -> Result<u64, Fault> {
        let first_id = self.next;
        let end = first_id.checked_add(count).filter(|end| *end <= MAX_SEQUENCE_ID);
        self.next = end.ok_or(Fault::Invariant("there are ids left"))?;
        Ok(first_id)
    }

    /// Stores a new block end and a new time limit when what was given out passed the old ones (rules 7 and 13).
    /// Both together: a write for one renews the other for free.
    fn keep_ahead(&mut self, sql: &dyn Sql) -> Result<(), Fault> {
        let given_out = self.next - 1;
        let block_used = given_out > self.stored.block_end;
        // A stored `clean` says that nothing above the boundary was given out (rule 19).
        let gave_out = self.next > self.epoch + 1;
        let unclean = self.stored.clean && gave_out && given_out > self.stored.boundary;
        if !block_used && !unclean && !self.clock.is_past(self.stored.clock_limit) {
            return Ok(());
        }
        self.stored.clean &= !unclean;
        if block_used {
            self.stored.block_end = given_out.max(self.stored.block_end + BLOCK);
        }
        self.stored.clock_limit = self.clock.next_limit();
        self.transactions.prune(sql, self.clock.last())?;
        self.stored.save(sql)?;
        Fault::assert(self.next <= self.stored.block_end + 1, "ids stay inside the stored block")
    }
}
