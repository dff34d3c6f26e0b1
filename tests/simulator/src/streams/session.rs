//! A session as an object, with the socket or the body of its client.

use std::collections::VecDeque;

use bytes::Bytes;
use sealog_log::Nanos;
use sealog_log::session::{Action, Context, Session, Setup, Status};
use sealog_proto::internal::{ControlReply, ControlRequest, PullReply, PullRequest, PushReply, PushRequest};
use sealog_proto::status::Code;

use super::StreamMutation;
use super::object::Object;
use super::run::Run;

/// What a session sends.
#[derive(Clone, Debug)]
pub(super) enum Out {
    Control {
        partition: u32,
        request: ControlRequest,
        deadline: Nanos,
    },
    Pull {
        partition: u32,
        request: PullRequest,
        deadline: Nanos,
    },
    /// The answer to a partition's call of this name.
    Push(u64, PushReply),
    /// The answer to the client's handshake, which leaves when the acceptance is durable.
    Upgraded,
    Frame(Bytes),
    Finish(Status),
    Synced(u64),
}

/// What happens to a session.
#[derive(Clone, Debug)]
pub(super) enum Input {
    Accept,
    Start,
    Data(Bytes),
    HalfClose,
    Closed,
    Written(u64),
    Control { partition: u32, number: u64, reply: Option<ControlReply> },
    Pull { number: u64, reply: Option<PullReply> },
    Push(u64, PushRequest),
    Synced(u64),
    Wake,
    Alarm,
}

/// What an event asks of the world.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// What has passed the gate.
    pub(super) out: Vec<Out>,
    pub(super) flush: Option<u64>,
    pub(super) wakes: Vec<Nanos>,
}

pub(super) struct Host {
    pub(super) setup: Setup,
    pub(super) is_static: bool,
    pub(super) object: Object<Session, Out>,
    /// The live socket, with what it keeps; the body of a static stream keeps nothing.
    pub(super) socket: Option<Vec<u8>>,
    /// Calls and timers that are pending: the platform does not hibernate the object meanwhile.
    pub(super) pending: usize,
    /// The client has its socket.
    pub(super) upgraded: bool,
    /// The body, or the handshake, broke off, and the client does not know yet.
    pub(super) cut: bool,
    /// The stream's end was said.
    pub(super) finished: Option<Status>,
}

impl Host {
    pub(super) fn new(setup: Setup, is_static: bool, skew: i64) -> Self {
        Self {
            setup,
            is_static,
            object: Object::new(skew),
            socket: None,
            pending: 0,
            upgraded: false,
            cut: false,
            finished: None,
        }
    }

    /// Opens a static stream.
    pub(super) fn open_static(&mut self, run: &mut Run, request: Bytes) -> Asked {
        self.object.begin(run);
        let ctx = Context { sql: &self.object.storage, now: run.local(self.object.skew), elsewhere: 0 };
        match Session::open_static(&ctx, self.setup.clone(), request) {
            Ok((session, actions)) => {
                self.object.machine = Some(session);
                self.socket = Some(Vec::new());
                self.carry_out(run, None, actions)
            }
            Err(status) => {
                run.violation(&format!("a good static request was refused: {status:?}"));
                Asked::default()
            }
        }
    }

    /// Runs one event.
    pub(super) fn event(&mut self, run: &mut Run, input: Input) -> Asked {
        self.object.begin(run);
        if matches!(input, Input::Alarm) {
            self.object.ring();
        }
        let now = run.local(self.object.skew);
        let ctx = Context { sql: &self.object.storage, now, elsewhere: 0 };
        let mut actions = Vec::new();
        if self.object.machine.is_none() {
            let attachment = self.socket.as_deref().filter(|_| !self.is_static);
            let was_whole = attachment.is_some();
            match Session::load(&ctx, self.setup.clone(), attachment) {
                Ok((session, first)) => {
                    run.report.hibernations += u64::from(was_whole);
                    self.object.machine = Some(session);
                    actions = first;
                }
                Err(fault) => return self.unreadable(run, &fault, &input),
            }
        }
        if matches!(input, Input::Accept) {
            self.socket = Some(Vec::new());
        }
        let Some(session) = &mut self.object.machine else { return Asked::default() };
        if let Some(kept) = &mut self.socket
            && matches!(input, Input::Start | Input::Data(_) | Input::HalfClose)
            && !run.is(StreamMutation::MessageReadUnmarked)
            && let Some(bytes) = session.reading()
        {
            *kept = super::mutation::attach(run, kept, bytes);
        }
        let mut reply = matches!(input, Input::Accept).then_some(Out::Upgraded);
        actions.extend(match input {
            Input::Accept => session.accept(&ctx),
            Input::Start => session.start(&ctx),
            Input::Data(bytes) => session.data(&ctx, bytes),
            Input::HalfClose => session.half_close(&ctx),
            Input::Closed => session.closed(&ctx),
            Input::Written(bytes) => session.written(&ctx, bytes),
            Input::Control { partition, number, reply } => {
                session.control_reply(&ctx, partition, number, reply.as_ref())
            }
            Input::Pull { number, reply } => session.pull_reply(&ctx, number, reply),
            Input::Push(call, request) => {
                let (answer, actions) = session.push(&ctx, request);
                reply = Some(Out::Push(call, answer));
                actions
            }
            Input::Synced(number) => session.synced(&ctx, number),
            Input::Wake => session.wake(&ctx),
            Input::Alarm => session.alarm(&ctx),
        });
        self.carry_out(run, reply, actions)
    }

