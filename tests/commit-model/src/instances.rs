//! The sets of publishes that the tests run, each named for what meets what.

use crate::names::Participant::{First, Second};
use crate::publish::Publish;
use crate::scenario::Scenario;

/// A transaction over both partitions.
fn transaction(first: u8, second: u8) -> Publish {
    Publish::default().message(First, first).message(Second, second)
}

fn first(hash: u8) -> Publish {
    Publish::default().message(First, hash)
}

fn second(hash: u8) -> Publish {
    Publish::default().message(Second, hash)
}

fn update(hash: u8) -> Publish {
    Publish::default().identity(First, hash)
}

/// A transaction and a plain publish in one of its partitions.
pub fn transaction_and_plain() -> Scenario {
    Scenario::new("transaction + plain, same partition", [transaction(1, 2), first(3)])
}

/// A transaction and a copy of its first half on the plain path.
pub fn transaction_and_copy_of_half() -> Scenario {
    Scenario::new("transaction + a copy of one half", [transaction(1, 2), first(1)])
}

/// Two plain publishes in two partitions.
pub fn two_plain_apart() -> Scenario {
    Scenario::new("two plain, two partitions", [first(1), second(2)])
}

/// Two plain publishes in one partition.
pub fn two_plain_together() -> Scenario {
    Scenario::new("two plain, one partition", [first(1), first(2)])
}

/// A plain identity update, and one of the same inbox with a message elsewhere.
pub fn identity_plain_and_transaction() -> Scenario {
    Scenario::new(
        "identity plain + identity transaction, one inbox",
        [update(1), update(2).message(Second, 3)],
    )
}

/// Two updates of one inbox.
pub fn two_identity_updates() -> Scenario {
    Scenario::new("two identity updates", [update(1), update(2)])
}

/// One update of an inbox, sent twice.
pub fn identity_update_twice() -> Scenario {
    Scenario::new("one identity update twice", [update(1), update(1)])
}

/// Two inboxes claim one handle.
pub fn two_claims_of_one_handle() -> Scenario {
    let claims =
        [First, Second].map(|partition| Publish::default().identity(partition, 1).claim(partition, 9));
    Scenario::new("two claims of one handle", claims)
}

/// One claim, sent twice.
pub fn one_claim_twice() -> Scenario {
    Scenario::new("one claim twice", [update(1).claim(First, 9), update(1).claim(First, 9)])
}

/// One transaction, sent twice.
pub fn transaction_twice() -> Scenario {
    Scenario::new("the same transaction twice", [transaction(1, 2), transaction(1, 2)])
}

/// Two transactions over the same partitions.
pub fn two_transactions() -> Scenario {
    Scenario::new("two transactions crosswise", [transaction(1, 2), transaction(3, 4)])
}

/// A transaction, and a plain publish in each of its partitions.
pub fn transaction_and_two_plain() -> Scenario {
    Scenario::new("transaction + two plain", [transaction(1, 2), first(3), second(4)])
}

/// Two transactions and a plain publish.
pub fn two_transactions_and_plain() -> Scenario {
    Scenario::new("two transactions + plain", [transaction(1, 2), transaction(3, 4), first(5)])
}

/// Two plain publishes in one partition, one in the other.
pub fn three_plain() -> Scenario {
    Scenario::new("three plain", [first(1), first(2), second(3)])
}

/// A plain publish and two updates of one inbox, in one partition.
pub fn plain_and_two_identity_updates() -> Scenario {
    Scenario::new("plain + two identity updates", [first(1), update(2), update(3)])
}
