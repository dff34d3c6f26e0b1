//! The three production machines behind one face.

use sealog_log::directory::{self, Directory};
use sealog_log::participant;
use sealog_log::participant::Machine as _;
use sealog_log::partition::{self, Partition};
use sealog_log::sequencer::{self, Sequencer};
use sealog_log::{CommandError, Fault, Nanos, SECOND, Txid};
use sealog_proto::internal::{ApplyRequest, ResolveRequest, SettleRequest};

use crate::context::Context;
use crate::message::{Node, Reply, Request};
use crate::storage::Storage;

/// How long an object waits for another, where its machine does not say.
const PATIENCE: Nanos = 5 * SECOND;
/// How long a log partition waits for a Directory, as in production.
const DELIVERY: Nanos = 3 * SECOND;

#[derive(Debug)]
pub(crate) enum Machine {
    Sequencer(Box<Sequencer>),
    Log(Box<Partition>),
    Directory(Box<Directory>),
}

/// What happens to a machine.
#[derive(Debug)]
pub(crate) enum Input {
    /// Who calls, under which name.
    Call(Node, u64, Request),
    /// From whom; of `resolve` and `associate`, to what.
    Reply(Node, Reply, Option<Asked>),
    /// A call of its own came to nothing.
    Failed(Asked),
    Wake,
    Alarm,
}

/// What a call of an object was about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    Reserve(u64),
    Resolve(Txid),
    Associate {
        directory: u32,
        through: u64,
    },
    /// Nobody waits for its answer.
    Nothing,
}

/// What is to be done for a machine.
#[derive(Debug)]
pub(crate) enum Do {
    Ask { to: Node, request: Request, asked: Asked, deadline: Nanos },
    Answer { call: u64, reply: Option<Reply> },
    Wake { after: Nanos },
    Alarm { after: Nanos },
}

type Handled = Result<(Option<Reply>, Vec<Do>), CommandError>;

impl Machine {
    pub(crate) fn load(node: Node, sql: &Storage, now: Nanos) -> Result<(Self, Vec<Do>), Fault> {
        Ok(match node {
            Node::Sequencer => {
                let (machine, actions) = Sequencer::load(sql)?;
                (Self::Sequencer(Box::new(machine)), actions.into_iter().map(of_sequencer).collect())
            }
            Node::Log(index) => {
                let (machine, actions) = Partition::load(sql, now, index)?;
                (Self::Log(Box::new(machine)), actions.into_iter().map(of_participant).collect())
            }
            Node::Directory(index) => {
                let (machine, actions) = Directory::load(sql, now, index)?;
                (Self::Directory(Box::new(machine)), actions.into_iter().map(of_participant).collect())
            }
            Node::Worker(_) => unreachable!("a worker is no object"),
        })
    }

    /// Hands over an input. A request without an immediate reply is known to the machine as call `context.calls`.
    pub(crate) fn handle(
        &mut self,
        context: &mut Context,
        sql: &Storage,
        now: Nanos,
        input: &Input,
    ) -> Handled {
        let call = context.next_call();
        match self {
            Self::Sequencer(machine) => sequencer(machine, context, sql, now, input),
            Self::Log(machine) => log(machine, sql, now, call, input),
            Self::Directory(machine) => directory(machine, sql, now, call, input),
        }
    }

    pub(crate) fn abandon(self) -> Vec<Do> {
        match self {
            Self::Sequencer(_) => Vec::new(),
            Self::Log(machine) => machine.abandon().into_iter().map(of_participant).collect(),
            Self::Directory(machine) => machine.abandon().into_iter().map(of_participant).collect(),
        }
    }
}

fn sequencer(
    machine: &mut Sequencer,
    context: &mut Context,
    sql: &Storage,
    now: Nanos,
    input: &Input,
) -> Handled {
    let (reply, actions) = match input {
        Input::Call(from, _, Request::Reserve(request)) => {
            let told = context.mutate_reserve(*from, request, machine.epoch());
            let mut reply = machine.reserve(sql, now, &told)?;
            context.mutate_reserved(*from, request, &mut reply);
            (Some(Reply::Reserve(reply)), Vec::new())
        }
        Input::Call(_, _, Request::Decide(request)) => {
            let (reply, actions) = machine.decide(sql, now, request)?;
            (Some(Reply::Decide(reply)), actions)
        }
        Input::Call(_, _, Request::Resolve(request)) => {
            if let Some(reply) = context.mutate_resolve(request) {
                return Ok((Some(Reply::Resolve(reply)), Vec::new()));
            }
            (Some(Reply::Resolve(machine.resolve(sql, now, request)?)), Vec::new())
        }
        Input::Call(_, _, Request::Boundary) => {
            let boundary = machine.boundary(sql)?;
            let request = SettleRequest { epoch: machine.epoch() };
            let settle = |index| ask(Node::Log(index), Request::Settle(request));
            return Ok((
                Some(Reply::Boundary(boundary)),
                machine.lagging().into_iter().map(settle).collect(),
            ));
        }
        Input::Reply(Node::Log(index), Reply::Settle(reply), _) => {
            machine.settled(*index, reply.epoch);
            (None, Vec::new())
        }
        Input::Alarm => (None, machine.alarm()),
        _ => (None, Vec::new()),
    };
    Ok((reply, actions.into_iter().map(of_sequencer).collect()))
}

