//! A model of a client at the end of its streams. It holds each to the contract, frame by frame, and opens the next one
//! from its cursors when a stream ends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use sealog_proto::backend::{
    CatchupTarget, Cursor, Pong, ServerEnvelope, SubscribeRequest, SubscribeResponse, SubscribeStaticRequest,
    SubscribeStaticResponse, Topic, TopicQuery, subscribe_request, subscribe_response,
    subscribe_static_response,
};

/// The topics of a run by index, and what is stored of them.
pub(super) trait Truth {
    /// Ids of a topic above `after`, ascending.
    fn rows(&self, topic: usize, after: u64) -> Vec<u64>;
    /// The head of a topic as it is durable: no reader sees an older one.
    fn visible(&self, topic: usize) -> u64;
}

/// A topic that a stream has registered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registered {
    pub(super) last: u64,
    target: u64,
    /// It got a frame of history.
    helped: bool,
}

/// An Update that was not answered yet.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    id: u64,
    adds: Vec<(usize, u64)>,
    removes: Vec<usize>,
    /// The heads of the adds that were visible when it was sent.
    heads: Vec<u64>,
}

/// One stream, as its client sees it.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) is_static: bool,
    started: bool,
    sent: VecDeque<Sent>,
    next_id: u64,
    pub(super) registered: BTreeMap<usize, Registered>,
    /// The Ping that is not answered yet.
    pub(super) ping: Option<u64>,
    pub(super) half_closed: bool,
    /// The first Update, while there is no socket yet.
    pub(super) first: Bytes,
    pub(super) envelopes: u64,
    pub(super) applied: u64,
}

type Verdict = Result<(), String>;

fn require(holds: bool, what: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(what()) }
}

impl Stream {
    pub(super) fn new(is_static: bool) -> Self {
        Self { is_static, next_id: 1, ..Self::default() }
    }

    /// Writes an Update down, and encodes it.
    pub(super) fn update(
        &mut self,
        truth: &dyn Truth,
        topics: &[Bytes],
        adds: Vec<(usize, u64)>,
        removes: Vec<usize>,
    ) -> Bytes {
        let id = self.next_id;
        self.next_id += 1;
        let message = subscribe_request::Update {
            id,
            adds: queries(topics, &adds),
            removes: removes.iter().map(|topic| Topic { topic: topics[*topic].clone() }).collect(),
        };
        self.note(truth, id, adds, removes);
        frame(subscribe_request::Request::Update(message))
    }

    /// The request of a static stream.
    pub(super) fn open_static(
        &mut self,
        truth: &dyn Truth,
        topics: &[Bytes],
        adds: Vec<(usize, u64)>,
    ) -> Bytes {
        let request = SubscribeStaticRequest { topics: queries(topics, &adds) };
        self.note(truth, 0, adds, Vec::new());
        request.encode_to_vec().into()
    }

    fn note(&mut self, truth: &dyn Truth, id: u64, adds: Vec<(usize, u64)>, removes: Vec<usize>) {
        let heads = adds.iter().map(|(topic, _)| truth.visible(*topic)).collect();
        self.sent.push_back(Sent { id, adds, removes, heads });
    }

    /// Topics that will be registered when everything sent is applied.
    pub(super) fn wanted(&self) -> BTreeSet<usize> {
        let mut wanted: BTreeSet<usize> = self.registered.keys().copied().collect();
        for sent in &self.sent {
            wanted.retain(|topic| !sent.removes.contains(topic));
            wanted.extend(sent.adds.iter().map(|(topic, _)| *topic));
        }
        wanted
    }

    /// Reads a frame; what a client answers at once comes back.
    pub(super) fn read(
        &mut self,
        truth: &dyn Truth,
        topics: &[Bytes],
        frame: &[u8],
    ) -> Result<Option<Bytes>, String> {
        let message = &frame[5..];
        if self.is_static {
            return self.read_static(truth, topics, message).map(|()| None);
        }
        let response = SubscribeResponse::decode(message).ok().and_then(|it| it.response);
        let first = matches!(response, Some(subscribe_response::Response::Started(_))) != self.started;
        require(first, || "API-250: Started is the first frame, and no other".to_owned())?;
        match response.ok_or("a response is set")? {
            subscribe_response::Response::Started(_) => self.started = true,
            subscribe_response::Response::Applied(applied) => {
                self.applied(truth, topics, applied.id, &applied.added_targets)?;
            }
            subscribe_response::Response::Messages(messages) => {
                self.messages(truth, topics, &messages.envelopes)?;
            }
            subscribe_response::Response::Pong(_) => {}
            subscribe_response::Response::Ping(ping) => {
                let other = self.ping.replace(ping.nonce);
                require(other.is_none(), || "API-257: a second Ping while one is unanswered".to_owned())?;
                let answer = Pong { nonce: ping.nonce };
                return Ok(Some(self::frame(subscribe_request::Request::Pong(answer))));
            }
        }
        Ok(None)
    }

