//! What a session reads: the bytes of its client, and what its socket kept while the object slept.
//!
//! `fuzz_targets/` runs these under libFuzzer; the tests of `sealog-log` include this file and run them on generated
//! input, on the stable toolchain.
#![allow(unreachable_pub)] // public in one crate, private in the other

use bytes::Bytes;
use prost::Message;
use sealog_log::native::Native;
use sealog_log::session::{Action, Context, Limits, Session, Setup, Status};
use sealog_log::{Nanos, SECOND};
use sealog_proto::internal::SessionAttachment;
use sealog_proto::status::Code;

/// Every target.
pub const ALL: [fn(&[u8]); 2] = [client_bytes, attachment];

const NOON: Nanos = 1_800_000_000 * SECOND;

/// An open stream on its storage.
struct Stream {
    sql: Native,
    session: Session,
    kept: Vec<u8>,
}

/// What came of some events.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    frames: Vec<Bytes>,
    controls: usize,
    finished: Option<Status>,
    faults: usize,
}

impl Stream {
    fn open() -> Self {
        let sql = Native::new();
        let ctx = Context { sql: &sql, now: NOON, elsewhere: 0 };
        let (session, _) = Session::load(&ctx, setup(), None).expect("empty storage loads");
        let mut this = Self { session, sql, kept: Vec::new() };
        this.event(&mut Outcome::default(), Session::accept);
        this.event(&mut Outcome::default(), Session::start);
        this
    }

    fn event(
        &mut self,
        outcome: &mut Outcome,
        event: impl FnOnce(&mut Session, &Context<'_>) -> Vec<Action>,
    ) {
        let ctx = Context { sql: &self.sql, now: NOON, elsewhere: 0 };
        let mut actions = event(&mut self.session, &ctx);
        // Whatever is written is durable at once.
        if let Some(number) =
            actions.iter().find_map(|it| if let Action::Sync { number } = it { Some(*number) } else { None })
        {
            actions.extend(self.session.synced(&ctx, number));
        }
        self.take(outcome, actions);
    }

    fn take(&mut self, outcome: &mut Outcome, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Attach(bytes) => self.kept = bytes,
                Action::Send(frame) => outcome.frames.push(frame),
                Action::Control { .. } => outcome.controls += 1,
                Action::Finish(status) => {
                    assert!(outcome.finished.replace(status).is_none(), "a stream ends once");
                }
                Action::Report(_) => outcome.faults += 1,
                Action::Pull { .. }
                | Action::Alarm { .. }
                | Action::Wake { .. }
                | Action::Sync { .. }
                | Action::Delete => {}
            }
        }
    }
}

fn setup() -> Setup {
    let limits =
        Limits { max_update_adds: 9, max_stream_topics: 9, max_request_bytes: 4_000, ..Limits::default() };
    Setup { session: Bytes::from_static(&[7; 32]), partitions: 1, limits }
}

/// A frame so long that storage keeps the beginning of it, while the rest is awaited: a Ping, and a field that is not known.
fn long_frame() -> Vec<u8> {
    let mut message = vec![18, 2, 8, 1];
    prost::encoding::bytes::encode(99, &vec![0; 3_000], &mut message);
    let length = u32::try_from(message.len()).expect("it is short");
    [&[0][..], &length.to_be_bytes(), &message].concat()
}

/// What a client's bytes come to does not depend on how they were cut, nor on sleeps in between.
pub fn client_bytes(data: &[u8]) {
    let long = long_frame();
    let few = usize::from(data.first().copied().unwrap_or_default() % 16);
    let whole = read(&[&long, data]);
    assert!(!whole.frames.is_empty(), "the Ping is answered");
    let (first, rest) = long.split_at(2_500);
    assert_eq!(read(&[first, &rest[..few], &rest[few..], data]), whole, "{few} bytes behind what is stored");

    let whole = read(&[data]);
    for at in [1, 4, 5, 6, data.len() / 2].into_iter().filter(|at| *at < data.len()) {
        assert_eq!(read(&[&data[..at], &data[at..]]), whole, "cut at {at}");
    }
    assert_eq!(whole.faults, 0);
    if let Some(status) = &whole.finished {
        let allowed = [Code::InvalidArgument, Code::OutOfRange, Code::Unimplemented, Code::ResourceExhausted];
        assert!(allowed.contains(&status.code), "{status:?}");
    }
}

fn read(parts: &[&[u8]]) -> Outcome {
    let mut stream = Stream::open();
    let mut outcome = Outcome::default();
    for part in parts {
        let bytes = Bytes::copy_from_slice(part);
        stream.event(&mut outcome, |session, ctx| session.data(ctx, bytes));
        if stream.session.reading().is_some() {
            // Nothing is in work: the object may sleep.
            let ctx = Context { sql: &stream.sql, now: NOON, elsewhere: 0 };
            let (session, actions) = Session::load(&ctx, setup(), Some(&stream.kept)).expect("storage loads");
            assert_eq!(actions, [], "it goes on");
            stream.session = session;
        }
    }
    outcome
}

/// Whatever a socket kept, the stream goes on from it or is failed; what is kept of it then fits, and is read again.
pub fn attachment(data: &[u8]) {
    let stream = Stream::open();
    // The end of the input, as a change to what was kept: so that much of it stays right.
    let mut kept = stream.kept.clone();
    kept.extend_from_slice(data);
    for bytes in [data, &kept] {
        let ctx = Context { sql: &stream.sql, now: NOON, elsewhere: 0 };
        let (session, actions) = Session::load(&ctx, setup(), Some(bytes)).expect("storage loads");
        let mut outcome = Outcome::default();
        let mut stream = Stream { session, sql: Native::new(), kept: bytes.to_vec() };
        stream.take(&mut outcome, actions);
        if outcome.finished.is_some() {
            continue;
        }
        let before = SessionAttachment::decode(bytes).expect("it was read");
        let after = stream.session.reading().expect("it goes on");
        let after = SessionAttachment::decode(after.as_slice()).expect("it can be read again");
        assert_eq!((after.update_id, after.next_number), (before.update_id, before.next_number));
        assert_eq!((after.sent, after.acked, after.ping), (before.sent, before.acked, before.ping));
        stream.event(&mut outcome, Session::alarm);
        stream.event(&mut outcome, Session::wake);
        stream.event(&mut outcome, |session, ctx| {
            session.data(ctx, Bytes::from_static(&[0, 0, 0, 0, 2, 18, 0]))
        });
    }
}
