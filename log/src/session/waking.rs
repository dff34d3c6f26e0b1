//! Starting an instance, on what is stored and what the socket kept (rules 11, 19, 20).

use sealog_proto::status::Code;

use super::store::{Store, Stored};
use super::turn::{Stop, Turn};
use super::{Action, Context, Kind, Phase, Session, Setup, Status, attachment};
use crate::Fault;

impl Session {
    /// An instance on what is stored, and on what the socket kept: `None` when the object has no live socket.
    ///
    /// Nothing stored and no socket: it holds no stream; it can [`accept`](Self::accept) one, and answers pushes with
    /// `gone`. A stream whose memory held something is failed with UNAVAILABLE here (rule 19). A fault means that
    /// storage cannot be read: throw, and let the caller try again (rule 11).
    pub fn load(
        ctx: &Context<'_>,
        setup: Setup,
        attachment: Option<&[u8]>,
    ) -> Result<(Self, Vec<Action>), Fault> {
        let mut this = Self::new(setup, Kind::Bidirectional);
        let (store, stored) = Store::load(ctx.sql)?;
        let version = store.version;
        this.store = store;
        let mut turn = Turn::new(ctx);
        let Some(attachment) = attachment else {
            this.load_over(&mut turn, stored)?;
            return Ok((this, turn.actions));
        };
        this.counters.wakes += 1;
        let attachment = attachment::read(attachment);
        let whole = stored == Stored::Open
            && attachment.as_ref().is_some_and(|it| !it.busy && !it.dirty && it.version == version);
        let behind = attachment.as_ref().is_some_and(|it| it.behind);
        if let Some(attachment) = attachment {
            this.restore(attachment);
        } else {
            this.phase = Phase::Open;
            this.watched_by_rows(&turn)?;
        }
        if whole && !behind {
            return Ok((this, Vec::new())); // nearly every waking
        }
        this.counters.busy_restarts += u64::from(!whole && stored == Stored::Open);
        let actions = this.finish_event(turn, |this, turn| {
            if whole {
                return this.sync(turn);
            }
            Err(Stop::Status(Status::new(
                Code::Unavailable,
                "the stream was interrupted here; open it again from your cursors",
            )))
        });
        Ok((this, actions))
    }

    /// Asks for the heads of everything that is watched: what was known of them is forgotten (rule 20).
    fn sync(&mut self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        self.counters.syncs += 1;
        let mut partitions: Vec<u32> = self.registry(turn)?.iter().map(|(_, it)| it.partition).collect();
        partitions.sort_unstable();
        partitions.dedup();
        for partition in partitions {
            self.channels.sync(partition);
        }
        Ok(())
    }
}