    /// Storage could not be read. Whoever called tries again; a message of the client is lost, and the stream must not
    /// go on without it. An alarm rings again.
    fn unreadable(&mut self, run: &mut Run, fault: &sealog_log::Fault, input: &Input) -> Asked {
        run.fault("Session", fault);
        self.object.undo();
        self.object.forget();
        if matches!(input, Input::Data(_) | Input::HalfClose | Input::Start | Input::Accept) {
            self.object.send(Out::Finish(Status::new(Code::Unavailable, "not read")));
            self.socket = None;
        }
        Asked { out: self.object.released(), ..Asked::default() }
    }

    /// Carries out what the machine says. Memory may be lost in the middle of it.
    fn carry_out(&mut self, run: &mut Run, reply: Option<Out>, actions: Vec<Action>) -> Asked {
        if let Some(session) = &mut self.object.machine {
            run.report.counters.add(&session.take_counters());
        }
        for action in &actions {
            if let Action::Alarm { after } = action {
                self.object.set_alarm(Some(run.now + after));
            }
        }
        let mut asked = Asked { flush: self.object.end(), ..Asked::default() };
        let dies_at = run.happens(run.faults.loss).then(|| run.random.index(actions.len() + 1));
        let mut sent: VecDeque<Out> = VecDeque::new();
        for (at, action) in actions.into_iter().enumerate() {
            if dies_at == Some(at) {
                break;
            }
            self.perform(run, action, &mut asked, &mut sent);
        }
        // What is answered leaves when the event is over.
        if dies_at.is_none() {
            sent.extend(reply);
        }
        for out in sent {
            if run.is(StreamMutation::WritesTakenForDurable) && matches!(out, Out::Synced(_)) {
                asked.out.push(out);
            } else {
                self.object.send(out);
            }
        }
        asked.out.extend(self.object.released());
        if dies_at.is_some() {
            run.trace(|| "the session's memory is lost".to_owned());
            run.report.losses += 1;
            asked.wakes.clear();
            self.lose(run);
        }
        asked
    }

    fn perform(&mut self, run: &mut Run, action: Action, asked: &mut Asked, sent: &mut VecDeque<Out>) {
        match action {
            Action::Attach(bytes) => {
                if let Some(kept) = &mut self.socket {
                    *kept = super::mutation::attach(run, kept, bytes);
                }
            }
            Action::Send(frame) => sent.push_back(Out::Frame(frame)),
            Action::Control { partition, request, deadline } => {
                sent.push_back(Out::Control { partition, request, deadline });
            }
            Action::Pull { partition, request, deadline } => {
                sent.push_back(Out::Pull { partition, request, deadline });
            }
            Action::Alarm { .. } => {} // a part of the event's write
            Action::Wake { .. } if run.is(StreamMutation::SessionSetsNoTimer) => {}
            Action::Wake { after } => asked.wakes.push(after),
            Action::Sync { number } => sent.push_back(Out::Synced(number)),
            Action::Finish(status) => sent.push_back(Out::Finish(status)),
            Action::Delete => {
                self.object.delete();
                asked.flush = None;
            }
            Action::Report(fault) => run.fault("Session", &fault),
        }
    }

    /// Memory goes while the socket stays; of what was not durable, some may have become so.
    pub(super) fn lose(&mut self, run: &mut Run) {
        self.object.lose(run);
        self.pending = 0;
        if self.is_static || !self.upgraded {
            self.socket = None; // neither a body nor a handshake outlives the memory behind it
            self.cut = true;
        }
    }

    /// Whether the platform may hibernate the object now.
    pub(super) fn is_quiet(&self) -> bool {
        self.object.machine.is_some() && self.pending == 0 && !self.is_static && self.object.is_durable()
    }
}
