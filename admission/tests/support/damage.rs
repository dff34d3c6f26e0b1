//! Objects that took damage.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Damage that a real object may take.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    Set(Index, u8),
    Flip(Index, u8),
    Cut(Index),
    Insert(Index, Vec<u8>),
    Remove(Index),
    Repeat(Index, Index),
}

pub(crate) fn damage() -> impl Strategy<Value = Vec<Damage>> {
    let one = prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, 1 << bit)),
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), vec(any::<u8>(), 1..5)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        any::<Index>().prop_map(Damage::Remove),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Repeat(from, to)),
    ];
    vec(one, 0..4)
}

/// Most fields that select anything stand at the start, so that half of the positions are taken from there.
fn position(index: Index, len: usize) -> usize {
    if index.index(2) == 0 { index.index(len.min(120)) } else { index.index(len) }
}

pub(crate) fn apply(mut bytes: Vec<u8>, damage: &[Damage]) -> Vec<u8> {
    for damage in damage {
        if bytes.is_empty() {
            break;
        }
        let len = bytes.len();
        match damage {
            Damage::Set(at, byte) => bytes[position(*at, len)] = *byte,
            Damage::Flip(at, bits) => bytes[position(*at, len)] ^= bits,
            Damage::Cut(at) => bytes.truncate(at.index(len)),
            Damage::Insert(at, more) => {
                let at = position(*at, len);
                bytes.splice(at..at, more.iter().copied());
            }
            Damage::Remove(at) => drop(bytes.remove(position(*at, len))),
            Damage::Repeat(from, to) => {
                let piece = bytes[from.index(len)..].to_vec();
                bytes.truncate(to.index(len));
                bytes.extend(piece);
            }
        }
    }
    bytes
}
