//! A host's output gate, its flushes, its alarm, and what a crash leaves of it.

use sealog_log::sequencer::Sequencer;
use sealog_log::{MILLISECOND, Nanos};

use super::{Host, Out, Timer};
use crate::context::Context;
use crate::history::last_row;
use crate::message::{Body, Message, Node};
use crate::mutation::Mutation;
use crate::storage::Storage;

impl Host {
    /// What an event sends goes behind the gate.
    pub(super) fn gate(&mut self, context: &mut Context, out: &mut Out) {
        let number = self.storage.written();
        for message in std::mem::take(&mut self.posted) {
            if self.storage.flushed() >= number || context.bypasses_gate(&message) {
                context.history.released(&message);
                out.messages.push(message);
            } else {
                self.held.push_back((number, message));
            }
        }
    }

    pub(super) fn flush(&mut self, context: &mut Context, number: u64) -> Out {
        self.storage.flush(number);
        let flushed = self.storage.flushed();
        self.make_durable(context);
        let mut out = Out::default();
        while self.held.front().is_some_and(|(number, _)| *number <= flushed) {
            let Some((_, message)) = self.held.pop_front() else { break };
            context.history.released(&message);
            out.messages.push(message);
        }
        out
    }

    fn make_durable(&mut self, context: &mut Context) {
        let flushed = self.storage.flushed();
        while self.effects.front().is_some_and(|(number, _)| *number <= flushed) {
            let Some((_, effect)) = self.effects.pop_front() else { break };
            context.history.durable(effect);
        }
    }

    /// Storage as far as it was flushed is kept, and nothing else. Some writes may have been flushed although the
    /// messages behind them never left.
    pub(crate) fn crash(&mut self, context: &mut Context) -> Out {
        context.trace(|| format!("{:?} crashes", self.node));
        if self.storage.written() > self.storage.flushed() && context.random.chance(500) {
            let number = context.random.between(self.storage.flushed(), self.storage.written());
            self.storage.flush(number);
            self.make_durable(context);
        }
        if let (Node::Sequencer, Some(machine)) = (self.node, self.machine.take())
            && context.is(Mutation::OvertakenSequencerAnswers)
        {
            let storage = Storage::new();
            Sequencer::load(&storage).expect("an empty database loads");
            self.predecessor = Some((machine, storage));
        }
        self.held.clear();
        self.effects.clear();
        self.storage.crash();
        context.mutate_storage(self.node, &self.storage);
        self.last_row = last_row(self.node, &self.storage);
        let written = self.storage.written();
        self.alarms.retain(|(number, _)| *number <= written);
        self.forget();
        let mut out = Out::default();
        for (to, call) in std::mem::take(&mut self.calls).into_values() {
            if context.random.chance(500) {
                out.messages.push(Message { from: self.node, to, call, body: Body::Reply(None) });
            }
        }
        self.rearm(context, &mut out);
        out
    }

    pub(super) fn forget(&mut self) {
        self.machine = None;
        self.asked.clear();
        self.wake_at = None;
    }

    pub(super) fn rearm(&self, context: &Context, out: &mut Out) {
        if let Some(at) = self.alarm() {
            out.timers.push((at.saturating_sub(context.now).max(50 * MILLISECOND), Timer::Alarm));
        }
    }

    pub(super) fn alarm(&self) -> Option<Nanos> {
        self.alarms.last().and_then(|(_, at)| *at)
    }

    pub(super) fn set_alarm(&mut self, at: Option<Nanos>) {
        self.storage.touch();
        self.alarms.push((self.storage.written() + 1, at));
    }
}
