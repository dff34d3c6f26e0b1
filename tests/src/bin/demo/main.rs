//! Two people register, find each other and chat through a running backend: `demo [--url URL] [--static]`.
//!
//! Everything is real: wallets and installations with keys, MLS objects by openmls, the calls by tonic over gRPC-Web. Each run makes new people, so
//! that it can be repeated against the same backend.

mod follow;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use openmls::prelude::{KeyPackage, Lifetime, PURE_CIPHERTEXT_WIRE_FORMAT_POLICY as ENCRYPTED};
use sealog_proto::associations::IdentifierKind;
use sealog_proto::backend::{
    ClientEnvelope, ServerEnvelope, client_envelope::Payload, publish_error::Reason, welcome_message,
};
use sealog_proto::health::health_check_response::ServingStatus;
use sealog_tests::client::{Client, failure, id_of, sequence_id};
use sealog_tests::fixtures::{Heard, Member, Person, hex, random};
use tokio::time::{Instant, sleep};

use follow::{Follower, Kind};

const DEFAULT_URL: &str = "http://127.0.0.1:8787";
const USAGE: &str = "usage: demo [--url URL] [--static]
  --url URL   of the backend; the default is http://127.0.0.1:8787
  --static    both follow their topics over SubscribeStatic instead of Subscribe";
/// Messages that each person sends.
const ROUNDS: usize = 10;
/// How long an address may take to resolve, once its update is stored.
const LOOKUP_LAG: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> ExitCode {
    let (url, kind) = match arguments() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("demo: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&url, kind).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\ndemo failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The backend's URL, and how to follow topics; `None` when help was asked for.
fn arguments() -> anyhow::Result<Option<(String, Kind)>> {
    let (mut url, mut kind) = (DEFAULT_URL.to_owned(), Kind::Bidirectional);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--url" => url = arguments.next().context("--url needs a URL")?,
            "--static" => kind = Kind::Static,
            "-h" | "--help" => return Ok(None),
            other => bail!("unknown argument `{other}`"),
        }
    }
    Ok(Some((url, kind)))
}

async fn run(url: &str, kind: Kind) -> anyhow::Result<()> {
    let client = Client::new(url)?;
    check_health(&client, url).await?;

    step("Two people make their keys");
    let (alice, bob) = (Person::new("Alice")?, Person::new("Bob")?);
    for person in [&alice, &bob] {
        say(format!("{} is installation {}", person.name(), short(person.installation_key())));
    }

    step(
        "Both register: their wallets found an inbox each and grant it an installation, which brings a key package",
    );
    for person in [&alice, &bob] {
        let ids = publish(&client, vec![person.register(), person.key_package()?]).await?;
        say(format!(
            "{}'s inbox {} is stored as envelope {}, the key package as {}",
            person.name(),
            short_text(&person.inbox().id),
            ids[0],
            ids[1]
        ));
    }

    step("What is not valid is refused");
    refused_key_packages(&client, &alice, &bob).await?;

    step("Both claim a handle");
    let (alice_handle, bob_handle) =
        (claim_handle(&client, &alice).await?, claim_handle(&client, &bob).await?);
    refused_claim(&client, &alice, &bob_handle).await?;

    step("They find each other");
    find(&client, &alice, &bob, &bob_handle).await?;
    find(&client, &bob, &alice, &alice_handle).await?;

    step("Alice fetches the newest key package of Bob's installation");
    let package = newest_key_package(&client, &alice, &bob).await?;
    say("openmls checked its signatures and its lifetime");

    let over = if kind == Kind::Static { "SubscribeStatic" } else { "Subscribe" };
    step(&format!("Bob waits for Welcomes, over {over}"));
    let mut bob_hears = Follower::open(url, kind, bob.welcome_topic(), 0).await?;
    say("the stream has started");

    step("Alice creates a group and adds Bob");
    let mut alice_seat = alice.create_group(ENCRYPTED)?;
    say(format!("what is said in the group lies on the topic {}", hex(alice_seat.topic().as_bytes())));
    let invitation = alice_seat.invite(&[package])?;
    let ids = publish(&client, [vec![invitation.commit], invitation.welcomes].concat()).await?;
    say(format!("commit and Welcome are stored together, as envelopes {} and {}", ids[0], ids[1]));
    alice_seat.confirm()?;

    step("Bob hears of the Welcome and joins");
    let mut bob_seat = join(&mut bob_hears, &bob).await?;
    ensure!(bob_seat.topic() == alice_seat.topic(), "Bob joined another group than Alice created");
    say(format!("Bob is in the group, epoch {}", bob_seat.epoch()));

    // Alice has processed her own commit, and Bob starts in the epoch that it made: both follow the group from there.
    bob_hears.add(bob_seat.topic(), ids[0]).await?;
    let mut alice_hears = Follower::open(url, kind, alice_seat.topic(), ids[0]).await?;
    step(&format!("{ROUNDS} messages each way; both follow the group over {over}"));
    for round in 1..=ROUNDS {
        let text = format!("Hello Bob, this is number {round}.");
        let id = publish(&client, vec![alice_seat.say(&text)?]).await?[0];
        say(format!("Alice sends, envelope {id}: {text}"));
        hear(&mut bob_hears, &mut bob_seat, "Bob", &text).await?;

        let text = format!("Hello Alice, number {round} back to you.");
        let id = publish(&client, vec![bob_seat.say(&text)?]).await?[0];
        say(format!("Bob sends, envelope {id}: {text}"));
        hear(&mut alice_hears, &mut alice_seat, "Alice", &text).await?;
    }

    println!("\nDone: {} messages were sent, delivered in order and decrypted.", 2 * ROUNDS);
    Ok(())
}

