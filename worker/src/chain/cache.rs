//! What was answered before.

use std::num::NonZeroUsize;

use lru::LruCache;
use sha2::{Digest, Sha256};

use super::{At, Finding, Question};

/// Answers kept; then the one that was not asked for longest goes (SEC-042). At some 100 bytes each they take 1
/// MB of the 128 that an isolate has.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// Answers to questions about numbered blocks, valid and invalid alike (SEC-043). They stay until they are
/// displaced or the isolate ends, also when the chain is reorganised under them (SEC-044).
#[derive(Debug)]
pub(super) struct Answers(LruCache<Key, Finding>);

type Key = [u8; 32];

impl Answers {
    pub(super) fn new() -> Self {
        Self(LruCache::new(CAPACITY))
    }

    pub(super) fn get(&mut self, question: &Question, at: At) -> Option<Finding> {
        self.0.get(&key(question, at)?).copied()
    }

    pub(super) fn put(&mut self, question: &Question, at: At, finding: Finding) {
        if let Some(key) = key(question, at) {
            self.0.put(key, finding);
        }
    }
}

/// Precedes the number of a block. A question without one has no key, so that no key has another tag.
const HAS_BLOCK: u8 = 1;

/// Everything that the answer depends on: all parts of fixed length first, and the signature last, so that no
/// two questions are written alike (SEC-042). `None`: the head moves on, and an answer about it is worth
/// nothing to the next request.
fn key(question: &Question, at: At) -> Option<Key> {
    let At::Block(number) = at else { return None };
    let Question { chain, address, hash, signature } = question;
    let key = Sha256::new()
        .chain_update(chain.to_be_bytes())
        .chain_update(address)
        .chain_update(hash)
        .chain_update([HAS_BLOCK])
        .chain_update(number.to_be_bytes())
        .chain_update(signature);
    Some(key.finalize().into())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn question() -> Question {
        Question { chain: 1, address: [2; 20], hash: [3; 32], signature: Bytes::from_static(b"\x04\x05") }
    }

    #[test]
    fn sec_042_every_part_of_a_question_counts() {
        let mut answers = Answers::new();
        answers.put(&question(), At::Block(9), Finding::Valid);
        assert_eq!(answers.get(&question(), At::Block(9)), Some(Finding::Valid));
        for (other, at) in [
            (question(), At::Block(10)),
            (Question { chain: 2, ..question() }, At::Block(9)),
            (Question { address: [4; 20], ..question() }, At::Block(9)),
            (Question { hash: [4; 32], ..question() }, At::Block(9)),
            (Question { signature: Bytes::new(), ..question() }, At::Block(9)),
            (Question { signature: Bytes::from_static(b"\x04\x05\0"), ..question() }, At::Block(9)),
        ] {
            assert_eq!(answers.get(&other, at), None, "{other:?} at {at:?}");
        }
    }

    #[test]
    fn sec_043_both_verdicts_are_kept_and_those_about_the_head_are_not() {
        let mut answers = Answers::new();
        for (number, finding) in [(1, Finding::Valid), (2, Finding::Refused), (3, Finding::Reverted)] {
            answers.put(&question(), At::Block(number), finding);
            assert_eq!(answers.get(&question(), At::Block(number)), Some(finding));
            answers.put(&question(), At::Head(number + 10), finding);
            assert_eq!(answers.get(&question(), At::Head(number + 10)), None);
            assert_eq!(answers.get(&question(), At::Block(number + 10)), None);
            assert_eq!(
                answers.get(&question(), At::Head(number)),
                None,
                "a request without a block asks anew"
            );
        }
    }

    #[test]
    fn sec_042_the_answer_that_was_not_asked_for_longest_goes() {
        let mut answers = Answers::new();
        let most = CAPACITY.get() as u64;
        for number in 0..most {
            answers.put(&question(), At::Block(number), Finding::Valid);
        }
        answers.get(&question(), At::Block(0)).expect("all of them are kept");
        answers.put(&question(), At::Block(most), Finding::Valid);
        assert_eq!(answers.get(&question(), At::Block(1)), None);
        assert!(answers.get(&question(), At::Block(0)).is_some());
        assert!(answers.get(&question(), At::Block(most)).is_some());
    }
}
