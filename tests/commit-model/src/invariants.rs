//! What must hold in every state, whatever the adversary does.
//!
//! API-221 and API-290 are covered as far as answered ids equal the rows. API-286 and `server_ns` are not modelled.

use crate::names::{Participant, PerParticipant, SequenceId};
use crate::partition::{Origin, PartitionStore, Row};
use crate::scenario::Scenario;
use crate::sequencer::Decision;
use crate::worker::{Answer, Phase, Worker};
use crate::world::World;

/// What can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Invariant {
    /// A topic becomes visible in id order.
    Api201,
    /// What was answered as stored is visible.
    Api202,
    /// At and below a told boundary nothing is stored later, and all that is decided is visible.
    Api203,
    /// A publish is stored whole or not at all: what is visible of a transaction was decided.
    Api220,
    /// Nothing is stored twice, and a duplicate succeeds.
    Api222,
    /// An identity update is stored on the head that it expects; ABORTED means nothing was stored.
    Api232,
    /// No id is used twice.
    Api287,
    /// An id, once decided or answered, stays.
    Api288,
    /// New ids lie above all that was visible when the publish arrived.
    Api289,
    /// The boundary never falls.
    Api291,
    /// One inbox per handle, and `HANDLE_TAKEN` only when another inbox holds it.
    Api296,
    /// A decided transaction is staged or applied at every participant (API-220).
    HalfLost,
    /// A run-time assertion of the objects.
    Assertion(&'static str),
}

/// What the checks need to know of the state before.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    visible: PerParticipant<usize>,
    told: SequenceId,
}

impl Before {
    /// Takes note.
    pub fn of(world: &World) -> Self {
        let visible = world.partitions.0.each_ref().map(|partition| partition.store.durable.rows.len());
        Self { visible: PerParticipant(visible), told: world.record.told }
    }
}

/// The first invariant that the step from `before` to `world` breaks.
pub fn check(scenario: &Scenario, before: &Before, world: &World) -> Option<Invariant> {
    for log in Participant::LOGS {
        let store = &world.partitions[log].store.durable;
        for place in before.visible[log]..store.rows.len() {
            if let Some(broken) = check_new_row(before, world, log, store, place) {
                return Some(broken);
            }
        }
    }
    // The sequencer must not compute a lower boundary either, were it asked now.
    if world.sequencer.store.memory.boundary < world.record.told {
        return Some(Invariant::Api291);
    }
    check_claims(world)
        .or_else(|| world.record.decided.iter().find_map(|decision| check_decision(world, *decision)))
        .or_else(|| world.workers.iter().find_map(|worker| check_answer(scenario, world, worker)))
}

fn check_new_row(
    before: &Before,
    world: &World,
    at: Participant,
    store: &PartitionStore,
    place: usize,
) -> Option<Invariant> {
    let row = &store.rows[place];
    let earlier = &store.rows[..place];
    let on_topic = || earlier.iter().filter(|other| other.envelope.topic == row.envelope.topic);
    let head = on_topic().map(|other| other.id).max().unwrap_or(0);
    let elsewhere = |id| {
        let others = Participant::LOGS.into_iter().filter(|log| *log != at);
        others.flat_map(|log| &world.partitions[log].store.durable.rows).any(|other| other.id == id)
    };
    if earlier.iter().any(|other| other.id == row.id) || elsewhere(row.id) {
        return Some(Invariant::Api287);
    }
    if head >= row.id {
        return Some(Invariant::Api201);
    }
    if on_topic().any(|other| other.envelope.hash == row.envelope.hash) {
        return Some(Invariant::Api222);
    }
    if row.expected_head.is_some_and(|expected| expected != head) {
        return Some(Invariant::Api232);
    }
    if row.id <= before.told {
        return Some(Invariant::Api203);
    }
    if row.id <= world.workers[row.origin.worker().index()].visible_at_arrival {
        return Some(Invariant::Api289);
    }
    check_origin(world, at, row)
}

/// A transaction's row was decided, at this id.
fn check_origin(world: &World, at: Participant, row: &Row) -> Option<Invariant> {
    let Origin::Transaction(txid) = row.origin else { return None };
    let Some(decision) = world.record.decided.iter().find(|decision| decision.txid == txid) else {
        return Some(Invariant::Api220);
    };
    (decision.ids[at] != row.id).then_some(Invariant::Api288)
}

fn check_claims(world: &World) -> Option<Invariant> {
    let held = &world.partitions[Participant::Directory].store.durable.claims;
    for (place, claim) in held.iter().enumerate() {
        if held[..place]
            .iter()
            .any(|other| other.claim.handle == claim.claim.handle && other.claim.inbox != claim.claim.inbox)
        {
            return Some(Invariant::Api296);
        }
        if !world.record.decided.iter().any(|decision| decision.txid == claim.txid) {
            return Some(Invariant::Api220);
        }
    }
    None
}

fn check_decision(world: &World, decision: Decision) -> Option<Invariant> {
    let decided = &world.record.decided;
    if decided.iter().any(|other| other.txid == decision.txid && other.ids != decision.ids) {
        return Some(Invariant::Api288);
    }
    for participant in decision.participants.iter() {
        let store = &world.partitions[participant].store.durable;
        let applied = store.is_applied(decision.txid);
        if !applied && !store.is_staged(decision.txid) {
            return Some(Invariant::HalfLost);
        }
        if participant.is_log() && !applied && decision.ids[participant] <= world.record.told {
            return Some(Invariant::Api203);
        }
    }
    None
}

/// What a client was told stays true.
fn check_answer(scenario: &Scenario, world: &World, worker: &Worker) -> Option<Invariant> {
    let Phase::Answered(answer) = &worker.phase else { return None };
    let publish = scenario.publish(worker.id);
    let envelopes = || {
        Participant::LOGS.into_iter().filter_map(|log| {
            publish.envelopes[log].map(|envelope| (log, envelope, &world.partitions[log].store.durable))
        })
    };
    let stored =
        || envelopes().any(|(_, _, store)| store.rows.iter().any(|row| row.origin.worker() == worker.id));
    match answer {
        Answer::Stored(ids) => envelopes().find_map(|(log, envelope, store)| match store.find(envelope) {
            None => Some(Invariant::Api202),
            Some(id) => (id != ids[log]).then_some(Invariant::Api288),
        }),
        Answer::Aborted if stored() => Some(Invariant::Api232),
        Answer::Aborted => {
            // A stored copy that passed the very check this publish failed: it was a duplicate.
            let duplicate = envelopes().any(|(log, envelope, store)| {
                store.rows.iter().any(|row| {
                    envelope.identity
                        && row.envelope == envelope
                        && row.expected_head == worker.expected_heads[log]
                })
            });
            duplicate.then_some(Invariant::Api222)
        }
        Answer::Taken if stored() => Some(Invariant::Api296),
        Answer::Taken => {
            let claim = publish.claim?;
            // The Directory applies what is decided, so a decided claim of another inbox will hold it for ever.
            let held = world
                .record
                .decided
                .iter()
                .filter_map(|decision| scenario.claim(decision.txid))
                .any(|other| other.handle == claim.handle && other.inbox != claim.inbox);
            (!held).then_some(Invariant::Api296)
        }
        Answer::Unavailable => None,
    }
}
