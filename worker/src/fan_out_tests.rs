use proptest::prelude::*;
use sealog_proto::{
    Kind, Topic,
    backend::{
        ClientEnvelope, CommitLogEntry, Cursor, EnvelopeMeta, QueryResponse, client_envelope::Payload,
    },
    internal::StoredEnvelope,
};

use super::*;

/// The rows of a deployment, by topic: what partitions answer from, and what answers are judged by.
type Log = BTreeMap<Topic, Vec<StoredEnvelope>>;

/// Partitions that answer by the comments of internal.proto.
#[derive(Debug)]
struct Partitions {
    log: Log,
    count: u32,
    /// Bytes that they count for a row beside its body.
    overhead: u64,
}

impl Partitions {
    fn above(&self, topic: &Topic, after: u64) -> Vec<StoredEnvelope> {
        self.log.get(topic).into_iter().flatten().filter(|row| id_of(row) > after).cloned().collect()
    }

    fn read(&self, request: &ReadRequest) -> ReadReply {
        let mut reply = ReadReply::default();
        let mut bytes = 0;
        for position in &request.positions {
            for row in self.above(&Topic::parse(position.topic.clone()).unwrap(), position.after) {
                let full = reply.envelopes.len() == request.limit as usize;
                bytes += row.envelope.len() as u64 + self.overhead;
                if full || (bytes > request.max_bytes && !reply.envelopes.is_empty()) {
                    return ReadReply { more: true, cut: !full, ..reply };
                }
                reply.envelopes.push(row);
            }
        }
        reply
    }

    fn newest(&self, request: &NewestRequest) -> NewestReply {
        let topics = request.topics.iter().map(|topic| Topic::parse(topic.clone()).unwrap());
        let results: Vec<_> =
            topics.filter_map(|topic| self.newest_of(&topic, request.include_envelope)).collect();
        let bodies: usize = results.iter().flat_map(|result| &result.envelope).map(Bytes::len).sum();
        let bytes = bodies as u64 + results.len() as u64 * self.overhead;
        let cut = bytes > request.max_bytes && results.len() > 1;
        NewestReply { results: if cut { Vec::new() } else { results }, cut }
    }

    fn newest_of(&self, topic: &Topic, full: bool) -> Option<NewestResult> {
        let row = self.log.get(topic)?.last()?;
        let envelope = full.then(|| row.envelope.clone());
        Some(NewestResult { topic: Some(topic.into()), meta: row.meta.clone(), envelope })
    }

    /// How many of them keep one of the topics.
    fn concerned<'a>(&self, topics: impl IntoIterator<Item = &'a Topic>) -> usize {
        let concerned: std::collections::BTreeSet<u32> =
            topics.into_iter().map(|topic| topic.partition(self.count)).collect();
        concerned.len()
    }

    /// The page of a Query, and how many calls it took.
    fn page(
        &self,
        cursors: &[(Topic, u64)],
        limit: u32,
        max_bytes: usize,
    ) -> (Result<RawQueryResponse, FanOutError>, usize) {
        let mut page = PageBuilder::new(cursors.to_vec(), self.count, limit, max_bytes);
        let mut calls = 0;
        loop {
            let wave = page.next_wave();
            if wave.is_empty() {
                return (Ok(page.finish()), calls);
            }
            assert!(wave.len() <= WIDTH);
            calls += wave.len();
            let replies = wave.iter().map(|call| self.read(&call.request)).collect();
            if let Err(error) = page.absorb(wave, replies) {
                return (Err(error), calls);
            }
        }
    }

    /// The answer of a `QueryNewest`, and how many calls it took.
    fn all_newest(
        &self,
        topics: &[Topic],
        full: bool,
        max_bytes: usize,
    ) -> (Result<RawQueryNewestResponse, FanOutError>, usize) {
        let mut newest = NewestBuilder::new(topics.to_vec(), self.count, full, max_bytes);
        let mut calls = 0;
        loop {
            let wave = newest.next_wave();
            if wave.is_empty() {
                return (Ok(newest.finish()), calls);
            }
            assert!(wave.len() <= WIDTH);
            calls += wave.len();
            let replies = wave.iter().map(|call| self.newest(&call.request)).collect();
            if let Err(error) = newest.absorb(wave, replies) {
                return (Err(error), calls);
            }
        }
    }
}

fn topic(number: u8) -> Topic {
    Topic::derive(Kind::GroupMessage, &[number; 16]).unwrap()
}

fn row(topic: &Topic, id: u64, size: usize) -> StoredEnvelope {
    let cursor = Some(Cursor { sequence_id: id });
    let meta = EnvelopeMeta { cursor, topic: Some(topic.into()), ..Default::default() };
    StoredEnvelope { meta: Some(meta), envelope: vec![0; size].into() }
}

fn id_of(row: &StoredEnvelope) -> u64 {
    row.meta.as_ref().unwrap().cursor.as_ref().unwrap().sequence_id
}

