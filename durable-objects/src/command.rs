//! Commands: their names, and the frame around a reply.
//!
//! A returned value is one byte and a message: [`REPLY`] and the reply of the command, or [`FAILURE`] and a `Failure`.

use bytes::{Buf, BufMut, Bytes};
use prost::Message;
use sealog_log::{CommandError, Fault};
use sealog_proto::internal::{Failure, failure::Kind};
use worker::console_error;

pub(crate) const JOIN: &str = "join";
pub(crate) const RESERVE: &str = "reserve";
pub(crate) const STORE: &str = "store";
pub(crate) const READ: &str = "read";
pub(crate) const NEWEST: &str = "newest";
pub(crate) const SETTLE: &str = "settle";
pub(crate) const STAGE: &str = "stage";
pub(crate) const WITHDRAW: &str = "withdraw";
pub(crate) const APPLY: &str = "apply";
pub(crate) const DECIDE: &str = "decide";
pub(crate) const RESOLVE: &str = "resolve";
pub(crate) const HISTORY: &str = "history";
pub(crate) const KNOWN: &str = "known";
pub(crate) const INBOXES: &str = "inboxes";
pub(crate) const ASSOCIATE: &str = "associate";
pub(crate) const LOOKUP: &str = "lookup";
pub(crate) const BOUNDARY: &str = "boundary";
pub(crate) const CONTROL: &str = "control";
pub(crate) const PULL: &str = "pull";
pub(crate) const PUSH: &str = "push";

const REPLY: u8 = 0;
const FAILURE: u8 = 1;

/// Decodes the request of a command.
pub(crate) fn request<M: Message + Default>(body: Vec<u8>) -> Result<M, Failure> {
    M::decode(Bytes::from(body)).map_err(|_| bad_command("the body does not decode"))
}

/// The answer to a command that no version of this class had.
pub(crate) fn unknown() -> Failure {
    bad_command("no such command")
}

fn bad_command(what: &str) -> Failure {
    Failure {
        kind: Kind::BadCommand.into(),
        message: format!("{what}: worker and object are of versions too far apart"),
    }
}

/// What a caller hears when an instance ends. The fault itself goes to the log.
pub(crate) fn fault(object: &str, fault: &Fault) -> Failure {
    console_error!("{object}: {fault}; the instance starts anew");
    let kind = match fault {
        Fault::Sql(_) => Kind::Unavailable,
        Fault::Invariant(_) => Kind::Invariant,
    };
    Failure { kind: kind.into(), message: format!("{object}: {fault}") }
}

/// Like [`fault`], for a command that may also have been refused.
pub(crate) fn command_error(object: &str, error: CommandError) -> Failure {
    match error {
        CommandError::Fault(error) => fault(object, &error),
        CommandError::Refused(failure) => failure,
    }
}

/// Encodes what a command came to.
pub(crate) fn answer<M: Message>(outcome: &Result<M, Failure>) -> Vec<u8> {
    fn frame(tag: u8, message: &impl Message) -> Vec<u8> {
        let mut frame = Vec::with_capacity(1 + message.encoded_len());
        frame.put_u8(tag);
        message.encode_raw(&mut frame);
        frame
    }
    match outcome {
        Ok(reply) => frame(REPLY, reply),
        Err(failure) => frame(FAILURE, failure),
    }
}

/// Decodes what [`answer`] encoded.
pub(crate) fn outcome<M: Message + Default>(mut frame: Bytes) -> Result<M, Failure> {
    let unreadable = || bad_command("the answer does not decode");
    if frame.is_empty() {
        return Err(unreadable());
    }
    match frame.get_u8() {
        REPLY => M::decode(frame).map_err(|_| unreadable()),
        FAILURE => Err(Failure::decode(frame).unwrap_or_else(|_| unreadable())),
        _ => Err(unreadable()),
    }
}
