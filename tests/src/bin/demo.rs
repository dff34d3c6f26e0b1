//! Two people chat through a running backend: `demo [--url URL]`.
//!
//! Everything is real: keys and MLS objects by openmls, the calls by tonic over gRPC-Web. Each run makes new people, so
//! that it can be repeated against the same backend.

use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail, ensure};
use openmls::prelude::{KeyPackage, PURE_CIPHERTEXT_WIRE_FORMAT_POLICY as ENCRYPTED};
use sealog_proto::backend::{ClientEnvelope, ServerEnvelope, client_envelope::Payload, welcome_message};
use sealog_proto::{Topic, health::health_check_response::ServingStatus};
use sealog_tests::client::{Client, id_of, sequence_id};
use sealog_tests::fixtures::{Heard, Member, Person, hex};

const DEFAULT_URL: &str = "http://127.0.0.1:8787";
const USAGE: &str = "usage: demo [--url URL]    (the default is http://127.0.0.1:8787)";
/// Messages that each person sends.
const ROUNDS: usize = 10;
/// Envelopes per page, small so that a history takes several pages.
const PAGE: u32 = 4;

#[tokio::main]
async fn main() -> ExitCode {
    let url = match url_from_arguments() {
        Ok(Some(url)) => url,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("demo: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&url).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\ndemo failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The backend's URL; `None` when help was asked for.
fn url_from_arguments() -> anyhow::Result<Option<String>> {
    let mut url = DEFAULT_URL.to_owned();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--url" => url = arguments.next().context("--url needs a URL")?,
            "-h" | "--help" => return Ok(None),
            other => bail!("unknown argument `{other}`"),
        }
    }
    Ok(Some(url))
}

async fn run(url: &str) -> anyhow::Result<()> {
    let client = Client::new(url)?;
    check_health(&client, url).await?;

    step("Two people make their keys");
    let (alice, bob) = (Person::new("Alice")?, Person::new("Bob")?);
    for person in [&alice, &bob] {
        say(format!("{} is installation {}", person.name(), short(person.installation_key())));
    }

    step("Both publish a key package");
    for person in [&alice, &bob] {
        let id = publish(&client, vec![person.key_package()?]).await?[0];
        say(format!("{}'s key package is stored as envelope {id}", person.name()));
    }

    step("Alice fetches Bob's newest key package");
    let package = newest_key_package(&client, &alice, &bob).await?;
    say("openmls checked its signatures and its lifetime");

    step("Alice creates a group and adds Bob");
    let mut alice_seat = alice.create_group(ENCRYPTED)?;
    say(format!("the group's id is {}", short(alice_seat.group_id())));
    let invitation = alice_seat.invite(&[package])?;
    let ids = publish(&client, [vec![invitation.commit], invitation.welcomes].concat()).await?;
    say(format!("commit and Welcome are stored together, as envelopes {} and {}", ids[0], ids[1]));
    alice_seat.confirm()?;

    step("Bob looks for Welcomes and joins");
    let mut bob_seat = join(&client, &bob).await?;
    ensure!(bob_seat.topic() == alice_seat.topic(), "Bob joined another group than Alice created");
    say(format!("Bob is in the group, epoch {}", bob_seat.epoch()));

    // Alice has processed her own commit, and Bob starts in the epoch that it made: both read on from there.
    let (mut alice_at, mut bob_at) = (ids[0], ids[0]);
    step(&format!("Ten messages each way, {PAGE} envelopes to a page"));
    for round in 1..=ROUNDS {
        let text = format!("Hello Bob, this is number {round}.");
        let id = publish(&client, vec![alice_seat.say(&text)?]).await?[0];
        say(format!("Alice sends, envelope {id}: {text}"));
    }
    hear_all(&client, &mut bob_seat, "Bob", "Hello Bob", &mut bob_at).await?;
    for round in 1..=ROUNDS {
        let text = format!("Hello Alice, number {round} back to you.");
        let id = publish(&client, vec![bob_seat.say(&text)?]).await?[0];
        say(format!("Bob sends, envelope {id}: {text}"));
    }
    hear_all(&client, &mut alice_seat, "Alice", "Hello Alice", &mut alice_at).await?;

    println!("\nDone: {} messages were sent, read in order and decrypted.", 2 * ROUNDS);
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

async fn join<'p>(client: &Client, person: &'p Person) -> anyhow::Result<Member<'p>> {
    let found = client.read(&person.welcome_topic(), 0).await.map_err(plain).context("a Query failed")?;
    let [found] = found.as_slice() else { bail!("{} Welcomes instead of one", found.len()) };
    say(format!("{} found a Welcome, envelope {}", person.name(), id_of(found)));
    let Some(Payload::WelcomeMessage(welcome)) = payload(found) else { bail!("not a Welcome") };
    let Some(welcome_message::Version::V1(v1)) = &welcome.version else { bail!("not an inline Welcome") };
    person.join(&v1.data, ENCRYPTED).context("openmls refused the Welcome")
}

/// Reads the group from `position` page by page, and expects the other person's messages in their order.
async fn hear_all(
    client: &Client,
    seat: &mut Member<'_>,
    who: &str,
    greeting: &str,
    position: &mut u64,
) -> anyhow::Result<()> {
    let topic: Topic = seat.topic();
    let mut heard = 0;
    loop {
        let page = client
            .query(&[(topic.clone(), *position)], PAGE)
            .await
            .map_err(plain)
            .context("a Query failed")?;
        for envelope in &page.envelopes {
            let id = id_of(envelope);
            ensure!(id > *position, "envelope {id} came after envelope {position}");
            *position = id;
            let Some(Payload::GroupMessage(message)) = payload(envelope) else {
                bail!("not a group message")
            };
            let heard_now =
                seat.hear(&message.data).with_context(|| format!("envelope {id} does not decrypt"))?;
            let Heard::Text(text) = heard_now else { continue }; // one's own message, come back
            heard += 1;
            ensure!(text.starts_with(greeting) && number_in(&text) == Some(heard), "out of order: {text}");
            say(format!("{who} reads envelope {id}: {text}"));
        }
        if !page.continuation.unwrap_or_default().has_more {
            break;
        }
    }
    ensure!(heard == ROUNDS, "{who} read {heard} messages instead of {ROUNDS}");
    Ok(())
}

fn payload(envelope: &ServerEnvelope) -> Option<&Payload> {
    envelope.envelope.as_ref()?.payload.as_ref()
}

fn number_in(text: &str) -> Option<usize> {
    text.split(|c: char| !c.is_ascii_digit()).find_map(|digits| digits.parse().ok())
}

/// Code and message of a status, without its headers.
#[allow(clippy::needless_pass_by_value)] // it stands in map_err
fn plain(status: tonic::Status) -> anyhow::Error {
    anyhow!("{:?}: {}", status.code(), status.message())
}

/// The first bytes of a key or an id, enough to tell two apart.
fn short(bytes: &[u8]) -> String {
    format!("{}…", hex(&bytes[..bytes.len().min(4)]))
}

fn step(title: &str) {
    println!("\n{title}");
}

fn say(line: impl AsRef<str>) {
    println!("  {}", line.as_ref());
}
