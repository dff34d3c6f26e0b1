//! The association state of an inbox, and how an update changes it (IDENT-002 to IDENT-004, IDENT-010 to IDENT-050).

use std::collections::{BTreeMap, BTreeSet};

use super::facts::{self, FoldError};
use super::signature::Evidence;
use super::structure::Action;
use super::{Identifier, IdentityRejection, LookupKey};
use crate::Rejection;

/// Claims of one inbox at most (IDENT-080).
pub const MAX_CLAIMS: usize = 64;

/// An inbox that claims a handle waits this long before it claims another (API-298).
const CLAIM_INTERVAL_NS: u64 = 7 * 24 * 60 * 60 * 1_000_000_000;

/// What an inbox's log says, up to some entry. The default is the state of an empty log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    associations: Option<Associations>,
    /// Hashes of the replay keys of all entries (IDENT-050).
    seen: BTreeSet<[u8; 32]>,
    /// Handles, with the `server_ns` of the entries that claimed them; oldest first.
    claims: Vec<(String, u64)>,
}

/// Who may act for an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Associations {
    /// As derived from the founder (IDENT-010).
    pub inbox_id: String,
    /// Who is a member.
    pub members: BTreeMap<Identifier, Member>,
    /// Who may revoke, and name a successor. Need not be a member.
    pub recovery: Identifier,
    /// The chain that the recovery identifier must sign on; none for a key.
    pub recovery_chain: Option<u64>,
    /// The installations that each identifier added, so that a revocation need not look at every member.
    added: BTreeMap<Identifier, BTreeSet<Identifier>>,
}

/// What is known of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who added it; none for the founder.
    pub adder: Option<Identifier>,
    /// `client_timestamp_ns` of the update that added it; none for the founder.
    pub client_timestamp_ns: Option<u64>,
    /// The chain that it must sign on (IDENT-046); none for a key.
    pub chain_id: Option<u64>,
}

/// An update whose signatures are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verified {
    pub(super) inbox_id: String,
    pub(super) client_timestamp_ns: u64,
    pub(super) actions: Vec<Action>,
    /// What the actions' signatures establish.
    pub(super) signatures: Vec<Evidence>,
}

/// What an update does outside of its log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Identifiers whose association changes; each once.
    pub changes: Vec<Change>,
    /// The handle that it claims.
    pub claim: Option<String>,
}

/// An identifier that an update makes a member of its inbox, or no member any more (API-270).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What it is looked up by.
    pub key: LookupKey,
    /// Whether it is a member after the update, and became one in it.
    pub live: bool,
}

impl State {
    /// Takes the next entry of the inbox's log. After an error the state is of no use.
    ///
    /// `inbox_id` is the update's, and `facts` are [`Decision::facts`](super::Decision::facts).
    pub fn fold(&mut self, inbox_id: &str, server_ns: u64, facts: &[u8]) -> Result<Effects, FoldError> {
        let update = facts::decode(inbox_id, facts)?;
        let effects = apply(&mut self.associations, &self.seen, self.claims.len(), &update)?;
        self.seen.extend(update.signatures.iter().map(|evidence| evidence.replay_key_hash));
        self.claims.extend(effects.claim.iter().map(|handle| (handle.clone(), server_ns)));
        Ok(effects)
    }

    /// What the update would do, on a copy.
    pub(super) fn clone_and_apply(&self, update: &Verified) -> Result<Effects, IdentityRejection> {
        apply(&mut self.associations.clone(), &self.seen, self.claims.len(), update)
    }

    /// Whether the inbox may claim a handle now (API-298). `now_ns` counts from the Unix epoch, like `server_ns`.
    pub fn check_claim_time(&self, now_ns: u64) -> Result<(), Rejection> {
        let earliest = now_ns.saturating_sub(CLAIM_INTERVAL_NS);
        if self.claims.iter().any(|&(_, server_ns)| server_ns > earliest) {
            return Err(IdentityRejection::HandleTooSoon.into());
        }
        Ok(())
    }

