//! Logs of signed updates, judged by admission and by a model that says the association rules as plainly as it can.

use sealog_admission::identity::{Effects, Identifier, MAX_CLAIMS, Plan, Rules, State, decide, plan};
use sealog_proto::associations::{IdentifierKind, IdentityUpdate, identity_action::Kind, signature};

use super::signers::{Act, Signer, update};

/// How many updates of a run were accepted and refused. A run that does only one of them shows little.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub accepted: u32,
    pub refused: u32,
}

/// Reads updates from the bytes and judges them twice, one after the other on one inbox.
pub fn associations(data: &[u8]) -> Tally {
    let cast = cast();
    let mut bytes = data.iter().copied();
    let mut model = Model::default();
    let mut state = State::default();
    let mut sent: Vec<(u64, String, Vec<Act>)> = Vec::new();
    let mut tally = Tally::default();
    while let Some(head) = bytes.next() {
        let recoded = head & 0xc0 == 0xc0;
        let (time_ns, inbox_id, acts) = match sent.get(usize::from(head & 7)) {
            Some(earlier) if recoded => earlier.clone(),
            _ => {
                let Some(acts) = read_acts(head, &mut bytes, &cast, &model) else { break };
                // A second of its own, or one of few, so that two updates may have one text.
                let second = if head & 0x20 == 0 { 10 + sent.len() as u64 } else { u64::from(head >> 3 & 3) };
                let time_ns = second * 1_000_000_000;
                let nonce = u64::from(head == 0x07);
                (time_ns, cast[0].identifier().inbox_id(nonce), acts)
            }
        };
        let mut signed = update(&inbox_id, time_ns, &acts);
        if recoded {
            recode(&mut signed);
        }
        let verdict = plan(&signed, &Rules::STORED)
            .and_then(|plan| decide(&plan, &answers(&plan), &state))
            .map(|decision| {
                let effects = state.fold(&inbox_id, 1, &decision.facts).expect("what was decided folds");
                assert_eq!(effects, decision.effects);
                effects
            });
        match (verdict, model.take(&inbox_id, time_ns, &acts)) {
            (Ok(effects), Some((next, expected))) => {
                assert_eq!(sorted(effects), sorted(expected));
                model = next;
                model.assert_is(&state);
                tally.accepted += 1;
            }
            (Err(_), None) => tally.refused += 1,
            (verdict, expected) => panic!("admission: {verdict:?}, model accepts: {}", expected.is_some()),
        }
        sent.push((time_ns, inbox_id, acts));
    }
    tally
}

fn answers(plan: &Plan) -> Vec<bool> {
    vec![true; plan.questions().len()]
}

/// The founder first. The two contracts have one address.
fn cast() -> [Signer; 9] {
    [
        Signer::wallet(1),
        Signer::wallet(2),
        Signer::wallet(3),
        Signer::contract(4, 1),
        Signer::contract(4, 2),
        Signer::installation(5),
        Signer::installation(6),
        Signer::passkey(7),
        Signer::passkey(8),
    ]
}

/// One to three actions. Most are signed by who may do so, or nothing would ever be accepted.
fn read_acts(
    head: u8,
    bytes: &mut impl Iterator<Item = u8>,
    cast: &[Signer; 9],
    model: &Model,
) -> Option<Vec<Act>> {
    let mut acts = Vec::new();
    let of = |byte: u8| cast[usize::from(byte) % cast.len()].clone();
    let by_recovery = |byte: u8| {
        let has_the_role = |signer: &&Signer| {
            model.recovery.as_ref() == Some(&signer.identifier()) && chain(signer) == model.recovery_chain
        };
        let recovery = cast.iter().find(has_the_role).unwrap_or(&cast[0]);
        if byte < 0xd0 { recovery.clone() } else { of(byte) }
    };
    for place in 0..[1, 1, 1, 2, 3][usize::from(head % 5)] {
        let (kind, named, by, new) = (bytes.next()?, bytes.next()?, bytes.next()?, bytes.next()?);
        let (named, by) = (of(named), by_recovery(by));
        let is_first = model.inbox_id.is_none() && place == 0;
        acts.push(match kind % 32 {
            0 => Act::Create { founder: named.identifier(), nonce: u64::from(new & 1), by },
            _ if is_first && kind < 0xd0 => Act::create(&cast[0]),
            1..=16 => {
                let new = if new < 0xd0 { named.clone() } else { of(new) };
                Act::Add { member: named.identifier(), by, new }
            }
            17..=24 => Act::revoke(&named, &by),
            25 | 26 => Act::recover(&named, &by),
            _ => Act::claim("alice", &by),
        });
    }
    // More than one claim, or an installation as a recovery identifier, is no matter of associations.
    let claims = acts.iter().filter(|act| matches!(act, Act::Claim { .. })).count();
    let is_sound = |act: &Act| match act {
        Act::Create { founder: named, .. } | Act::Recover { to: named, .. } => {
            !matches!(named, Identifier::Installation(_))
        }
        _ => true,
    };
    acts.retain(is_sound);
    if claims > 1 || acts.is_empty() {
        acts = vec![Act::revoke(&cast[1], &cast[0])];
    }
    Some(acts)
}

