//! Load: the index is built from the rows, off the publish path, and hints are owed for what an earlier instance may
//! not have pushed (rule 8).

use std::ops::ControlFlow;

use super::debts::Owed;
use super::index::Watcher;
use super::{Watch, rows};
use crate::key::Key;
use crate::partition::read;
use crate::{Fault, Sql};

/// Additions and removals that are read in one event, and topics whose heads are: about 10 ms each, in which a publish
/// waits. A row costs as much as so many of what is in it.
const ENTRIES_AT_ONCE: usize = 8_192;
const ROW: usize = 4;
const TOPICS_AT_ONCE: usize = 2_048;
/// Hints that are owed before the load waits for some of them to leave. They are then told in fewer, fuller pushes than
/// if it went on only when none was left, and memory stays bounded.
const MANY_HINTS: usize = 65_536;

/// How far the load has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loading {
    /// The rows up to this one are in the index.
    Rows(i64),
    /// All rows are in the index; the heads of the topics up to this one have been compared with the mark.
    Heads(Option<Key>),
    Done,
}

impl Watch {
    /// Whether all watches are in the index.
    pub(super) fn knows_watchers(&self) -> bool {
        !matches!(self.loading, Loading::Rows(_))
    }

    /// Whether everything that an earlier instance owed is owed here.
    pub(super) fn is_loaded(&self) -> bool {
        self.loading == Loading::Done
    }

    /// Whether the load can go on at once.
    pub(super) fn can_load(&self) -> bool {
        match self.loading {
            Loading::Rows(_) => true,
            Loading::Heads(_) => self.debts.len() < MANY_HINTS || !self.lines.somebody_waits(),
            Loading::Done => false,
        }
    }

    /// Does one piece of the load; a small one is done with it.
    pub(super) fn load(&mut self, sql: &dyn Sql) -> Result<(), Fault> {
        if let Loading::Rows(after) = self.loading {
            self.load_rows(sql, after)?;
        }
        if let Loading::Heads(after) = self.loading {
            self.load_heads(sql, after)?;
        }
        Ok(())
    }

    /// Does what a call of a session needs: it changes rows, so all of them must be in the index.
    pub(super) fn load_watchers(&mut self, sql: &dyn Sql) -> Result<(), Fault> {
        while let Loading::Rows(after) = self.loading {
            self.load_rows(sql, after)?;
        }
        Ok(())
    }

    fn load_rows(&mut self, sql: &dyn Sql, mut after: i64) -> Result<(), Fault> {
        let mut entries = 0;
        let all = rows::load(sql, after, |row| {
            after = row.id;
            entries += ROW + row.removed.len() + row.added.len();
            self.enter_row(&row)?;
            Ok(if entries < ENTRIES_AT_ONCE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        self.loading = if all { Loading::Heads(None) } else { Loading::Rows(after) };
        Ok(())
    }

    fn enter_row(&mut self, row: &rows::Row) -> Result<(), Fault> {
        let slot = match self.sessions.find(&row.session) {
            Some(slot) => slot,
            None => self.sessions.insert(row.session)?,
        };
        let session = self.sessions.get_mut(slot)?;
        session.number = row.number;
        session.content = row.content;
        session.heard = session.heard.max(row.heard);
        session.rows.push(row.id);
        session.entries += row.removed.len() + row.added.len();
        for (key, generation) in &row.removed {
            if self.index.generation(key, slot) == Some(*generation) {
                session.live -= usize::from(self.index.remove(key, slot));
            }
        }
        for (key, generation) in &row.added {
            let watcher = Watcher { session: slot, generation: *generation };
            if self.index.insert(*key, watcher).is_none() {
                session.live += 1;
            }
        }
        Ok(())
    }

    fn load_heads(&mut self, sql: &dyn Sql, after: Option<Key>) -> Result<(), Fault> {
        let topics: Vec<Key> = self.index.behind(after).take(TOPICS_AT_ONCE).copied().collect();
        let names: Vec<&[u8]> = topics.iter().map(Key::as_slice).collect();
        let heads = read::heads(sql, &names)?;
        for key in &topics {
            let head = heads.get(key.as_slice()).copied().unwrap_or(0);
            if head > self.mark {
                let watchers = self.index.watchers(key).to_vec();
                for watcher in watchers {
                    let hint = Owed::hint(watcher.generation, head, self.mark + 1);
                    self.owe(watcher.session, *key, hint)?;
                }
            }
        }
        self.loading = match topics.last() {
            Some(last) if topics.len() == TOPICS_AT_ONCE => Loading::Heads(Some(*last)),
            _ => Loading::Done,
        };
        Ok(())
    }
}
