//! A hundred thousand topics on one stream (limits): time, calls, rows.

use sealog_log::Sql;
use sealog_log::session::{Limits, Session};

use crate::support::{Got, World};

const TOPICS: u32 = 100_000;

fn column(world: &World, statement: &str) -> i64 {
    world.sql.first(statement, &[]).unwrap().unwrap()[0].integer().unwrap()
}

#[test]
fn max_stream_topics_in_one_update() {
    for partitions in [1, 8, 256] {
        let mut world = World::with(partitions, Limits::default());
        for topic in (0..TOPICS).step_by(1_000) {
            world.store(topic);
        }
        let adds: Vec<(u32, u64)> = (0..TOPICS).map(|topic| (topic, 0)).collect();
        world.update(1, &adds, &[]);
        let mut calls = 0;
        while !world.controls.is_empty() {
            let request = world.control();
            calls += usize::from(!request.add.is_empty());
        }
        assert_eq!(calls, partitions as usize, "bounded by partitions");
        assert!(matches!(&world.got[0], Got::Applied(1, targets) if targets.len() == TOPICS as usize));
        assert!(column(&world, "SELECT max(length(body)) FROM blocks") <= 1 << 20);
        let rows = column(&world, "SELECT count(*) FROM blocks");
        let bytes = column(&world, "SELECT sum(length(body)) FROM blocks");
        println!("{partitions} partitions: {calls} calls, {rows} rows, {bytes} bytes");
        assert!(rows <= 7 && bytes <= 60 * i64::from(TOPICS));
        world.run();
        assert_eq!(world.rows().len(), 100);
        // They survive a sleep, and half of them go.
        world.restart();
        assert_eq!(world.finished, None);
        let half: Vec<u32> = (0..TOPICS / 2).collect();
        world.update(2, &[(TOPICS, 0)], &half);
        world.run();
        world.publish(TOPICS, 2);
        assert_eq!(world.rows().len(), 1);
        world.event(Session::half_close);
        world.run();
        assert!(world.logs.values().all(|log| log.watches.is_empty()));
    }
}

#[test]
fn a_row_on_each_of_a_hundred_thousand_topics_is_history_without_quadratic_work() {
    let mut world = World::with(8, Limits::default());
    for topic in 0..TOPICS {
        world.store(topic);
    }
    let adds: Vec<(u32, u64)> = (0..TOPICS).map(|topic| (topic, 0)).collect();
    world.update(1, &adds, &[]);
    let mut pulls = 0;
    let mut rows = 0;
    while world.finished.is_none() {
        if !world.controls.is_empty() {
            world.control();
        } else if !world.pulls.is_empty() {
            pulls += 1;
            world.pull();
            // Thousands of positions: the stream is dirty, and stores them every five seconds.
            world.pass(100 * sealog_log::MILLISECOND);
            world.sync();
        } else {
            break;
        }
        for got in world.take() {
            match got {
                Got::Rows(frame) => rows += frame.len(),
                Got::Ping(nonce) => world.pong(nonce),
                _ => {}
            }
        }
    }
    assert_eq!(rows, TOPICS as usize);
    println!("{pulls} pulls");
    assert!(pulls <= TOPICS as usize / 256 + 16, "{pulls}");
    world.pass(5 * sealog_log::SECOND);
    world.sync();
    assert!(column(&world, "SELECT max(length(body)) FROM blocks") <= 2_000_000);
    world.restart();
    assert_eq!(world.finished, None, "all positions are stored");
}