fn log(machine: &mut Partition, sql: &Storage, now: Nanos, call: u64, input: &Input) -> Handled {
    let (reply, actions) = match input {
        Input::Call(_, _, Request::Store(request)) => (None, machine.publish(now, call, request.clone())),
        Input::Call(_, _, Request::Read(request)) => {
            (Some(Reply::Read(partition::read(sql, request)?)), Vec::new())
        }
        Input::Call(_, _, Request::Newest(request)) => {
            (Some(Reply::Newest(partition::newest(sql, request)?)), Vec::new())
        }
        Input::Call(_, _, Request::History(request)) => {
            (Some(Reply::History(partition::history(sql, request)?)), Vec::new())
        }
        Input::Call(_, _, Request::Settle(request)) => {
            let (reply, actions) = machine.settle(sql, now, request)?;
            (Some(Reply::Settle(reply)), actions)
        }
        _ => participant(machine, sql, now, call, input)?,
    };
    Ok((reply, actions.into_iter().map(of_participant).collect()))
}

fn directory(machine: &mut Directory, sql: &Storage, now: Nanos, call: u64, input: &Input) -> Handled {
    let (reply, actions) = match input {
        Input::Call(_, _, Request::Associate(request)) => {
            machine.associate(sql, request)?;
            (Some(Reply::Associate), Vec::new())
        }
        Input::Call(_, _, Request::Lookup(request)) => {
            (Some(Reply::Lookup(directory::lookup(sql, request)?)), Vec::new())
        }
        _ => participant(machine, sql, now, call, input)?,
    };
    Ok((reply, actions.into_iter().map(of_participant).collect()))
}

/// What happens to every participant alike.
fn participant<M: participant::Machine>(
    machine: &mut M,
    sql: &Storage,
    now: Nanos,
    call: u64,
    input: &Input,
) -> Result<(Option<Reply>, Vec<participant::Action>), CommandError> {
    let actions = match input {
        Input::Call(_, _, Request::Stage(request)) => {
            let (reply, actions) = machine.stage(sql, now, request)?;
            return Ok((Some(Reply::Stage(reply)), actions));
        }
        Input::Call(_, _, Request::Withdraw(request)) => {
            let (_, actions) = machine.withdraw(sql, now, request)?;
            return Ok((Some(Reply::Withdraw), actions));
        }
        Input::Call(_, _, Request::Apply(request)) => machine.apply(sql, now, call, request.clone())?,
        Input::Reply(_, Reply::Reserve(reply), _) => machine.reserved(sql, now, reply)?,
        Input::Reply(_, Reply::Resolve(reply), Some(Asked::Resolve(txid))) => {
            machine.resolved(sql, now, *txid, Some(reply.decided))?
        }
        Input::Reply(_, Reply::Associate, Some(Asked::Associate { directory, through })) => {
            machine.associated(sql, now, *directory, *through, true)?
        }
        Input::Failed(Asked::Reserve(number)) => machine.reserve_failed(now, *number),
        Input::Failed(Asked::Resolve(txid)) => machine.resolved(sql, now, *txid, None)?,
        Input::Failed(Asked::Associate { directory, through }) => {
            machine.associated(sql, now, *directory, *through, false)?
        }
        Input::Wake => machine.wake(now),
        Input::Alarm => machine.alarm(sql, now)?,
        _ => Vec::new(),
    };
    Ok((None, actions))
}

fn ask(to: Node, request: Request) -> Do {
    Do::Ask { to, request, asked: Asked::Nothing, deadline: PATIENCE }
}

fn resolve(txid: Txid) -> Do {
    let request = Request::Resolve(ResolveRequest { txid: txid.to_bytes() });
    Do::Ask { to: Node::Sequencer, request, asked: Asked::Resolve(txid), deadline: PATIENCE }
}

fn of_sequencer(action: sequencer::Action) -> Do {
    match action {
        sequencer::Action::Alarm { after } => Do::Alarm { after },
        sequencer::Action::Nudge { participant, txid } => {
            ask(Node::of(participant), Request::Apply(ApplyRequest { txid, envelopes: Vec::new() }))
        }
    }
}

fn of_participant(action: participant::Action) -> Do {
    use participant::Action;
    match action {
        Action::Reserve { request, deadline } => {
            let asked = Asked::Reserve(request.number);
            Do::Ask { to: Node::Sequencer, request: Request::Reserve(request), asked, deadline }
        }
        Action::Resolve { txid } => resolve(txid),
        Action::Associate { directory, request, through } => Do::Ask {
            to: Node::Directory(directory),
            request: Request::Associate(request),
            asked: Asked::Associate { directory, through },
            deadline: DELIVERY,
        },
        Action::Answer { call, reply } => {
            let reply = reply.ok().map(|reply| match reply {
                participant::Reply::Store(reply) => Reply::Store(reply),
                participant::Reply::Apply(reply) => Reply::Apply(reply),
            });
            Do::Answer { call, reply }
        }
        Action::Push { .. } => unreachable!("no session watches"),
        Action::Wake { after } => Do::Wake { after },
        Action::Alarm { after } => Do::Alarm { after },
    }
}