async fn check_health(client: &Client, url: &str) -> anyhow::Result<()> {
    println!("Backend: {url}");
    let answer = client.health("").await.map_err(plain);
    let status = answer.map_err(|error| {
        anyhow!("no answer ({error}). Start the backend with `scripts/dev` in another terminal, or name one with --url")
    })?;
    ensure!(status == ServingStatus::Serving, "the backend at {url} says that it is not serving");
    say("it is serving");
    Ok(())
}

async fn publish(client: &Client, envelopes: Vec<ClientEnvelope>) -> anyhow::Result<Vec<u64>> {
    let count = envelopes.len();
    let metas = client.publish(envelopes).await.map_err(plain).context("a publish failed")?;
    ensure!(metas.len() == count, "{} answers for {count} envelopes", metas.len());
    Ok(metas.iter().map(sequence_id).collect())
}

/// An expired, a tampered and a foreign-signed key package: none of them is stored.
async fn refused_key_packages(client: &Client, owner: &Person, other: &Person) -> anyhow::Result<()> {
    let expired = owner.key_package_with(Lifetime::init(0, 1))?;
    let mut tampered = owner.key_package()?;
    if let Some(Payload::KeyPackage(package)) = &mut tampered.payload {
        let mut bytes = package.key_package_tls_serialized.to_vec();
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        package.key_package_tls_serialized = bytes.into();
    }
    let foreign = owner.key_package_signed_by(other)?;
    for (what, package) in [("an expired", expired), ("a tampered", tampered), ("a foreign-signed", foreign)]
    {
        let told = refusal(client, package, Reason::InvalidKeyPackage).await?;
        say(format!("{what} key package: {told}"));
    }
    Ok(())
}

/// Claims a handle that is new with every run, and returns it.
async fn claim_handle(client: &Client, person: &Person) -> anyhow::Result<String> {
    let handle =
        format!("{}.{:08}", person.name().to_lowercase(), u32::from_be_bytes(random()) % 100_000_000);
    let id = publish(client, vec![person.inbox().claim(&handle)]).await?[0];
    say(format!("{} is now {handle}, by envelope {id}", person.name()));
    Ok(handle)
}

async fn refused_claim(client: &Client, person: &Person, taken: &str) -> anyhow::Result<()> {
    let told = refusal(client, person.inbox().claim(taken), Reason::HandleTaken).await?;
    say(format!("{} cannot have {taken} too: {told}", person.name()));
    Ok(())
}

/// What the backend says to an envelope that it must refuse for this reason.
async fn refusal(client: &Client, envelope: ClientEnvelope, reason: Reason) -> anyhow::Result<String> {
    let Err(status) = client.publish_one(envelope).await else {
        bail!("an envelope was stored that should have been refused with {}", reason.as_str_name());
    };
    let Some(failure) = failure(&status) else { return Err(plain(status)) };
    let told = failure.reason.as_str_name();
    ensure!(failure.reason == reason, "refused with {told} instead of {}", reason.as_str_name());
    Ok(told.to_owned())
}