/// The same signatures of wallets in their other encoding.
fn recode(update: &mut IdentityUpdate) {
    for action in &mut update.actions {
        let carried = match action.kind.as_mut().expect("built with a kind") {
            Kind::CreateInbox(create) => vec![&mut create.initial_identifier_signature],
            Kind::Add(add) => vec![&mut add.existing_member_signature, &mut add.new_member_signature],
            Kind::Revoke(revoke) => vec![&mut revoke.recovery_identifier_signature],
            Kind::ChangeRecoveryAddress(change) => vec![&mut change.existing_recovery_identifier_signature],
            Kind::ClaimHandle(claim) => vec![&mut claim.existing_member_signature],
        };
        for signature in carried.into_iter().flatten() {
            if let Some(signature::Signature::Erc191(signature)) = &mut signature.signature {
                let mut bytes = signature.bytes.to_vec();
                bytes[64] -= 27;
                signature.bytes = bytes.into();
            }
        }
    }
}

fn chain(signer: &Signer) -> Option<u64> {
    match signer {
        Signer::Contract(_, chain_id) => Some(*chain_id),
        Signer::Wallet(_) | Signer::Installation(_) | Signer::Passkey(_) => None,
    }
}

/// Who signed, and what the text said: inbox, time, and what each action names. All contracts sign with one value.
type Replay = (Option<Identifier>, String);

#[derive(Clone)]
struct Member {
    who: Identifier,
    adder: Option<Identifier>,
    time_ns: Option<u64>,
    chain: Option<u64>,
    /// The update that it became one in.
    since: usize,
}

#[derive(Clone, Default)]
struct Model {
    inbox_id: Option<String>,
    members: Vec<Member>,
    recovery: Option<Identifier>,
    recovery_chain: Option<u64>,
    seen: Vec<Replay>,
    claims: usize,
    updates: usize,
}

impl Model {
    fn member(&self, who: &Identifier) -> Option<&Member> {
        self.members.iter().find(|member| member.who == *who)
    }

    /// The state after the update, or `None` when a rule forbids any part of it.
    fn take(&self, inbox_id: &str, time_ns: u64, acts: &[Act]) -> Option<(Self, Effects)> {
        let text = text(inbox_id, time_ns, acts);
        let replay = |by: &Signer| match by {
            Signer::Contract(..) => (None, text.clone()),
            signer => (Some(signer.identifier()), text.clone()),
        };
        let is_fresh = |by: &Signer| !self.seen.contains(&replay(by));
        let (mut next, mut used, mut claim) = (self.clone(), Vec::new(), None);
        next.updates += 1;
        for act in acts {
            match act {
                Act::Create { founder, nonce, by } => {
                    if next.inbox_id.is_some() || by.identifier() != *founder {
                        return None;
                    }
                    next.inbox_id = Some(founder.inbox_id(*nonce));
                    next.join(founder, None, None, chain(by));
                    next.recovery = Some(founder.clone());
                    next.recovery_chain = chain(by);
                    used.push(replay(by));
                }
                Act::Add { member, by, new } => {
                    let both_installations = [member, &by.identifier()]
                        .iter()
                        .all(|who| matches!(who, Identifier::Installation(_)));
                    let is_allowed = is_fresh(by)
                        && is_fresh(new)
                        && new.identifier() == *member
                        && by.identifier() != *member
                        && next.member(member).is_none()
                        && next.may_act(by)
                        && !both_installations;
                    if !is_allowed {
                        return None;
                    }
                    next.join(member, Some(by.identifier()), Some(time_ns), chain(new));
                    used.extend([replay(by), replay(new)]);
                }
                Act::Revoke { member: named, by } => {
                    if !is_fresh(by) || !next.may_recover(by) {
                        return None;
                    }
                    let is_gone = |member: &Member| {
                        let is_installation = matches!(member.who, Identifier::Installation(_));
                        member.who == *named || is_installation && member.adder.as_ref() == Some(named)
                    };
                    next.members.retain(|member| !is_gone(member));
                    used.push(replay(by));
                }
                Act::Recover { to, by } => {
                    if !is_fresh(by) || !next.may_recover(by) {
                        return None;
                    }
                    next.recovery_chain = next.member(to).and_then(|member| member.chain);
                    next.recovery = Some(to.clone());
                    used.push(replay(by));
                }
                Act::Claim { handle, by } => {
                    if !is_fresh(by) || !next.may_act(by) || next.claims == MAX_CLAIMS {
                        return None;
                    }
                    next.claims += 1;
                    claim = Some(handle.clone());
                    used.push(replay(by));
                }
            }
        }
        next.seen.extend(used);
        let effects = Effects { changes: self.changes(&next), claim };
        (next.inbox_id.as_deref() == Some(inbox_id)).then_some((next, effects))
    }