    /// Who may act for the inbox; `None` before its first entry.
    pub fn associations(&self) -> Option<&Associations> {
        self.associations.as_ref()
    }

    /// SHA-256 of the replay key of every signature so far.
    pub fn seen(&self) -> &BTreeSet<[u8; 32]> {
        &self.seen
    }

    /// The handles that the inbox claimed, oldest first, repeated ones as often as they were.
    pub fn handles(&self) -> impl ExactSizeIterator<Item = &str> {
        self.claims.iter().map(|(handle, _)| handle.as_str())
    }
}

/// All or nothing for the caller: after an error `associations` are of no use (IDENT-002).
fn apply(
    associations: &mut Option<Associations>,
    seen: &BTreeSet<[u8; 32]>,
    claims: usize,
    update: &Verified,
) -> Result<Effects, IdentityRejection> {
    let mut touched = Touched::default();
    let mut claim = None;
    for action in &update.actions {
        let of = |place: &usize| &update.signatures[*place];
        let fresh = |place: &usize| {
            let evidence = of(place);
            if seen.contains(&evidence.replay_key_hash) {
                Err(IdentityRejection::Replay)
            } else {
                Ok(evidence)
            }
        };
        match action {
            Action::Create { founder, nonce, signature } => {
                if associations.is_some() {
                    return Err(IdentityRejection::AlreadyCreated);
                }
                *associations = Some(Associations::create(founder, *nonce, of(signature))?);
                touched.became_member(founder);
            }
            Action::Add { member, existing, new } => {
                let inbox = created(associations)?;
                inbox.add(member, fresh(existing)?, fresh(new)?, update.client_timestamp_ns)?;
                touched.became_member(member);
            }
            Action::Revoke { member, signature } => {
                let inbox = created(associations)?;
                inbox.check_recovery(fresh(signature)?)?;
                if inbox.revoke(member) {
                    touched.lost_membership(member);
                }
            }
            Action::ChangeRecovery { recovery, signature } => {
                let inbox = created(associations)?;
                inbox.check_recovery(fresh(signature)?)?;
                inbox.recovery_chain = inbox.members.get(recovery).and_then(|member| member.chain_id);
                inbox.recovery = recovery.clone();
            }
            Action::Claim { handle, signature } => {
                created(associations)?.check_actor(fresh(signature)?)?;
                if claims >= MAX_CLAIMS {
                    return Err(IdentityRejection::TooManyClaims);
                }
                claim = Some(handle.clone());
            }
        }
    }
    let inbox = created(associations)?;
    if inbox.inbox_id != update.inbox_id {
        return Err(IdentityRejection::InboxIdMismatch);
    }
    Ok(Effects { changes: touched.changes(inbox), claim })
}

fn created(associations: &mut Option<Associations>) -> Result<&mut Associations, IdentityRejection> {
    associations.as_mut().ok_or(IdentityRejection::NotCreated)
}

impl Associations {
    fn create(founder: &Identifier, nonce: u64, evidence: &Evidence) -> Result<Self, IdentityRejection> {
        if evidence.signer != *founder {
            return Err(IdentityRejection::FounderSignature);
        }
        let chain_id = evidence.chain_id;
        let member = Member { adder: None, client_timestamp_ns: None, chain_id };
        Ok(Self {
            inbox_id: founder.inbox_id(nonce),
            members: BTreeMap::from([(founder.clone(), member)]),
            recovery: founder.clone(),
            recovery_chain: chain_id,
            added: BTreeMap::new(),
        })
    }

