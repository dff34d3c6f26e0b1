//! What the admission of identity updates costs, natively:
//!
//!     cargo run --release -p sealog-admission --example identity_cost

#[path = "../tests/support/signers.rs"]
mod signers;

use std::hint::black_box;
use std::time::{Duration, Instant};

use prost::Message;
use sealog_admission::identity::{Rules, SignedText, State, decide, plan, verify};
use sealog_proto::associations::IdentityUpdate;
use signers::{Act, Signer, update};

/// Microseconds of the fastest of so many calls: what the machine did besides does not count.
#[expect(clippy::disallowed_methods, reason = "a stopwatch")]
fn cost<T>(times: u32, mut call: impl FnMut() -> T) -> f64 {
    let mut fastest = Duration::MAX;
    for _ in 0..times {
        let start = Instant::now();
        black_box(call());
        fastest = fastest.min(start.elapsed());
    }
    fastest.as_secs_f64() * 1e6
}

/// Plan and decision of an update that the state takes.
fn admit(update: &IdentityUpdate, state: &State) -> sealog_admission::identity::Decision {
    let plan = plan(update, &Rules::STORED).expect("a sound update");
    decide(&plan, &vec![true; plan.questions().len()], state).expect("it follows")
}

fn main() {
    let text = "XMTP : Authenticate to inbox\n".repeat(12);
    for (kind, signer) in [
        ("erc_191", Signer::wallet(1)),
        ("installation_key", Signer::installation(1)),
        ("passkey", Signer::passkey(1)),
        ("erc_6492, without its chain", Signer::contract(1, 1)),
    ] {
        let signature = signer.sign(&text).signature.expect("signed");
        let cost = cost(500, || verify(&signature, &SignedText::new(text.clone())).expect("verifies"));
        println!("{cost:>10.1} µs  {kind}");
    }

    let wallet = Signer::wallet(1);
    let inbox_id = wallet.identifier().inbox_id(0);
    let first = update(&inbox_id, 1, &[Act::create(&wallet), Act::add(&Signer::installation(1), &wallet)]);
    let empty = State::default();
    println!(
        "{:>10.1} µs  update: create, and grant to an installation",
        cost(500, || admit(&first, &empty))
    );

    let mut state = State::default();
    state.fold(&inbox_id, 1, &admit(&first, &empty).facts).expect("folds");
    let mut history = vec![admit(&first, &empty).facts];
    for second in 1..256 {
        let installation = Signer::installation(2);
        let act = if second % 2 == 1 {
            Act::add(&installation, &wallet)
        } else {
            Act::revoke(&installation, &wallet)
        };
        let decision = admit(&update(&inbox_id, second * 1_000_000_000, &[act]), &state);
        state.fold(&inbox_id, second, &decision.facts).expect("folds");
        history.push(decision.facts);
    }
    let fold = || {
        let mut state = State::default();
        for facts in &history {
            state.fold(&inbox_id, 1, facts).expect("folds");
        }
        state
    };
    let bytes: usize = history.iter().map(bytes::Bytes::len).sum();
    println!("{:>10.1} µs  fold of {} entries, {bytes} bytes of facts", cost(20, fold), history.len());

    for (kind, seed) in [("erc_191", 0), ("installation_key", 1), ("passkey", 2)] {
        let members = (1..=250).map(|at| match seed {
            0 => Signer::wallet(at),
            1 => Signer::installation(at),
            _ => Signer::passkey(at),
        });
        let others = members.filter(|member| member.identifier() != wallet.identifier());
        let acts: Vec<_> = others.map(|member| Act::add(&member, &wallet)).collect();
        let large = update(&inbox_id, 1, &[vec![Act::create(&wallet)], acts].concat());
        let (len, count) =
            (large.encoded_len(), plan(&large, &Rules::STORED).expect("sound").signature_count());
        let cost = cost(5, || admit(&large, &empty)) / 1_000.0;
        println!("{cost:>10.1} ms  update of {len} bytes with {count} distinct signatures, mostly {kind}");
    }
}
