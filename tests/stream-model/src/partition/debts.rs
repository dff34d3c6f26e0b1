//! What a partition owes to the session: the queue of a push (rule 6), and the mark that debts hold back (rule 8).

use super::Partition;
use crate::effects::Effects;
use crate::message::Item;
use crate::mutation::Mutation;
use crate::names::{PerTopic, SequenceId, Topic};
use crate::scenario::{Scenario, Variant};

/// One item for each topic that has news.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Debts(PerTopic<Option<Item>>);

impl Debts {
    /// Adds later news of a topic. Rows that follow queued rows are appended; otherwise both become one hint.
    pub fn join(&mut self, scenario: &Scenario, topic: Topic, later: Item) {
        let queued = &mut self.0[topic];
        *queued = Some(match *queued {
            Some(item) if item.generation == later.generation => joined(scenario, item, later),
            Some(newer) if newer.generation > later.generation => newer,
            _ => later,
        });
    }

    /// Adds all of `later`.
    pub fn join_all(&mut self, scenario: &Scenario, later: Self) {
        for (topic, item) in later.0.iter() {
            self.join(scenario, topic, *item);
        }
    }

    /// Forgets every debt for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(Topic, &Item) -> bool) {
        for topic in Topic::ALL {
            self.0[topic] = self.0[topic].filter(|item| keep(topic, item));
        }
    }

    /// Keeps only how far each topic goes.
    pub fn overflow(&mut self) {
        for (_, item) in self.0.iter_mut() {
            *item = Item::hint(item.generation, item.head);
        }
    }

    /// Whether any of them has rows.
    pub fn has_rows(&self) -> bool {
        self.0.iter().any(|(_, item)| !item.rows.is_empty())
    }

    /// What a push of them carries.
    pub fn items(&self) -> PerTopic<Option<Item>> {
        self.0
    }

    /// Whether nothing is owed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How far the mark may go while these are open: below the lowest row; a hint holds it where it is.
    fn bound(&self, scenario: &Scenario, mark: SequenceId) -> SequenceId {
        let held = if scenario.breaks(Mutation::HintReleasesMark) { SequenceId::MAX } else { mark };
        let below = |item: &Item| item.rows.first().map_or(held, |first| first - 1);
        self.0.iter().map(|(_, item)| below(item)).min().unwrap_or(SequenceId::MAX)
    }
}

/// One item for two of the same watch.
fn joined(scenario: &Scenario, mut item: Item, later: Item) -> Item {
    let may_grow = !item.rows.is_empty() || scenario.is(Variant::HintGrows);
    if !may_grow || later.rows.is_empty() || item.head != later.previous {
        return Item::hint(item.generation, item.head.max(later.head));
    }
    item.rows.extend(later.rows);
    item.head = later.head;
    item
}

impl Partition {
    /// Raises the mark, with the write of the step, as far as nothing is open below it.
    pub(super) fn raise_mark(&mut self, scenario: &Scenario, effects: &mut Effects) {
        let newest = self.stored.newest();
        let Some(memory) = self.memory else { return };
        if memory.index.is_none() {
            if scenario.breaks(Mutation::MarkWhileNotLoaded) {
                self.stored.pushed_through = newest;
            }
            return;
        }
        let mark = self.stored.pushed_through;
        let in_flight = memory.in_flight.filter(|_| !scenario.breaks(Mutation::MarkWhenSent));
        let open = memory.owed.bound(scenario, mark).min(in_flight.unwrap_or_default().bound(scenario, mark));
        self.stored.pushed_through = mark.max(open.min(newest));
        effects.assert(memory.owed.bound(scenario, mark) >= mark, "P: ids owed are above the mark");
    }
}
