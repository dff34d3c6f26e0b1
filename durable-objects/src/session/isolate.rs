//! What the sessions of an isolate share: the settings, the memory for output, the counts.

use std::cell::RefCell;
use std::collections::HashMap;

use sealog_log::session::{Counters, Limits};
use sealog_proto::internal::{Failure, failure::Kind};
use worker::Env;

/// The settings of every stream of a deployment.
#[derive(Clone, Copy, Debug)]
pub struct StreamSettings {
    /// The setting `LOG_PARTITIONS`.
    pub log_partitions: u32,
    /// The bounds of a stream.
    pub limits: Limits,
}

/// Reads the checked settings, or says what is wrong with them.
pub type ReadSettings = fn(&Env) -> Result<StreamSettings, String>;

/// Says where streams find their settings. The worker checks them, and is above the objects: so it says so when the
/// isolate starts, before any object is made.
pub fn provide_stream_settings(read: ReadSettings) {
    ISOLATE.with_borrow_mut(|isolate| isolate.settings = Some(read));
}

/// The counts of all streams that ran in this isolate.
pub fn stream_counters() -> Counters {
    ISOLATE.with_borrow(|isolate| isolate.counters)
}

thread_local! {
    static ISOLATE: RefCell<Isolate> = RefCell::default();
}

#[derive(Debug, Default)]
struct Isolate {
    settings: Option<ReadSettings>,
    counters: Counters,
    instances: u64,
    /// By session: the bytes that it has sent and that were not acknowledged, as its newest instance here says.
    unacked: HashMap<[u8; 32], (u64, u64)>,
    total: u64,
}

impl Isolate {
    fn set(&mut self, session: [u8; 32], instance: u64, bytes: u64) {
        let before = if bytes == 0 {
            self.unacked.remove(&session)
        } else {
            self.unacked.insert(session, (instance, bytes))
        };
        self.total = self.total - before.map_or(0, |(_, bytes)| bytes) + bytes;
    }
}

pub(super) fn settings(env: &Env) -> Result<StreamSettings, Failure> {
    let read = ISOLATE.with_borrow(|isolate| isolate.settings);
    let settings = match read {
        Some(read) => read(env),
        None => Err("the worker did not say where streams find their settings".to_owned()),
    };
    settings.map_err(|message| Failure { kind: Kind::Configuration.into(), message })
}

/// One instance's share of what the isolate's streams have sent and not been acknowledged.
#[derive(Debug)]
pub(super) struct Share {
    session: [u8; 32],
    instance: u64,
}

impl Share {
    pub(super) fn new(session: [u8; 32]) -> Self {
        let instance = ISOLATE.with_borrow_mut(|isolate| {
            isolate.instances += 1;
            isolate.instances
        });
        Self { session, instance }
    }

    /// Bytes of all other streams.
    pub(super) fn elsewhere(&self) -> u64 {
        ISOLATE.with_borrow(|isolate| {
            isolate.total - isolate.unacked.get(&self.session).map_or(0, |(_, bytes)| *bytes)
        })
    }

    /// Says how it stands after an event.
    pub(super) fn report(&self, unacked: u64, counters: &Counters) {
        ISOLATE.with_borrow_mut(|isolate| {
            isolate.set(self.session, self.instance, unacked);
            isolate.counters.add(counters);
        });
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // An instance that hibernated is dropped some time later; its successor may have spoken already.
        ISOLATE.with_borrow_mut(|isolate| {
            if isolate.unacked.get(&self.session).is_some_and(|(instance, _)| *instance == self.instance) {
                isolate.set(self.session, self.instance, 0);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(share: &Share, unacked: u64) {
        share.report(unacked, &Counters { frames: 1, ..Counters::default() });
    }

    #[test]
    fn streams_see_what_the_others_hold() {
        let (a, b) = (Share::new([1; 32]), Share::new([2; 32]));
        report(&a, 5);
        report(&b, 7);
        assert_eq!((a.elsewhere(), b.elsewhere()), (7, 5));
        report(&a, 6);
        assert_eq!(b.elsewhere(), 6);
        report(&b, 0);
        assert_eq!(a.elsewhere(), 0);
        assert_eq!(stream_counters().frames, 4);
    }

    #[test]
    fn an_instance_that_is_dropped_late_takes_nothing_from_its_successor() {
        let (old, other) = (Share::new([1; 32]), Share::new([2; 32]));
        report(&old, 5);
        let new = Share::new([1; 32]);
        report(&new, 4);
        drop(old);
        assert_eq!(other.elsewhere(), 4);
        drop(new);
        assert_eq!(other.elsewhere(), 0);
    }
}
