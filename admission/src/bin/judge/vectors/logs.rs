//! Logs of identity updates, and the blocks that wallets are asked at.

use std::collections::{BTreeMap, BTreeSet};

use base16ct::lower;
use prost::Message;
use sealog_admission::identity::{
    Associations, Block, Decision, Identifier, Member, Rules, State, WalletQuestion, decide, freshness, plan,
};
use sealog_admission::{Rejection, admit};
use sealog_proto::associations::IdentityUpdate;
use sealog_proto::backend::ClientEnvelope;
use sealog_proto::backend::client_envelope::Payload;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::Report;
use super::case::{Case, Verdict, same, unhex};

/// The published defaults.
const RULES: Rules = Rules { max_signatures: 1_000, max_wallet_signatures: 100, handles: true };

/// Each log begins with nothing. A step that is not accepted leaves the state as it is.
pub(super) fn identity_logs(group: &Case<'_>, answers: &Value, report: &mut Report) {
    for log in group.items(report) {
        let mut state = State::default();
        for step in log.list("steps", report) {
            let verdict = take_step(&step, answers, &mut state, &mut report.notes);
            report.add(&step.name, verdict);
        }
    }
}

fn take_step(
    step: &Case<'_>,
    answers: &Value,
    state: &mut State,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let wire = step.hex("identity_update")?;
    let update = match IdentityUpdate::decode(wire.as_slice()) {
        Ok(update) => update,
        Err(error) => return step.expect(Verdict::<()>::undecodable(&error)).map(drop),
    };
    let stated = match (step.value["why"].as_str(), step.value["rule"].as_str()) {
        (Some(WALLET_REFUSES), _) => Some(Some(false)),
        (_, Some(NO_VERDICT)) => Some(None),
        _ => None,
    };
    let mut answer = |question: &WalletQuestion| {
        let answer = answers[answer_key(question)].as_bool();
        match stated {
            Some(stated) if answer == Some(true) => {
                notes.push(format!(
                    "{}: chain_answers has another answer of the same wallet; taken as the step says",
                    step.name
                ));
                stated
            }
            _ => answer,
        }
    };
    let verdict = judge(&update, &mut answer, state);
    if let Some(decision) = step.expect(verdict)? {
        state.fold(&update.inbox_id, 0, &decision.facts).map_err(|error| error.to_string())?;
        if step.states("state_after") {
            return same_state(state, &Case::new("state_after", &step.value["state_after"]));
        }
    }
    Ok(())
}

/// One answer is kept for each question, so that a wallet that first refuses, or is not reached, and then accepts the same
/// signature at the same block has only the later one in the file. A step before that says so.
const WALLET_REFUSES: &str = "not valid at block";
/// As [`WALLET_REFUSES`]: the rule that a verifier failure is no verdict.
const NO_VERDICT: &str = "IDENT-061";

/// As an update that is not stored yet, with the wallets' answers at hand.
fn judge(
    update: &IdentityUpdate,
    answer: &mut dyn FnMut(&WalletQuestion) -> Option<bool>,
    state: &State,
) -> Verdict<Decision> {
    let envelope = ClientEnvelope { payload: Some(Payload::IdentityUpdate(update.clone())) };
    let plan = match admit(&envelope).and_then(|_| plan(update, &RULES)) {
        Ok(plan) => plan,
        Err(rejection) => return rejection.into(),
    };
    // A refusal is certain, whatever another chain would have said.
    let answers: Vec<_> = plan.questions().iter().map(answer).collect();
    if answers.contains(&None) && !answers.contains(&Some(false)) {
        return Verdict::Unavailable;
    }
    let verdicts: Vec<_> = answers.into_iter().map(|answer| answer == Some(true)).collect();
    decide(&plan, &verdicts, state).into()
}

fn answer_key(question: &WalletQuestion) -> String {
    let WalletQuestion { chain_id, address, block_number, signature, .. } = question;
    format!("{chain_id}:{address}:{block_number}:{}", lower::encode_string(signature))
}

