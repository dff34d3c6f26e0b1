//! A log partition, as honest as can be.

use std::collections::BTreeMap;

use sealog_proto::internal::{
    ControlReply, ControlRequest, PullReply, PullRequest, StoredEnvelope, TopicHead, control_reply::Verdict,
    control_request::Kind, pull_reply,
};

use super::frames::{id, number};

/// What it keeps.
#[derive(Debug, Default)]
pub struct Log {
    pub rows: BTreeMap<u32, Vec<StoredEnvelope>>,
    pub watches: BTreeMap<u32, u32>,
    pub highest: u64,
    pub byes: u64,
}

impl Log {
    pub fn head(&self, topic: u32) -> u64 {
        self.rows.get(&topic).and_then(|rows| rows.last()).map_or(0, id)
    }

    pub fn above(&self, topic: u32, after: u64) -> impl Iterator<Item = &StoredEnvelope> {
        self.rows.get(&topic).into_iter().flatten().filter(move |row| id(row) > after)
    }

    /// Rule 4.
    pub fn control(&mut self, request: &ControlRequest) -> ControlReply {
        if request.number < self.highest {
            return ControlReply {
                number: request.number,
                verdict: Verdict::Superseded.into(),
                ..ControlReply::default()
            };
        }
        if request.kind() == Kind::Bye {
            self.watches.clear();
            self.byes += 1;
        }
        let mut repaired = 0;
        if request.number > self.highest {
            self.highest = request.number;
            for watch in &request.remove {
                let topic = number(&watch.topic);
                if self.watches.get(&topic) == Some(&watch.generation) {
                    self.watches.remove(&topic);
                }
            }
            for watch in &request.add {
                let before = self.watches.insert(number(&watch.topic), watch.generation);
                repaired += u32::from(before.is_none() && request.kind() == Kind::Sync);
            }
        }
        let heads = request
            .add
            .iter()
            .map(|watch| TopicHead { topic: watch.topic.clone(), head: self.head(number(&watch.topic)) });
        ControlReply {
            number: request.number,
            verdict: Verdict::Done.into(),
            heads: heads.collect(),
            repaired,
        }
    }

    /// Rules 14 and 15.
    pub fn pull(&self, request: &PullRequest) -> PullReply {
        let mut reply = PullReply { number: request.number, ..PullReply::default() };
        let mut left = request.budget;
        let mut full = false;
        for position in &request.positions {
            let topic = number(&position.topic);
            let mut rows = Vec::new();
            let mut complete = true;
            for row in self.above(topic, position.after) {
                let cost = row.envelope.len() as u64 + 256;
                full |= cost > left && !(reply.items.is_empty() && rows.is_empty());
                if full || rows.len() == 64 {
                    complete = false;
                    break;
                }
                left = left.saturating_sub(cost);
                rows.push(row.clone());
            }
            if full && rows.is_empty() {
                reply.untouched.push(position.topic.clone());
                continue;
            }
            let head = self.head(topic);
            let through = if complete { head } else { rows.last().map_or(0, id) };
            reply.items.push(pull_reply::Item {
                topic: position.topic.clone(),
                generation: position.generation,
                after: position.after,
                rows,
                through,
                head,
            });
        }
        reply
    }
}
