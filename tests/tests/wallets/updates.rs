//! Identity updates that contract wallets sign, and what the backend says to them.

use std::time::{SystemTime, UNIX_EPOCH};

use sealog_proto::associations::{SmartContractWalletSignature, identity_action, signature};
use sealog_proto::backend::{ClientEnvelope, client_envelope::Payload, publish_error::Reason};
use sealog_tests::chain::Address;
use sealog_tests::client::failure;
use sealog_tests::fixtures::hex;
use sealog_tests::fixtures::identity::{ContractWallet, Key, Update, identity_topic, inbox_id};
use tonic::Code;

use crate::support::{CHAIN, World};

impl World {
    /// An update that the owner of wallets signs for them: `build` puts it together, `wrap` makes of the
    /// owner's signature what a wallet is shown. The text does not hold the signatures, so that it is known
    /// before them.
    pub(crate) async fn update_with(
        &self,
        build: impl Fn(&dyn Fn(&Address, u64) -> Key) -> Update,
        wrap: impl Fn(Vec<u8>) -> Vec<u8>,
    ) -> ClientEnvelope {
        let time = now();
        let by = |signature: Vec<u8>| {
            let key =
                move |address: &Address, block_number| contract(CHAIN, address, block_number, &signature);
            build(&key).at(time)
        };
        let signature = self.evm.sign(self.owner, by(Vec::new()).text().as_bytes()).await;
        by(wrap(signature)).sign()
    }

    /// The same, for wallets that take the owner's signature as it is.
    pub(crate) async fn update(
        &self,
        build: impl Fn(&dyn Fn(&Address, u64) -> Key) -> Update,
    ) -> ClientEnvelope {
        self.update_with(build, |signature| signature).await
    }

    /// The first update of a wallet's inbox.
    pub(crate) async fn create(&self, wallet: &Address, block: u64) -> ClientEnvelope {
        self.create_another(wallet, block, 0).await
    }

    /// The first update of another inbox of the same wallet.
    pub(crate) async fn create_another(&self, wallet: &Address, block: u64, nonce: u64) -> ClientEnvelope {
        let founds = |key: &dyn Fn(&Address, u64) -> Key| {
            let founder = key(wallet, block);
            Update::of(&inbox_id(&founder, nonce)).create(&founder, nonce)
        };
        self.update(founds).await
    }

    pub(crate) async fn accepted(&self, what: &str, envelope: ClientEnvelope) {
        let answer = self.backend.client().publish_one(envelope).await;
        answer.unwrap_or_else(|status| panic!("{what} was refused: {status:?}"));
    }

    pub(crate) async fn refused(&self, what: &str, envelope: ClientEnvelope, reason: Reason) {
        let status = self.backend.client().publish_one(envelope).await.expect_err(what);
        assert_eq!(status.code(), Code::InvalidArgument, "{what}: {status:?}");
        let detail = failure(&status).expect("a refused publish has a detail");
        assert_eq!((detail.index, detail.reason), (Some(0), reason), "{what}: {detail:?}");
    }

    pub(crate) async fn unavailable(&self, what: &str, envelope: ClientEnvelope) {
        let status = self.backend.client().publish_one(envelope).await.expect_err(what);
        assert_eq!(status.code(), Code::Unavailable, "{what}: {status:?}");
        assert_eq!(failure(&status), None, "an outage has no reason");
        assert!(!status.message().contains("127.0.0.1"), "{status:?}");
    }

    /// How many updates an inbox has.
    pub(crate) async fn stored(&self, inbox_id: &str) -> usize {
        self.backend.client().read(&identity_topic(inbox_id), 0).await.expect("the log is readable").len()
    }
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    u64::try_from(since.as_nanos()).expect("and earlier than 2554")
}

pub(crate) fn contract(chain_id: u64, address: &Address, block_number: u64, signature: &[u8]) -> Key {
    let address = format!("0x{}", hex(address));
    Key::Contract(ContractWallet { chain_id, address, block_number, signature: signature.to_vec() })
}

/// The inbox that a wallet founds.
pub(crate) fn inbox_of(wallet: &Address) -> String {
    inbox_id(&contract(CHAIN, wallet, 0, &[]), 0)
}

/// The update with a change of the first signature by a contract wallet: nothing in it is signed itself.
pub(crate) fn changed(
    mut envelope: ClientEnvelope,
    change: impl FnOnce(&mut SmartContractWalletSignature),
) -> ClientEnvelope {
    let Some(Payload::IdentityUpdate(update)) = &mut envelope.payload else { panic!("an identity update") };
    let signatures = update.actions.iter_mut().flat_map(|action| match &mut action.kind {
        Some(identity_action::Kind::CreateInbox(create)) => vec![&mut create.initial_identifier_signature],
        Some(identity_action::Kind::Add(add)) => {
            vec![&mut add.existing_member_signature, &mut add.new_member_signature]
        }
        _ => Vec::new(),
    });
    let mut by_contracts = signatures.filter_map(|signature| match &mut signature.as_mut()?.signature {
        Some(signature::Signature::Erc6492(signature)) => Some(signature),
        _ => None,
    });
    change(by_contracts.next().expect("a contract wallet has signed"));
    envelope
}
