//! The closed allocation boundary (API-203): every id at or below it is settled for ever.

use super::Sequencer;
use crate::{Fault, Sql, participant};

/// Log partitions that hold the boundary back: `settle` them, report with [`Sequencer::settled`], and ask again.
pub type Lagging = Vec<u32>;

impl Sequencer {
    /// One below the lowest open reservation or unfinished transaction, or the last id given out when there is neither.
    ///
    /// Stored before it is told, with the marks of the transactions that it relies on, so that it never falls (API-291,
    /// rule 7). While a partition has not said this instance's epoch, an id of the last instance may still land, and
    /// the stored boundary holds (rule 8).
    pub fn boundary(&mut self, sql: &dyn Sql) -> Result<u64, Fault> {
        if self.reservations.unheard(self.stored.log_partitions).is_empty() {
            let lowest =
                self.reservations.lowest_open().into_iter().chain(self.transactions.lowest_unfinished());
            let lowest = lowest.min();
            let computed = lowest.unwrap_or(self.next) - 1;
            Fault::assert(computed >= self.stored.boundary, "the boundary never falls")?;
            Fault::assert(computed < self.next, "the boundary is below the next id")?;
            let clean = lowest.is_none();
            if computed > self.stored.boundary || clean != self.stored.clean {
                self.stored.boundary = computed;
                self.stored.clean = clean;
                self.transactions.store_finished(sql)?;
                self.stored.save(sql)?;
            }
        }
        Ok(self.stored.boundary)
    }

    /// Whom to ask so that the boundary can rise: those not heard in this epoch, and those whose reservations are open.
    /// A partition that is well closes its own with its next request; one that died with a request under way does so
    /// when it is woken.
    pub fn lagging(&self) -> Lagging {
        let mut lagging = self.reservations.unheard(self.stored.log_partitions);
        lagging.extend(self.reservations.holders(self.stored.log_partitions));
        lagging.sort_unstable();
        lagging.dedup();
        lagging
    }

    /// A log partition answered `settle`: from here on it accepts no reply of an epoch before `epoch`.
    pub fn settled(&mut self, partition: u32, epoch: u64) {
        if epoch == self.epoch {
            self.reservations.heard(super::key(participant::log(partition)));
        }
    }
}