/// Resolves a person's handle, as it may be typed, and the address of their wallet, to their inbox.
async fn find(client: &Client, seeker: &Person, sought: &Person, handle: &str) -> anyhow::Result<()> {
    let typed = handle.to_uppercase();
    let address = sought.inbox().wallet.text();
    let (inbox, seeker, sought) = (&sought.inbox().id, seeker.name(), sought.name());
    let start = Instant::now();
    loop {
        let found = client
            .inbox_ids(&[(&typed, IdentifierKind::Handle), (&address, IdentifierKind::Ethereum)])
            .await
            .map_err(plain)
            .context("GetInboxIds failed")?;
        ensure!(found.len() == 2, "{} answers to two questions", found.len());
        ensure!(found[0].as_ref() == Some(inbox), "{typed} does not resolve to {sought}'s inbox");
        if found[1].as_ref() == Some(inbox) {
            let address = short_text(&address);
            say(format!("{seeker} finds {sought}'s inbox by {typed} and by the address {address}"));
            return Ok(());
        }
        // Addresses follow their update at a distance (API-270).
        ensure!(start.elapsed() < LOOKUP_LAG, "the address of {sought}'s wallet resolves to {:?}", found[1]);
        sleep(Duration::from_millis(50)).await;
    }
}

async fn newest_key_package(client: &Client, reader: &Person, owner: &Person) -> anyhow::Result<KeyPackage> {
    let topic = owner.key_package_topic();
    let results = client
        .query_newest(std::slice::from_ref(&topic), true)
        .await
        .map_err(plain)
        .context("QueryNewest failed")?;
    let result = results
        .into_iter()
        .find(|result| result.topic.as_ref().is_some_and(|named| named.topic == *topic.as_bytes()))
        .context("QueryNewest does not know the key package that was just published")?;
    let Some(Payload::KeyPackage(package)) = result.envelope.and_then(|envelope| envelope.payload) else {
        bail!("QueryNewest answered with something else than a key package");
    };
    let package = reader.check_key_package(&package.key_package_tls_serialized)?;
    let key = package.leaf_node().signature_key().as_slice();
    ensure!(key == owner.installation_key(), "the key package belongs to another installation");
    Ok(package)
}

async fn join<'p>(hears: &mut Follower, person: &'p Person) -> anyhow::Result<Member<'p>> {
    let found = hears.next().await?;
    say(format!("{} hears of a Welcome, envelope {}", person.name(), id_of(&found)));
    let Some(Payload::WelcomeMessage(welcome)) = payload(&found) else { bail!("not a Welcome") };
    let Some(welcome_message::Version::V1(v1)) = &welcome.version else { bail!("not an inline Welcome") };
    person.join(&v1.data, ENCRYPTED).context("openmls refused the Welcome")
}

/// Waits for the other person's next message, which must be the one that they just sent.
async fn hear(hears: &mut Follower, seat: &mut Member<'_>, who: &str, expected: &str) -> anyhow::Result<()> {
    loop {
        let envelope = hears.next().await?;
        let id = id_of(&envelope);
        let Some(Payload::GroupMessage(message)) = payload(&envelope) else { bail!("not a group message") };
        let content = seat.hear(&message.data).with_context(|| format!("envelope {id} does not decrypt"))?;
        let Heard::Text(text) = content else { continue }; // one's own message, come back
        ensure!(text == expected, "out of order: {text}");
        say(format!("{who} reads envelope {id}: {text}"));
        return Ok(());
    }
}

fn payload(envelope: &ServerEnvelope) -> Option<&Payload> {
    envelope.envelope.as_ref()?.payload.as_ref()
}

/// Code and message of a status, without its headers.
#[allow(clippy::needless_pass_by_value)] // it stands in map_err
fn plain(status: tonic::Status) -> anyhow::Error {
    anyhow!("{:?}: {}", status.code(), status.message())
}

/// The first bytes of a key or an id, enough to tell two apart.
fn short(bytes: &[u8]) -> String {
    short_text(&hex(bytes))
}

fn short_text(text: &str) -> String {
    text.chars().take(8).chain(['…']).collect()
}

fn step(title: &str) {
    println!("\n{title}");
}

fn say(line: impl AsRef<str>) {
    println!("  {}", line.as_ref());
}