    fn add(
        &mut self,
        named: &Identifier,
        existing: &Evidence,
        new: &Evidence,
        client_timestamp_ns: u64,
    ) -> Result<(), IdentityRejection> {
        if new.signer != *named {
            return Err(IdentityRejection::NewMemberSigner);
        }
        if existing.signer == new.signer {
            return Err(IdentityRejection::AddsItself);
        }
        if self.members.contains_key(named) {
            return Err(IdentityRejection::AlreadyMember);
        }
        self.check_actor(existing)?;
        let is_installation = matches!(named, Identifier::Installation(_));
        if is_installation && matches!(existing.signer, Identifier::Installation(_)) {
            return Err(IdentityRejection::InstallationAddsInstallation);
        }
        if is_installation {
            self.added.entry(existing.signer.clone()).or_default().insert(named.clone());
        }
        let member = Member {
            adder: Some(existing.signer.clone()),
            client_timestamp_ns: Some(client_timestamp_ns),
            chain_id: new.chain_id,
        };
        self.members.insert(named.clone(), member);
        Ok(())
    }

    /// Ends the membership, if there is one, and that of the installations that the identifier added (IDENT-044).
    /// Nothing else: neither other members that it added, nor the recovery role.
    fn revoke(&mut self, named: &Identifier) -> bool {
        for installation in self.added.remove(named).unwrap_or_default() {
            self.members.remove(&installation);
        }
        let member = self.members.remove(named);
        if let Some(siblings) = member.as_ref().and_then(|member| self.added.get_mut(member.adder.as_ref()?))
        {
            siblings.remove(named);
        }
        member.is_some()
    }

    /// Whether a signature of a member, or of the recovery identifier, may act (IDENT-040, IDENT-046).
    fn check_actor(&self, evidence: &Evidence) -> Result<(), IdentityRejection> {
        let member = self.members.get(&evidence.signer);
        let is_recovery = evidence.signer == self.recovery;
        if member.is_none() && !is_recovery {
            return Err(IdentityRejection::UnknownSigner);
        }
        self.check_chain(evidence)
    }

    /// Whether a signature of the recovery identifier may act (IDENT-043, IDENT-045, IDENT-046).
    fn check_recovery(&self, evidence: &Evidence) -> Result<(), IdentityRejection> {
        if evidence.signer != self.recovery {
            return Err(IdentityRejection::NotRecovery);
        }
        self.check_chain(evidence)
    }

    /// The chain recorded with every role that the signer has; a signature by key has none.
    fn check_chain(&self, evidence: &Evidence) -> Result<(), IdentityRejection> {
        let member = self.members.get(&evidence.signer).map(|member| member.chain_id);
        let recovery = (evidence.signer == self.recovery).then_some(self.recovery_chain);
        if [member, recovery].into_iter().flatten().all(|chain_id| chain_id == evidence.chain_id) {
            Ok(())
        } else {
            Err(IdentityRejection::OtherChain)
        }
    }
}

/// Identifiers whose membership an update changes on its way.
#[derive(Default)]
struct Touched(BTreeMap<LookupKey, Touch>);

struct Touch {
    identifier: Identifier,
    was_member: bool,
    became_member: bool,
}

impl Touched {
    fn became_member(&mut self, identifier: &Identifier) {
        if let Some(touch) = self.touch(identifier, false) {
            touch.became_member = true;
        }
    }

    fn lost_membership(&mut self, identifier: &Identifier) {
        self.touch(identifier, true);
    }

    /// At the first touch it is known what the identifier was before the update.
    fn touch(&mut self, identifier: &Identifier, was_member: bool) -> Option<&mut Touch> {
        let touch = || Touch { identifier: identifier.clone(), was_member, became_member: false };
        Some(self.0.entry(LookupKey::of(identifier)?).or_insert_with(touch))
    }

    /// One that was revoked and added again is associated anew, by this update. One that came and went is not
    /// mentioned: nothing was associated before, nor is it after.
    fn changes(self, inbox: &Associations) -> Vec<Change> {
        let change = |(key, touch): (LookupKey, Touch)| {
            let is_member = inbox.members.contains_key(&touch.identifier);
            let is_changed = if is_member { touch.became_member } else { touch.was_member };
            is_changed.then_some(Change { key, live: is_member })
        };
        self.0.into_iter().filter_map(change).collect()
    }
}
