//! The sequencer: the one object that gives out sequence ids (API-286 to API-289).
//!
//! It answers from memory. What must outlive it is stored ahead: ids come out of a block whose end is stored before
//! the first of them leaves, times stay below a stored limit. An instance starts at both, so whatever its predecessor
//! gave out lies behind it. The block end at which an instance started is its *epoch* (rule 8).

mod clock;
mod reservations;
mod store;

use sealog_proto::MAX_SEQUENCE_ID;
use sealog_proto::internal::{JoinReply, JoinRequest, ReserveReply, ReserveRequest, failure::Kind};

use crate::{CommandError, Fault, Nanos, Sql};
use clock::Clock;
use reservations::{Reservations, Turn};
use store::Stored;

/// Ids per block. Large, because each new block costs a flush that delays every reply behind it; small, because a
/// restart throws the rest of a block away. 2^63 ids last for 2^51 restarts.
const BLOCK: u64 = 4_096;

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
}

impl Sequencer {
    /// Starts an instance on what is stored.
    pub fn load(sql: &dyn Sql) -> Result<Self, Fault> {
        let stored = Stored::load(sql)?;
        Ok(Self {
            clock: Clock::start(stored.clock_limit),
            epoch: stored.block_end,
            next: stored.block_end + 1,
            reservations: Reservations::default(),
            stored,
        })
    }

    /// Command `join`: fixes the number of log partitions the first time, tells it ever after.
    ///
    /// Idempotent. Writes once in the life of a deployment. The worker calls it before its first other call and
    /// refuses to work when the answer is not its own setting: topics would be looked for where they are not.
    pub fn join(&mut self, sql: &dyn Sql, request: &JoinRequest) -> Result<JoinReply, CommandError> {
        if self.stored.log_partitions == 0 {
            if request.log_partitions == 0 {
                return Err(CommandError::refused(Kind::Configuration, "LOG_PARTITIONS must be at least 1"));
            }
            self.stored.log_partitions = request.log_partitions;
            self.stored.save(sql)?;
        }
        Ok(JoinReply { log_partitions: self.stored.log_partitions })
    }

    /// Command `reserve` (rules 1 to 4): ids and a time for the publishes that wait in a partition.
    ///
    /// Repeating it is safe and gives fresh ids: never old ids with a new list (trap 3). Writes only when the block or
    /// the time limit is used up. The partition retries, under a new number.
    pub fn reserve(
        &mut self,
        sql: &dyn Sql,
        now: Nanos,
        request: &ReserveRequest,
    ) -> Result<ReserveReply, CommandError> {
        if request.partition >= self.stored.log_partitions {
            return Err(CommandError::refused(
                Kind::Configuration,
                format!(
                    "partition {} of LOG_PARTITIONS = {} does not exist",
                    request.partition, self.stored.log_partitions
                ),
            ));
        }
        // A partition that knows a later epoch, or ids that were never given out, has seen this instance's successor.
        Fault::assert(request.epoch_seen <= self.epoch, "no partition has seen a later epoch")?;
        Fault::assert(request.applied <= self.next, "no partition has applied ids not given out")?;

        if self.reservations.turn(request) == Turn::Superseded {
            return Ok(ReserveReply { superseded: true, ..Default::default() });
        }
        if request.epoch_seen == self.epoch {
            self.reservations.heard(request.partition);
        }
        let count = u64::from(request.count);
        let first_id = self.next;
        let last_id = first_id.checked_add(count).filter(|end| *end <= MAX_SEQUENCE_ID);
        self.next = last_id.ok_or(Fault::Invariant("there are ids left"))?;
        if count > 0 {
            self.reservations.open(request.partition, first_id);
        }
        let server_ns = self.clock.read(now);
        self.keep_ahead(sql)?;
        Ok(ReserveReply {
            superseded: false,
            incarnation: request.incarnation,
            number: request.number,
            epoch: self.epoch,
            decided: Vec::new(),
            more: false,
            first_id,
            count: request.count,
            server_ns,
        })
    }

    /// The closed allocation boundary (API-203): every id at or below it is settled for ever.
    ///
    /// One below the lowest open reservation, or the last id given out when none is open; stored before it is told, so
    /// that it never falls (API-291, rule 7). While a partition has not said this instance's epoch, an id of the last
    /// instance may still land, and the stored boundary holds (rule 8).
    pub fn boundary(&mut self, sql: &dyn Sql) -> Result<u64, Fault> {
        if self.reservations.all_heard(self.stored.log_partitions) {
            let computed = self.reservations.lowest_open().unwrap_or(self.next) - 1;
            Fault::assert(computed >= self.stored.boundary, "the boundary never falls")?;
            Fault::assert(computed < self.next, "the boundary is below the next id")?;
            if computed > self.stored.boundary {
                self.stored.boundary = computed;
                self.stored.save(sql)?;
            }
        }
        Ok(self.stored.boundary)
    }

    /// This instance's epoch: what partitions are asked to say.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Stores a new block end and a new time limit when what was given out passed the old ones (rules 7 and 13).
    /// Both together: a write for one renews the other for free.
    fn keep_ahead(&mut self, sql: &dyn Sql) -> Result<(), Fault> {
        let given_out = self.next - 1;
        let block_used = given_out > self.stored.block_end;
        if !block_used && !self.clock.is_past(self.stored.clock_limit) {
            return Ok(());
        }
        if block_used {
            self.stored.block_end = given_out.max(self.stored.block_end + BLOCK);
        }
        self.stored.clock_limit = self.clock.next_limit();
        self.stored.save(sql)?;
        Fault::assert(self.next <= self.stored.block_end + 1, "ids stay inside the stored block")
    }
}
