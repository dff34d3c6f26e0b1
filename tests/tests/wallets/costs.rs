//! What verdicts cost: calls to the node, and time. `--nocapture` shows the times; they are shown, not judged.

use std::time::{Duration, Instant};

use sealog_proto::backend::verify_smart_contract_wallet_signatures_request::Signature;
use sealog_tests::fixtures::random;

use crate::support::{World, at};

/// Requests that are timed.
const TIMED: usize = 50;

impl World {
    /// The median time of a request with these entries, made anew for each.
    async fn median(&self, mut entries: impl FnMut() -> Vec<Signature>) -> Duration {
        let client = self.backend.client();
        let mut times = Vec::new();
        for _ in 0..TIMED {
            let entries = entries();
            let begun = Instant::now();
            client.verify(entries).await.expect("there are verdicts");
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        times[TIMED / 2]
    }
}

#[tokio::test]
async fn sec_043_052_a_verdict_costs_one_call_and_one_from_memory_none() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let head = world.evm.head().await;
    let entry = world.signed(&wallet).await;
    let another = || Signature { hash: random::<32>().to_vec().into(), ..entry.clone() };
    world.verdict(at(head, &entry)).await;
    world.node.calls();

    let new = world.median(|| vec![at(head, &another())]).await;
    world.assert_calls(TIMED, 0);
    let known = world.median(|| vec![at(head, &entry)]).await;
    world.assert_calls(0, 0);
    let latest = world.median(|| vec![entry.clone()]).await;
    world.assert_calls(TIMED, TIMED);
    let hundred = world.median(|| (0..100).map(|_| at(head, &another())).collect()).await;
    world.assert_calls(100 * TIMED, 0);
    println!("median: new {new:?}, known {known:?}, latest {latest:?}, 100 new ones {hundred:?}");
}
