//! TOPIC-001 to TOPIC-003: the layout of topics, and where a topic lives.

use bytes::Bytes;
use sealog_proto::{Kind, Topic, TopicError, backend};

#[test]
fn topic_001_kind_bytes_and_lengths_are_fixed() {
    let layout = Kind::ALL.map(|kind| (kind, kind as u8, kind.identifier_len()));
    assert_eq!(
        layout,
        [
            (Kind::GroupMessage, 0, 16),
            (Kind::Welcome, 1, 32),
            (Kind::IdentityUpdate, 2, 32),
            (Kind::KeyPackage, 3, 32),
            (Kind::CommitLog, 4, 16),
        ]
    );
}

#[test]
fn topic_001_a_derived_topic_is_the_kind_byte_and_the_identifier() {
    for kind in Kind::ALL {
        let identifier: Vec<u8> = (1..).take(kind.identifier_len()).collect();
        let topic = Topic::derive(kind, &identifier).unwrap();
        assert_eq!(topic.kind(), kind);
        assert_eq!(topic.identifier(), identifier);
        assert_eq!(topic.as_bytes()[..], [&[kind as u8], identifier.as_slice()].concat());
        assert_eq!(Topic::parse(topic.as_bytes().clone()), Ok(topic.clone()));

        let message = backend::Topic::from(&topic);
        assert_eq!(message.topic, topic.as_bytes());
        assert_eq!(Topic::from_message(Some(&message)), Ok(topic));
    }
}

#[test]
fn topic_002_an_identifier_of_another_length_derives_nothing() {
    for kind in Kind::ALL {
        let expected = kind.identifier_len();
        for actual in (0..=expected * 2).filter(|&len| len != expected) {
            let error = TopicError::WrongLength { kind: kind as u8, expected, actual };
            assert_eq!(Topic::derive(kind, &vec![7; actual]), Err(error));
            let mut bytes = vec![7; actual + 1];
            bytes[0] = kind as u8;
            assert_eq!(Topic::parse(bytes.into()), Err(error));
        }
    }
}

#[test]
fn topic_003_unknown_kinds_and_missing_topics_are_refused() {
    for byte in 5..=u8::MAX {
        for len in [16, 32] {
            let mut bytes = vec![byte; len + 1];
            bytes[0] = byte;
            assert_eq!(Topic::parse(bytes.into()), Err(TopicError::UnknownKind(byte)));
        }
    }
    assert_eq!(Topic::parse(Bytes::new()), Err(TopicError::Empty));
    assert_eq!(Topic::from_message(Some(&backend::Topic::default())), Err(TopicError::Empty));
    assert_eq!(Topic::from_message(None), Err(TopicError::Empty));
}

#[test]
fn sec_051_a_topic_in_a_log_names_no_identifier() {
    let topic = Topic::derive(Kind::Welcome, &[0xab; 32]).unwrap();
    assert_eq!(format!("{topic:?}"), "Topic(Welcome)");
}

/// Where topics live. Rows are stored where this says, so that no number here may ever change.
///
/// The expected values come from another SHA-256: the first 8 bytes of the digest, big-endian, modulo the count.
#[test]
fn partitions_are_pinned() {
    let counting: Vec<u8> = (0..32).collect();
    let pinned: [(&[u8], [u32; 5]); 5] = [
        (&counting[..16], [0, 0, 6, 14, 350]),
        (&[0xff; 16], [0, 1, 1, 9, 777]),
        (&[0; 32], [0, 1, 7, 7, 175]),
        (&counting, [0, 0, 6, 6, 654]),
        (&[0xff; 32], [0, 1, 7, 15, 655]),
    ];
    for (identifier, expected) in pinned {
        for kind in Kind::ALL.into_iter().filter(|kind| kind.identifier_len() == identifier.len()) {
            let topic = Topic::derive(kind, identifier).unwrap();
            assert_eq!([1, 2, 8, 16, 1000].map(|count| topic.partition(count)), expected, "{kind:?}");
        }
    }
}