fn topic_of(row: &StoredEnvelope) -> Topic {
    Topic::from_message(row.meta.as_ref().unwrap().topic.as_ref()).unwrap()
}

fn bytes_of(rows: &[StoredEnvelope]) -> usize {
    rows.iter().map(embedded_len).sum()
}

fn partitions() -> impl Strategy<Value = Partitions> {
    // Topics 0 to 23, each with a few rows. Ids are unique over all topics and rise on each.
    let rows = prop::collection::vec((0_u8..24, prop_oneof![0_usize..40, 0_usize..2_000]), 0..100);
    (rows, 1_u32..12, 0..=ROW_ALLOWANCE_BYTES).prop_map(|(rows, count, overhead)| {
        let mut log = Log::new();
        for (id, (number, size)) in (1..).zip(rows) {
            let topic = topic(number);
            let row = row(&topic, id, size);
            log.entry(topic).or_default().push(row);
        }
        Partitions { log, count, overhead }
    })
}

fn cursors() -> impl Strategy<Value = Vec<(Topic, u64)>> {
    prop::collection::vec((0_u8..24, 0_u64..100).prop_map(|(number, after)| (topic(number), after)), 0..40)
}

/// A budget as a part of what would be needed for everything.
fn budget(needed: usize, percent: usize, offset: usize) -> usize {
    (needed * percent / 100 + offset).saturating_sub(2)
}

proptest! {
    #[test]
    fn api_240_a_page_is_what_the_contract_says(
        partitions in partitions(),
        cursors in cursors(),
        limit in 1_u32..60,
        percent in prop_oneof![Just(100_usize), 0_usize..200],
        offset in 0_usize..5,
    ) {
        let mut lowest = BTreeMap::new();
        for (topic, after) in &cursors {
            lowest.entry(topic).and_modify(|low: &mut u64| *low = (*low).min(*after)).or_insert(*after);
        }
        let eligible: BTreeMap<&Topic, Vec<StoredEnvelope>> =
            lowest.iter().map(|(topic, after)| (*topic, partitions.above(topic, *after))).collect();
        let total: usize = eligible.values().map(Vec::len).sum();
        let total_bytes: usize = eligible.values().map(|rows| bytes_of(rows)).sum();
        let max_bytes = budget(total_bytes, percent, offset);

        let (outcome, calls) = partitions.page(&cursors, limit, max_bytes);
        match outcome {
            Ok(page) => {
                prop_assert_eq!(page.envelopes.len(), total.min(limit as usize));
                prop_assert_eq!(page.continuation.unwrap().has_more, total > limit as usize);
                prop_assert!(bytes_of(&page.envelopes) <= max_bytes);
                let mut got = BTreeMap::<Topic, Vec<StoredEnvelope>>::new();
                for row in page.envelopes {
                    got.entry(topic_of(&row)).or_default().push(row);
                }
                for (topic, rows) in &got {
                    // The lowest ids of the topic, ascending, none left out (API-201, API-240).
                    prop_assert_eq!(rows, &eligible[topic][..rows.len()]);
                }
            }
            Err(error) => {
                prop_assert_eq!(error, FanOutError::TooLong { limit: max_bytes });
                prop_assert!(total_bytes > max_bytes);
            }
        }
        // Each further call of a partition brings a row at least, and with bytes to spare there is none.
        let concerned = partitions.concerned(lowest.into_keys());
        prop_assert!(calls <= concerned + total);
        let plenty = concerned * (total_bytes + 100 * 256);
        let (_, calls) = partitions.page(&cursors, limit, plenty);
        prop_assert!(calls <= concerned);
    }

    #[test]
    fn api_244_the_newest_row_of_each_topic_that_has_one(
        partitions in partitions(),
        numbers in prop::collection::vec(0_u8..24, 0..40),
        full: bool,
        percent in prop_oneof![Just(100_usize), 0_usize..200],
        offset in 0_usize..5,
    ) {
        let topics: Vec<Topic> = numbers.into_iter().map(topic).collect();
        let expected: BTreeMap<&Topic, NewestResult> =
            topics.iter().filter_map(|topic| Some((topic, partitions.newest_of(topic, full)?))).collect();
        let bytes: usize = expected.values().map(embedded_len).sum();
        let max_bytes = budget(bytes, percent, offset);

        let (outcome, calls) = partitions.all_newest(&topics, full, max_bytes);
        match outcome {
            Ok(answer) => {
                prop_assert!(bytes <= max_bytes);
                prop_assert_eq!(answer.results.len(), expected.len());
                for result in answer.results {
                    let topic = Topic::from_message(result.topic.as_ref()).unwrap();
                    prop_assert_eq!(&result, &expected[&topic]);
                }
            }
            Err(error) => {
                prop_assert_eq!(error, FanOutError::TooLong { limit: max_bytes });
                prop_assert!(bytes > max_bytes);
            }
        }
        prop_assert!(calls <= 2 * partitions.concerned(&topics));
    }
}

