//! What every participant keeps, whatever its transactions are about.

use sealog_proto::internal::{ApplyRequest, Participant};

use super::alarm::Alarm;
use super::{CallId, Channel, Transactions};
use crate::{Fault, Nanos, Param, Sql, Txid, blob8};

#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) progress: Progress,
    pub(crate) channel: Channel,
    pub(crate) transactions: Transactions,
    pub(crate) alarm: Alarm,
    /// Workers that wait until their transaction has ended here.
    pub(super) applying: Vec<Applying>,
}

/// A worker that waits until its transaction has ended.
#[derive(Debug)]
pub(super) struct Applying {
    pub(super) call: CallId,
    pub(super) since: Nanos,
    pub(super) txid: Txid,
    pub(super) request: ApplyRequest,
}

impl Seat {
    /// Takes the next incarnation, stored before the instance says anything (rule 1). The tables are there already.
    pub(crate) fn take(sql: &dyn Sql, participant: Participant) -> Result<Self, Fault> {
        let mut progress = Progress::load(sql)?;
        progress.incarnation += 1;
        progress.save(sql)?;
        Ok(Self {
            channel: Channel::new(participant, progress.incarnation),
            transactions: Transactions::load(sql)?,
            progress,
            alarm: Alarm::default(),
            applying: Vec::new(),
        })
    }

    /// Moves the participant's clock up to `now`, and tells it. Whoever relies on it stores it in the same event.
    pub(crate) fn tick(&mut self, now: Nanos) -> Nanos {
        self.progress.clock = self.progress.clock.max(now);
        self.progress.clock
    }

    /// From here on no reply of an older epoch counts. Writes when the epoch is news.
    pub(crate) fn raise_epoch(&mut self, sql: &dyn Sql, epoch: u64) -> Result<(), Fault> {
        if epoch > self.progress.epoch {
            self.progress.epoch = epoch;
            self.progress.save(sql)?;
        }
        Ok(())
    }
}

/// What a participant knows of itself: a row of its table `progress`, which may have columns of its own.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    /// Which instance this is.
    pub(crate) incarnation: u64,
    /// The newest epoch of the sequencer seen. Stored as defence in depth: were an overtaken sequencer to answer once
    /// more, its ids would be refused here even after a restart (trap 24).
    pub(crate) epoch: u64,
    /// The participant's own clock: the latest time seen. It never falls, because it is stored with whatever relies on
    /// it (rule 10).
    pub(crate) clock: Nanos,
}

impl Progress {
    fn load(sql: &dyn Sql) -> Result<Self, Fault> {
        let row = sql
            .first("SELECT incarnation, epoch, clock FROM progress", &[])?
            .ok_or(Fault::Invariant("a participant has its progress row"))?;
        Ok(Self { incarnation: row[0].uint8()?, epoch: row[1].uint8()?, clock: row[2].uint8()? })
    }

    pub(crate) fn save(&self, sql: &dyn Sql) -> Result<(), Fault> {
        Ok(sql.run(
            "UPDATE progress SET incarnation = ?, epoch = ?, clock = ?",
            &[
                Param::Blob(&blob8(self.incarnation)),
                Param::Blob(&blob8(self.epoch)),
                Param::Blob(&blob8(self.clock)),
            ],
        )?)
    }
}