    fn read_static(&mut self, truth: &dyn Truth, topics: &[Bytes], message: &[u8]) -> Verdict {
        let response = SubscribeStaticResponse::decode(message).ok().and_then(|it| it.response);
        let first = matches!(response, Some(subscribe_static_response::Response::Started(_))) != self.started;
        require(first, || "API-260: Started is the first frame, and no other".to_owned())?;
        match response.ok_or("a response is set")? {
            subscribe_static_response::Response::Started(started) => {
                self.started = true;
                self.applied(truth, topics, 0, &started.targets)
            }
            subscribe_static_response::Response::Messages(messages) => {
                self.messages(truth, topics, &messages.envelopes)
            }
            subscribe_static_response::Response::Keepalive(_) => Ok(()),
        }
    }

    /// API-252, 253, 260.
    fn applied(
        &mut self,
        truth: &dyn Truth,
        topics: &[Bytes],
        id: u64,
        targets: &[CatchupTarget],
    ) -> Verdict {
        let sent = self.sent.pop_front().filter(|sent| sent.id == id);
        let sent = sent.ok_or_else(|| format!("API-252: Applied {id} answers no Update, or not in order"))?;
        self.applied += 1;
        self.registered.retain(|topic, _| !sent.removes.contains(topic));
        let new: Vec<_> = sent
            .adds
            .iter()
            .zip(&sent.heads)
            .filter(|((topic, _), _)| !self.registered.contains_key(topic))
            .collect();
        let listed = targets.iter().map(|it| it.topic.as_ref().map(|topic| &topic.topic));
        let same = listed.eq(new.iter().map(|((topic, _), _)| Some(&topics[*topic])));
        require(same, || {
            format!("API-252: Applied {id} does not list what it newly registered, in add order")
        })?;
        for (((topic, cursor), visible), target) in new.into_iter().zip(targets) {
            let target = target.through_sequence_id;
            require(target >= *visible, || format!("API-252: target {target} below {visible}, seen before"))?;
            let is_row = target == 0 || truth.rows(*topic, target - 1).first() == Some(&target);
            require(is_row, || format!("API-252: target {target} is no id of the topic"))?;
            self.registered.insert(*topic, Registered { last: *cursor, target, helped: false });
        }
        Ok(())
    }

    /// API-252, 253, 254, 261.
    fn messages(&mut self, truth: &dyn Truth, topics: &[Bytes], envelopes: &[ServerEnvelope]) -> Verdict {
        let before = self.registered.clone();
        let mut helped = BTreeSet::new();
        for envelope in envelopes {
            let meta = envelope.meta.as_ref().ok_or("an envelope has its metadata")?;
            let id = meta.cursor.map_or(0, |cursor| cursor.sequence_id);
            let topic =
                topics.iter().position(|topic| Some(topic) == meta.topic.as_ref().map(|it| &it.topic));
            let topic = topic.ok_or("an envelope of a topic that nobody publishes to")?;
            let it = self.registered.get_mut(&topic);
            let it = it.ok_or_else(|| format!("API-253: envelope {id} of a topic that is not registered"))?;
            require(id > it.last, || format!("API-254: envelope {id} after {}", it.last))?;
            let next = truth.rows(topic, it.last).first().copied();
            require(next == Some(id), || {
                format!("API-254: envelope {id} after {}: {next:?} is skipped", it.last)
            })?;
            it.last = id;
            self.envelopes += 1;
            if id <= it.target {
                it.helped = true;
                helped.insert(topic);
            }
        }
        // A registration that is being removed is over before that is acknowledged.
        let leaving = |topic: &usize| self.sent.iter().any(|sent| sent.removes.contains(topic));
        for topic in helped {
            let again = before[&topic].helped;
            let starved = before.iter().find(|(other, it)| {
                **other != topic
                    && !leaving(other)
                    && !it.helped
                    && truth.rows(**other, it.last).first().is_some_and(|id| *id <= it.target)
            });
            if let (true, Some((other, _))) = (again, starved) {
                return Err(format!("API-261: topic {topic} is served again, topic {other} was not yet"));
            }
        }
        Ok(())
    }

    /// The oldest Update that was not answered.
    pub(super) fn unanswered(&self) -> Option<String> {
        let sent = self.sent.front()?;
        Some(format!("API-252: Update {} was never answered", sent.id))
    }

    /// What keeps the stream from being complete (API-252, 254).
    pub(super) fn lacks(&self, truth: &dyn Truth) -> Option<String> {
        if let Some(what) = self.unanswered() {
            return Some(what);
        }
        self.registered.iter().find_map(|(topic, it)| {
            let id = *truth.rows(*topic, it.last).first()?;
            Some(format!("API-254: envelope {id} of topic {topic} was never delivered"))
        })
    }
}

fn queries(topics: &[Bytes], adds: &[(usize, u64)]) -> Vec<TopicQuery> {
    let query = |(topic, cursor): &(usize, u64)| TopicQuery {
        topic: Some(Topic { topic: topics[*topic].clone() }),
        cursor: Some(Cursor { sequence_id: *cursor }),
    };
    adds.iter().map(query).collect()
}

/// A gRPC frame of the client.
pub(super) fn frame(request: subscribe_request::Request) -> Bytes {
    let message = SubscribeRequest { request: Some(request) }.encode_to_vec();
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).expect("a short message"));
    frame.extend_from_slice(&message);
    frame.freeze()
}
