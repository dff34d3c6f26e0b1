//! Inbox ids, signature texts, and single signatures.

use prost::Message;
use sealog_admission::Rejection;
use sealog_admission::identity::{
    Action, Evidence, INSTALLATION_CONTEXT, Identifier, IdentityRejection, Rules, SignedText, plan,
    signature_text, verify,
};
use sealog_proto::associations::signature::Signature;
use sealog_proto::associations::{
    CreateInbox, IdentityAction, IdentityUpdate, RecoverableEcdsaSignature, RecoverableEd25519Signature,
    RecoverablePasskeySignature, Signature as Carried, identity_action,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Report;
use super::case::{Case, same};

pub(super) fn inbox_ids(group: &Case<'_>, report: &mut Report) {
    for case in group.items(report) {
        report.add(&case.name, inbox_id(&case));
    }
}

fn inbox_id(case: &Case<'_>) -> Result<(), String> {
    let identifier = identifier(case, "kind", "identifier_text")?;
    let nonce = case.number("nonce")?;
    case.same_text("hash_input", &format!("{}{nonce}", identifier.text()))?;
    same("inbox_id", identifier.inbox_id(nonce), case.text("inbox_id")?)
}

fn identifier(case: &Case<'_>, kind: &str, text: &str) -> Result<Identifier, String> {
    match case.text(kind)? {
        "ethereum" => Ok(Identifier::Ethereum(case.text(text)?.into())),
        "installation" => Ok(Identifier::Installation(case.hex(text)?.into())),
        "passkey" => Ok(Identifier::Passkey(case.hex(text)?.into())),
        other => Err(format!("the kind {other:?} is not known")),
    }
}

pub(super) fn signature_texts(group: &Case<'_>, report: &mut Report) {
    for case in group.items(report) {
        report.add(&case.name, text(&case));
    }
}

fn text(case: &Case<'_>) -> Result<(), String> {
    let actions = case.value["actions"].as_array().ok_or("`actions` is no list")?;
    let actions = actions.iter().map(action).collect::<Result<Vec<_>, _>>()?;
    let text = signature_text(case.text("inbox_id")?, case.number("client_timestamp_ns")?, &actions);
    same("text", text.as_str(), case.text("text")?)?;
    case.same_bytes("text_utf8_hex", text.as_bytes())?;
    let text = SignedText::new(text);
    case.same_bytes("eip191_hash", &text.personal_hash())?;
    case.same_bytes("sha512", &text.sha512().finalize())?;
    case.same_text("challenge_b64url", text.challenge())
}

/// The signatures of an action are no part of its text.
fn action(value: &Value) -> Result<Action, String> {
    let case = Case::new("action", value);
    let member = identifier(&case, "member_kind", "member")?;
    match case.text("kind")? {
        "create" => Ok(Action::Create { founder: member, nonce: 0, signature: 0 }),
        "add" => Ok(Action::Add { member, existing: 0, new: 0 }),
        "revoke" => Ok(Action::Revoke { member, signature: 0 }),
        "recover" => Ok(Action::ChangeRecovery { recovery: member, signature: 0 }),
        other => Err(format!("the action {other:?} is not known")),
    }
}

/// The vectors that this repository has. A file that holds a part of the cases may refer to a text among the others.
const OURS: &str = include_str!("../../../../tests/vectors/identity.json");

/// The text that a signature is over: the case, or else its group, names one of another group.
fn text_of(case: &Case<'_>, group: &Case<'_>, file: &Value) -> Result<SignedText, String> {
    let name = if case.states("text_of") { case } else { group }.text("text_of")?;
    let text = text_called(name, file).or_else(|| text_called(name, &serde_json::from_str(OURS).ok()?));
    text.map(SignedText::new).ok_or_else(|| format!("no signature text is called {name:?}"))
}

fn text_called(name: &str, file: &Value) -> Option<String> {
    let texts = file["signature_texts"].as_array().into_iter().flatten();
    texts.filter(|text| text["name"] == name).find_map(|text| Some(text["text"].as_str()?.to_owned()))
}

pub(super) fn erc_191(group: &Case<'_>, file: &Value, report: &mut Report) {
    const ACCEPTED: &str = "accepted_encodings_share_one_replay_key";
    let signature = |case: &Case<'_>| -> Result<Signature, String> {
        Ok(Signature::Erc191(RecoverableEcdsaSignature { bytes: case.hex("signature")?.into() }))
    };
    let verify = |case: &Case<'_>| -> Result<Result<Evidence, Rejection>, String> {
        Ok(verify(&signature(case)?, &text_of(case, group, file)?))
    };
    group.has_no_list_but(&[ACCEPTED, "rejected"], report);
    for case in group.list(ACCEPTED, report) {
        let judge = || {
            let Some(evidence) = case.expect(verify(&case)?.into())? else { return Ok(()) };
            case.same_text("signer", &evidence.signer.text())?;
            let wallets = &file["keys"]["wallets"];
            if let (false, Some(key)) = (wallets.is_null(), group.optional_text("signer_key")?) {
                let wallet = Case::new("wallet", &wallets[key]);
                same("signer_key", evidence.signer.text(), wallet.text("address")?)?;
            }
            same_replay_key(&evidence, &case)
        };
        report.add(&case.name, judge());
    }
    for case in group.list("rejected", report) {
        let judge = || case.expect(verify(&case)?.into()).map(drop);
        report.add(&case.name, judge());
    }
    let case =
        Case::new("erc_191.high_s_without_flipping_parity", &group.value["high_s_without_flipping_parity"]);
    if !case.value.is_null() {
        let judge = || {
            let evidence = verify(&case)?.map_err(|rejection| rejection.to_string())?;
            same("recovered", evidence.signer.text(), case.text("recovered")?)
        };
        report.add(&case.name, judge());
    }
}

