//! What travels between machines.

use std::fmt;

use sealog_proto::backend::EnvelopeMeta;
use sealog_proto::internal::{
    ApplyReply, ApplyRequest, AssociateRequest, DecideReply, DecideRequest, HistoryReply, HistoryRequest,
    LookupReply, LookupRequest, NewestReply, NewestRequest, Participant, ReadReply, ReadRequest,
    ReserveReply, ReserveRequest, ResolveReply, ResolveRequest, SettleReply, SettleRequest, StageReply,
    StageRequest, StoreReply, StoreRequest, WithdrawRequest, lookup_reply, participant::Kind,
};

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Node {
    Sequencer,
    Log(u32),
    Directory(u32),
    /// A worker's run of one publish, or a reader.
    Worker(usize),
}

impl Node {
    pub(crate) fn of(participant: Participant) -> Self {
        match participant.kind() {
            Kind::Log => Self::Log(participant.index),
            Kind::Directory => Self::Directory(participant.index),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Request {
    Store(StoreRequest),
    Stage(StageRequest),
    Withdraw(WithdrawRequest),
    Apply(ApplyRequest),
    Read(ReadRequest),
    Newest(NewestRequest),
    History(HistoryRequest),
    Associate(AssociateRequest),
    Lookup(LookupRequest),
    Settle(SettleRequest),
    Reserve(ReserveRequest),
    Decide(DecideRequest),
    Resolve(ResolveRequest),
    Boundary,
}

#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Store(StoreReply),
    Stage(StageReply),
    Withdraw,
    Apply(ApplyReply),
    Read(ReadReply),
    Newest(NewestReply),
    History(HistoryReply),
    Associate,
    Lookup(LookupReply),
    Settle(SettleReply),
    Reserve(ReserveReply),
    Decide(DecideReply),
    Resolve(ResolveReply),
    Boundary(u64),
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Request(Request),
    /// `None`: the call failed, and the caller heard so.
    Reply(Option<Reply>),
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) from: Node,
    pub(crate) to: Node,
    /// Names the call; chosen by the caller, used once.
    pub(crate) call: u64,
    pub(crate) body: Body,
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} > {:?} #{}: ", self.from, self.to, self.call)?;
        match &self.body {
            Body::Request(request) => write!(f, "{request}"),
            Body::Reply(Some(reply)) => write!(f, "{reply}"),
            Body::Reply(None) => write!(f, "failed"),
        }
    }
}

/// The last bytes of a name, enough to tell it from others.
pub(crate) fn short(bytes: &[u8]) -> String {
    bytes.get(14..16).map_or_else(String::new, |end| format!("{:02x}{:02x}", end[0], end[1]))
}

fn ids(metas: &[EnvelopeMeta]) -> Vec<u64> {
    metas.iter().map(id).collect()
}

pub(crate) fn id(meta: &EnvelopeMeta) -> u64 {
    meta.cursor.map_or(0, |cursor| cursor.sequence_id)
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |envelopes: &[sealog_proto::internal::NewEnvelope]| {
            let name = |envelope: &sealog_proto::internal::NewEnvelope| match envelope.expected_head {
                Some(head) => format!("{}@{head}", String::from_utf8_lossy(&envelope.body)),
                None => String::from_utf8_lossy(&envelope.body).into_owned(),
            };
            envelopes.iter().map(name).collect::<Vec<_>>().join(" ")
        };
        match self {
            Self::Store(store) => write!(f, "store {}", list(&store.envelopes)),
            Self::Stage(stage) => {
                let claims: Vec<&str> = stage.claims.iter().map(|claim| claim.handle.as_str()).collect();
                write!(f, "stage T{} {} {}", short(&stage.txid), list(&stage.envelopes), claims.join(" "))
            }
            Self::Withdraw(withdraw) => write!(f, "withdraw T{}", short(&withdraw.txid)),
            Self::Apply(apply) => write!(f, "apply T{}", short(&apply.txid)),
            Self::Read(read) => write!(f, "read after {}", read.positions.first().map_or(0, |it| it.after)),
            Self::Newest(_) => write!(f, "newest"),
            Self::History(_) => write!(f, "history"),
            Self::Associate(associate) => {
                let all = associate.associations.iter().map(|it| (it.sequence_id, it.live));
                write!(f, "associate {:?}", all.collect::<Vec<_>>())
            }
            Self::Lookup(_) => write!(f, "lookup"),
            Self::Settle(settle) => write!(f, "settle {}", settle.epoch),
            Self::Reserve(reserve) => write!(
                f,
                "reserve {}.{} n={} applied={} epoch={}",
                reserve.incarnation, reserve.number, reserve.count, reserve.applied, reserve.epoch_seen
            ),
            Self::Decide(decide) => write!(f, "decide T{}", short(&decide.txid)),
            Self::Resolve(resolve) => write!(f, "resolve T{}", short(&resolve.txid)),
            Self::Boundary => write!(f, "boundary"),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(store) => write!(f, "stored {:?} {:?}", ids(&store.metas), store.refusal()),
            Self::Stage(stage) => write!(f, "{:?} count={}", stage.verdict(), stage.count),
            Self::Withdraw => write!(f, "withdrawn"),
            Self::Apply(apply) => write!(f, "applied {:?} aborted={}", ids(&apply.metas), apply.aborted),
            Self::Read(read) => {
                let seen: Vec<u64> =
                    read.envelopes.iter().filter_map(|row| row.meta.as_ref()).map(id).collect();
                write!(f, "read {seen:?}")
            }
            Self::Newest(newest) => {
                let seen: Vec<u64> =
                    newest.results.iter().filter_map(|row| row.meta.as_ref()).map(id).collect();
                write!(f, "newest {seen:?}")
            }
            Self::History(history) => {
                write!(
                    f,
                    "history {:?}",
                    history.inboxes.iter().map(|it| (it.head, it.count)).collect::<Vec<_>>()
                )
            }
            Self::Associate => write!(f, "associated"),
            Self::Lookup(lookup) => {
                let inbox = |result: &lookup_reply::Result| {
                    result.inbox_id.as_ref().and_then(|it| it.last().copied())
                };
                write!(f, "found {:?}", lookup.results.iter().map(inbox).collect::<Vec<_>>())
            }
            Self::Settle(settle) => write!(f, "settled {}", settle.epoch),
            Self::Reserve(reserve) => {
                let decided: Vec<String> = reserve
                    .decided
                    .iter()
                    .map(|it| format!("T{}@{}:{}+{}", short(&it.txid), it.position, it.first_id, it.count))
                    .collect();
                write!(
                    f,
                    "reserved {}.{} epoch={} first={} n={} {decided:?}{}",
                    reserve.incarnation,
                    reserve.number,
                    reserve.epoch,
                    reserve.first_id,
                    reserve.count,
                    if reserve.superseded { " superseded" } else { "" }
                )
            }
            Self::Decide(decide) => write!(f, "decided {}", decide.decided),
            Self::Resolve(resolve) => write!(f, "resolved decided={}", resolve.decided),
            Self::Boundary(boundary) => write!(f, "boundary {boundary}"),
        }
    }
}
