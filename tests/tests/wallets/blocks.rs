//! The blocks that signatures of contract wallets are of, by the numbers of the table of cases (54, 55, 57).

use sealog_proto::backend::publish_error::Reason;
use sealog_tests::chain::Reply;
use sealog_tests::fixtures::identity::{Key, Update, inbox_id};
use serde_json::json;

use crate::support::World;
use crate::updates::inbox_of;

/// IDENT-062: a block may be so many seconds older than the head.
const MAX_AGE: u64 = 1_800;

#[tokio::test]
async fn ident_062_case_54_a_block_is_recent_and_not_above_the_head() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let block = world.evm.mine_after(1).await;
    let head = world.evm.mine_after(MAX_AGE).await;
    world.node.calls();
    world.accepted("the head", world.create_another(&wallet, head, 0).await).await;
    world.assert_calls(1, 1);
    world.accepted("a block that is 30 minutes old", world.create_another(&wallet, block, 1).await).await;
    world.assert_calls(1, 2);

    let next = world.create_another(&wallet, head + 1, 2).await;
    world.refused("a block above the head", next.clone(), Reason::InvalidSignature).await;
    world.assert_calls(0, 1);
    let known = world.create_another(&wallet, head, 3).await;
    assert_eq!(world.evm.mine_after(1).await, head + 1);
    world.accepted("the same block, once it is there", next).await;
    world.node.calls();
    let too_old = world.create_another(&wallet, block, 4).await;
    world.refused("a second more than 30 minutes", too_old, Reason::InvalidSignature).await;
    world.assert_calls(0, 2);

    let tells = |world: &World, block: fn(&serde_json::Value) -> serde_json::Value| {
        world.node.rule(move |call| {
            if call.method != "eth_getBlockByNumber" || call.params[0] == "latest" {
                return Reply::Honest;
            }
            Reply::json(&json!({ "jsonrpc": "2.0", "id": call.id, "result": block(&call.params[0]) }))
        });
    };
    tells(&world, |number| json!({ "number": number, "timestamp": "0xffffffff" }));
    world.refused("a block that is younger than the head", known.clone(), Reason::InvalidSignature).await;
    tells(&world, |_| json!({ "number": "0x0", "timestamp": "0xffffffff" }));
    world.unavailable("another block than was asked for", known.clone()).await;
    tells(&world, |_| json!(null));
    world.unavailable("a block that the node does not know", known.clone()).await;
    world.node.always(Reply::Honest);
    world.accepted("the same update, from a node that tells the truth", known).await;
}

#[tokio::test]
async fn ident_062_case_55_the_blocks_of_stored_updates_may_be_of_any_age() {
    let world = World::start(&[]).await;
    let wallet = world.wallet().await;
    let (inbox, phone) = (inbox_of(&wallet), Key::installation());
    world.accepted("an inbox", world.create(&wallet, world.evm.head().await).await).await;
    let quarter = world.evm.mine_after(90 * 86_400).await;
    world.node.calls();
    let addition = world.update(|key| Update::of(&inbox).add(&phone, &key(&wallet, quarter))).await;
    world.accepted("an update, three months later", addition).await;
    world.assert_calls(1, 1);
    world.node.always(Reply::HangUp);
    let by_phone = Update::of(&inbox).add(&Key::wallet(), &phone).sign();
    world
        .accepted("one that no wallet signs needs no chain, whatever the history holds (SEC-022)", by_phone)
        .await;
    world.assert_calls(0, 0);
}

#[tokio::test]
async fn ident_062_case_57_each_head_and_each_block_is_read_once() {
    let world = World::start(&[]).await;
    let (first, second) = (world.wallet().await, world.wallet().await);
    let block = world.evm.head().await;
    let head = world.evm.mine_after(1).await;
    for (block, reads) in [(block, 2), (head, 1)] {
        world.node.calls();
        let registration = world
            .update(|key| {
                let (founder, member) = (key(&first, block), key(&second, block));
                let inbox = inbox_id(&founder, block);
                Update::of(&inbox).create(&founder, block).add(&member, &founder)
            })
            .await;
        world.accepted("a registration with two wallets", registration).await;
        world.assert_calls(2, reads);
    }
}