fn same_replay_key(evidence: &Evidence, case: &Case<'_>) -> Result<(), String> {
    if !case.states("replay_key") {
        return Ok(());
    }
    let replay_key = case.hex("replay_key")?;
    same("SHA-256 of replay_key", evidence.replay_key_hash, <[u8; 32]>::from(Sha256::digest(replay_key)))
}

pub(super) fn installation_key(group: &Case<'_>, file: &Value, report: &mut Report) {
    group.has_no_list_but(&["rejected"], report);
    // A case that names no key is under the key of the group.
    let verify = |case: &Case<'_>| -> Result<Result<Evidence, Rejection>, String> {
        let named = if case.states("public_key") { case } else { group };
        let signature = Signature::InstallationKey(RecoverableEd25519Signature {
            bytes: case.hex("signature")?.into(),
            public_key: named.hex("public_key")?.into(),
        });
        Ok(verify(&signature, &text_of(case, group, file)?))
    };
    let judge = || {
        group.same_text("context_utf8", &String::from_utf8_lossy(INSTALLATION_CONTEXT))?;
        group.same_bytes("context_hex", INSTALLATION_CONTEXT)?;
        let context_len = u8::try_from(INSTALLATION_CONTEXT.len()).map_err(|error| error.to_string())?;
        let dom2 =
            [b"SigEd25519 no Ed25519 collisions", &[1, context_len][..], INSTALLATION_CONTEXT].concat();
        group.same_bytes("dom2_hex", &dom2)?;
        group.same_bytes("prehash_sha512", &text_of(group, group, file)?.sha512().finalize())?;
        let evidence = verify(group)?.map_err(|rejection| rejection.to_string())?;
        same_replay_key(&evidence, group)
    };
    // The group is itself the accepted case, if it has a signature.
    if group.states("signature") {
        report.add("installation_key", judge());
    }
    for case in group.list("rejected", report) {
        let judge = || case.expect(verify(&case)?.into()).map(drop);
        report.add(&case.name, judge());
    }
}

pub(super) fn passkey(group: &Case<'_>, file: &Value, report: &mut Report) {
    group.has_no_list_but(&["cases"], report);
    for case in group.list("cases", report) {
        let judge = || {
            let signature = Signature::Passkey(RecoverablePasskeySignature {
                public_key: case.hex("public_key")?.into(),
                signature: case.hex("signature")?.into(),
                authenticator_data: case.hex("authenticator_data")?.into(),
                client_data_json: case.hex("client_data_json")?.into(),
            });
            let verdict = verify(&signature, &text_of(&case, group, file)?);
            let Some(evidence) = case.expect(verdict.into())? else { return Ok(()) };
            case.same_text("signer_key", &evidence.signer.text())?;
            same_replay_key(&evidence, &case)
        };
        report.add(&case.name, judge());
    }
}

/// A signature that has only the retired field is no signature.
pub(super) fn retired_delegated_signature(group: &Case<'_>, report: &mut Report) {
    const FIELD_4: u8 = 4 << 3 | 2;
    let judge = || {
        let body = group.hex("signature_field_4_body")?;
        let mut wire = vec![FIELD_4];
        prost::encode_length_delimiter(body.len(), &mut wire).map_err(|error| error.to_string())?;
        wire.extend(body);
        let signature = Carried::decode(wire.as_slice()).map_err(|error| error.to_string())?;
        let founder = Identifier::Ethereum(group.text("legacy_address")?.into());
        let update = IdentityUpdate {
            actions: vec![IdentityAction {
                kind: Some(identity_action::Kind::CreateInbox(CreateInbox {
                    initial_identifier: founder.text().into_owned(),
                    initial_identifier_signature: Some(signature),
                    ..CreateInbox::default()
                })),
            }],
            client_timestamp_ns: 0,
            inbox_id: founder.inbox_id(0),
        };
        let verdict = plan(&update, &Rules::STORED).map(drop);
        same("an update with the retired field alone", verdict, Err(IdentityRejection::NoSignature.into()))
    };
    report.add("retired_delegated_signature", judge());
}