    fn join(
        &mut self,
        who: &Identifier,
        adder: Option<Identifier>,
        time_ns: Option<u64>,
        chain: Option<u64>,
    ) {
        self.members.push(Member { who: who.clone(), adder, time_ns, chain, since: self.updates });
    }

    /// A member, or the recovery identifier, by the chain that goes with each.
    fn may_act(&self, by: &Signer) -> bool {
        let member = self.member(&by.identifier());
        let is_recovery = self.recovery == Some(by.identifier());
        (member.is_some() || is_recovery)
            && member.is_none_or(|member| member.chain == chain(by))
            && (!is_recovery || self.recovery_chain == chain(by))
    }

    fn may_recover(&self, by: &Signer) -> bool {
        self.recovery == Some(by.identifier()) && self.may_act(by)
    }

    fn changes(&self, next: &Self) -> Vec<sealog_admission::identity::Change> {
        let joined =
            next.members.iter().filter(|member| member.since == next.updates).map(|member| (member, true));
        let left = self
            .members
            .iter()
            .filter(|member| next.member(&member.who).is_none())
            .map(|member| (member, false));
        let change = |(member, live): (&Member, bool)| {
            let (kind, key) = match &member.who {
                Identifier::Ethereum(address) => {
                    (IdentifierKind::Ethereum, address.as_bytes().to_vec().into())
                }
                Identifier::Passkey(key) => (IdentifierKind::Passkey, key.clone()),
                Identifier::Installation(_) => return None,
            };
            let key = sealog_admission::identity::LookupKey { kind, key };
            Some(sealog_admission::identity::Change { key, live })
        };
        joined.chain(left).filter_map(change).collect()
    }

    fn assert_is(&self, state: &State) {
        let associations = state.associations().expect("accepted updates create it");
        assert_eq!(Some(&associations.inbox_id), self.inbox_id.as_ref());
        assert_eq!(Some(&associations.recovery), self.recovery.as_ref());
        assert_eq!(associations.recovery_chain, self.recovery_chain);
        assert_eq!(associations.members.len(), self.members.len());
        for member in &self.members {
            let kept = &associations.members[&member.who];
            assert_eq!(
                (&kept.adder, kept.client_timestamp_ns, kept.chain_id),
                (&member.adder, member.time_ns, member.chain)
            );
        }
        let seen: std::collections::BTreeSet<_> = self.seen.iter().collect();
        assert_eq!(state.seen().len(), seen.len());
        assert_eq!(state.handles().len(), self.claims);
    }
}

/// Two texts are equal when these are: all that is signed, and no nonce.
fn text(inbox_id: &str, time_ns: u64, acts: &[Act]) -> String {
    let said = acts.iter().map(|act| match act {
        Act::Create { founder, .. } => format!("create {}", founder.text()),
        Act::Add { member, .. } => format!("add {}", member.text()),
        Act::Revoke { member, .. } => format!("revoke {}", member.text()),
        Act::Recover { to, .. } => format!("recover {}", to.text()),
        Act::Claim { handle, .. } => format!("claim {handle}"),
    });
    let said: Vec<_> = said.collect();
    format!("{inbox_id} {} {}", time_ns / 1_000_000_000, said.join(", "))
}

fn sorted(mut effects: Effects) -> Effects {
    effects.changes.sort_by(|a, b| a.key.cmp(&b.key));
    effects
}
