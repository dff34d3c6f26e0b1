//! The rules for identity updates that the shared vectors do not reach, or not far enough.

mod associations;
mod bounds;
mod effects;
mod facts;
mod handles;
mod lookup;
mod signatures;
#[path = "../support/signers.rs"]
mod signers;
mod wallets;

use sealog_admission::Rejection;
use sealog_admission::identity::{
    Decision, Effects, Identifier, IdentityRejection, Plan, Rules, State, decide, plan,
};
use sealog_proto::associations::IdentityUpdate;
use signers::{Act, Signer, update};

/// The published defaults.
const RULES: Rules = Rules { max_signatures: 1_000, max_wallet_signatures: 100, handles: true };

/// An inbox, and the log that it has so far. Each update is signed in a second of its own.
struct Inbox {
    id: String,
    state: State,
    second: u64,
    /// `server_ns` of the next entry.
    server_ns: u64,
}

impl Inbox {
    /// Nothing of it is stored yet.
    fn of(founder: &Signer) -> Self {
        Self { id: founder.identifier().inbox_id(0), state: State::default(), second: 0, server_ns: 1 }
    }

    fn created_by(founder: &Signer) -> Self {
        let mut inbox = Self::of(founder);
        inbox.accepts(&[Act::create(founder)]);
        inbox
    }

    fn sign(&mut self, acts: &[Act]) -> IdentityUpdate {
        self.second += 1;
        update(&self.id, self.second * 1_000_000_000, acts)
    }

    /// With wallets that accept everything.
    fn judge(&self, update: &IdentityUpdate) -> Result<Decision, Rejection> {
        let plan = plan(update, &RULES)?;
        decide(&plan, &vec![true; plan.questions().len()], &self.state)
    }

    #[track_caller]
    fn store(&mut self, update: &IdentityUpdate) -> Effects {
        let decision = self.judge(update).expect("accepted");
        let effects = self.state.fold(&update.inbox_id, self.server_ns, &decision.facts).expect("folds");
        assert_eq!(effects, decision.effects);
        effects
    }

    #[track_caller]
    fn accepts(&mut self, acts: &[Act]) -> Effects {
        let update = self.sign(acts);
        self.store(&update)
    }

    #[track_caller]
    fn refuses(&mut self, acts: &[Act], rejection: IdentityRejection) {
        let update = self.sign(acts);
        assert_eq!(self.judge(&update), Err(rejection.into()));
    }

    fn members(&self) -> Vec<Identifier> {
        self.state.associations().expect("created").members.keys().cloned().collect()
    }
}

/// The plan of an update that has one.
#[track_caller]
fn planned(update: &IdentityUpdate) -> Plan {
    plan(update, &RULES).expect("a sound update")
}

#[track_caller]
fn refused(update: &IdentityUpdate, rejection: IdentityRejection) {
    assert_eq!(plan(update, &RULES).map(drop), Err(rejection.into()));
}