/// Compares what is stated of a state. A field that is not known would go unjudged.
fn same_state(state: &State, expected: &Case<'_>) -> Result<(), String> {
    const JUDGED: [&str; 5] = ["inbox_id", "recovery", "recovery_chain", "members", "seen_replay_keys"];
    let fields = expected.value.as_object().ok_or("`state_after` is no object")?;
    if let Some(field) = fields.keys().find(|field| !JUDGED.contains(&field.as_str())) {
        return Err(format!("state_after: the field `{field}` is not known"));
    }
    let associations = state.associations().ok_or("an accepted update leaves no state")?;
    expected.same_text("inbox_id", &associations.inbox_id)?;
    expected.same_text("recovery", &spell(&associations.recovery))?;
    if fields.contains_key("recovery_chain") {
        let chain = expected.optional_number("recovery_chain")?;
        same("recovery_chain", associations.recovery_chain, chain)?;
    }
    if let Some(listed) = fields.get("members") {
        same_members(associations, listed.as_object().ok_or("`members` is no object")?)?;
    }
    if let Some(keys) = fields.get("seen_replay_keys") {
        let keys = keys.as_array().ok_or("`seen_replay_keys` is no list")?;
        let hash = |key: &Value| -> Option<[u8; 32]> { Some(Sha256::digest(unhex(key.as_str()?)?).into()) };
        let hashes: Option<BTreeSet<_>> = keys.iter().map(hash).collect();
        same("seen_replay_keys", Some(state.seen()), hashes.as_ref())?;
    }
    Ok(())
}

fn same_members(associations: &Associations, listed: &Map<String, Value>) -> Result<(), String> {
    let members: BTreeMap<_, _> =
        associations.members.iter().map(|(named, member)| (spell(named), member)).collect();
    let names: Vec<_> = members.keys().collect();
    same("members", names, listed.keys().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>())?;
    members.into_iter().try_for_each(|(name, member)| {
        same_member(member, &Case::new(&name, &listed[&name]))
            .map_err(|mismatch| format!("{name}: {mismatch}"))
    })
}

fn same_member(member: &Member, expected: &Case<'_>) -> Result<(), String> {
    same("adder", member.adder.as_ref().map(spell).as_deref(), expected.optional_text("adder")?)?;
    same("time", member.client_timestamp_ns, expected.optional_number("time")?)?;
    same("chain", member.chain_id, expected.optional_number("chain")?)
}

fn spell(identifier: &Identifier) -> String {
    let kind = match identifier {
        Identifier::Ethereum(_) => "ethereum",
        Identifier::Installation(_) => "installation",
        Identifier::Passkey(_) => "passkey",
    };
    format!("{kind}:{}", identifier.text())
}

pub(super) fn block_freshness(group: &Case<'_>, report: &mut Report) {
    group.has_no_list_but(&["cases"], report);
    for case in group.list("cases", report) {
        let judge = || case.expect(fresh(&case, &Case::new("head", &group.value["head"]))?).map(drop);
        report.add(&case.name, judge());
    }
}

/// A case is of the group's head, unless it has one of its own; null is a head that cannot be read.
fn fresh(case: &Case<'_>, head: &Case<'_>) -> Result<Verdict<()>, String> {
    let head = match case.value.get("head") {
        Some(Value::Null) => return Ok(Verdict::Unavailable),
        Some(own) => &Case::new("head", own),
        None => head,
    };
    let head = Block { number: head.number("number")?, timestamp: head.number("timestamp")? };
    let number = case.number("block")?;
    if let Err(rejection) = freshness::check_number(number, head) {
        return Ok(rejection.into());
    }
    let Some(timestamp) = case.optional_number("timestamp")? else { return Ok(Verdict::Unavailable) };
    let verdict: Result<(), Rejection> = freshness::check_age(Block { number, timestamp }, head);
    Ok(verdict.into())
}
