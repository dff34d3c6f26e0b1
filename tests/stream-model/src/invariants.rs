//! What must hold in every state, whatever the adversary does.

/// What can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Invariant {
    /// Each Update has one Applied, in order, with a target read after the topic was registered, before any Messages.
    Api252,
    /// An add of a registered topic changes nothing; after a remove is applied, nothing of that registration comes.
    Api253,
    /// Every envelope above the cursor, once, in order.
    Api254,
    /// Nobody gets a second helping of history before every other registration has had a first.
    Api261,
    /// A run-time assertion of the objects.
    Assertion(&'static str),
}
