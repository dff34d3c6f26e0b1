//! API-211 over arbitrary envelopes: one value, one encoding, one hash.

mod support;

use bytes::Bytes;
use proptest::prelude::*;
use prost::Message;
use sealog_proto::backend::ClientEnvelope;
use sealog_proto::canonical::Canonical;
use sha2::{Digest, Sha256};
use support::rewrite::{Choices, Schema, rewrite};
use support::values;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Nothing is lost: every `bytes` field comes back byte for byte, and presence stays presence.
    #[test]
    fn api_211_decoding_what_is_stored_gives_the_value_back(envelope in values::envelope()) {
        let canonical = Canonical::of(&envelope);
        prop_assert_eq!(&canonical.hash[..], &Sha256::digest(&canonical.body)[..]);
        prop_assert_eq!(ClientEnvelope::decode(canonical.body), Ok(envelope));
    }

    /// Unknown fields, longer varints, another order of fields, a message in two pieces and values that a later
    /// one replaces: all of it decodes to the same value, so all of it gets the same bytes and the same hash.
    #[test]
    fn api_211_every_encoding_of_a_value_has_one_canonical_form(
        envelope in values::envelope(),
        choices in proptest::collection::vec(any::<u8>(), 1..200),
    ) {
        let canonical = Canonical::of(&envelope);
        let schema = Schema::load();
        let name = ".xmtp.backend.v1.ClientEnvelope";
        let wire = rewrite(&schema, name, &canonical.body, &mut Choices::new(choices));
        let decoded = ClientEnvelope::decode(Bytes::from(wire));
        prop_assert_eq!(decoded.as_ref(), Ok(&envelope));
        prop_assert_eq!(Canonical::of(&decoded.unwrap()), canonical);
    }
}