#[test]
fn api_240_a_thousand_topics_take_one_call_per_partition() {
    let topics = (0..1_000_u32).map(|number| {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        Topic::derive(Kind::GroupMessage, &id).unwrap()
    });
    let log: Log = topics.zip(1..).map(|(topic, id)| (topic.clone(), vec![row(&topic, id, 1)])).collect();
    let cursors: Vec<(Topic, u64)> = log.keys().map(|topic| (topic.clone(), 0)).collect();
    let partitions = Partitions { log, count: 8, overhead: 256 };
    for limit in [1, 100, 1_000] {
        let (outcome, calls) = partitions.page(&cursors, limit, 8 << 20);
        assert_eq!(outcome.unwrap().envelopes.len(), limit as usize);
        assert!(calls <= 8, "{calls} calls");
    }
}

#[test]
fn api_282_a_page_fails_from_the_first_byte_over_the_budget() {
    let topic = topic(1);
    let rows = vec![row(&topic, 1, 100), row(&topic, 2, 100)];
    let bytes = bytes_of(&rows);
    let partitions = Partitions { log: Log::from([(topic.clone(), rows)]), count: 1, overhead: 0 };
    let page = |max_bytes| partitions.page(&[(topic.clone(), 0)], 10, max_bytes).0;
    assert_eq!(page(bytes).unwrap().envelopes.len(), 2);
    assert_eq!(page(bytes - 1), Err(FanOutError::TooLong { limit: bytes - 1 }));
}

#[test]
fn a_page_that_a_cut_reply_fills_makes_no_further_call() {
    let topics: Vec<Topic> = (0..100).map(topic).collect();
    let cursors: Vec<(Topic, u64)> = topics.iter().map(|topic| (topic.clone(), 0)).collect();
    let mut page = PageBuilder::new(cursors, 2, 3, 1_000);
    let wave = page.next_wave();
    let rows = |ids: std::ops::Range<u64>| ids.map(|id| row(&topics[0], id, 10)).collect();
    let replies = vec![
        ReadReply { envelopes: rows(1..2), ..Default::default() },
        ReadReply { envelopes: rows(2..4), more: true, cut: true },
    ];
    page.absorb(wave, replies).unwrap();
    assert!(page.next_wave().is_empty());
    assert!(page.finish().continuation.unwrap().has_more);
}

#[test]
fn api_240_a_full_page_asks_the_rest_only_whether_there_is_more() {
    let topics: Vec<Topic> = (0..100).map(topic).collect();
    let cursors: Vec<(Topic, u64)> = topics.iter().map(|topic| (topic.clone(), 0)).collect();
    let mut page = PageBuilder::new(cursors, 64, 1, 1_000);
    let wave = page.next_wave();
    let mut replies = vec![ReadReply::default(); wave.len()];
    replies[0].envelopes.push(row(&topics[0], 1, 10));
    page.absorb(wave, replies).unwrap();
    let wave = page.next_wave();
    assert!(wave.iter().all(|call| call.request.limit == 0));
    let mut replies = vec![ReadReply::default(); wave.len()];
    replies[1].more = true;
    page.absorb(wave, replies).unwrap();
    assert!(page.next_wave().is_empty());
    let page = page.finish();
    assert_eq!((page.envelopes.len(), page.continuation.unwrap().has_more), (1, true));
}

#[test]
fn a_reply_that_would_be_asked_for_for_ever_fails_the_page() {
    let topic = topic(1);
    let absorb = |reply: ReadReply| {
        let mut page = PageBuilder::new(vec![(topic.clone(), 5)], 1, 10, 1_000);
        let wave = page.next_wave();
        page.absorb(wave, vec![reply])
    };
    let at = |id| vec![row(&topic, id, 1)];
    assert_eq!(absorb(ReadReply { envelopes: at(6), more: true, cut: true }), Ok(()));
    let refused = Err(FanOutError::Contradiction);
    assert_eq!(absorb(ReadReply { envelopes: vec![], more: true, cut: true }), refused);
    assert_eq!(absorb(ReadReply { envelopes: at(5), more: true, cut: true }), refused);
    assert_eq!(absorb(ReadReply { envelopes: at(6), more: true, cut: false }), refused);
}

#[test]
fn api_210_the_twins_decode_as_the_public_messages() {
    let mut row = row(&topic(1), 7, 0);
    let envelope = ClientEnvelope { payload: Some(Payload::CommitLogEntry(CommitLogEntry::default())) };
    row.envelope = envelope.encode_to_vec().into();
    let continuation = Some(RawContinuation { has_more: true });
    let twin = RawQueryResponse { envelopes: vec![row.clone()], continuation };
    let public = QueryResponse::decode(twin.encode_to_vec().as_slice()).unwrap();
    assert_eq!(public.envelopes[0].meta, row.meta);
    assert_eq!(public.envelopes[0].envelope, Some(envelope));
    assert!(public.continuation.unwrap().has_more);
}
