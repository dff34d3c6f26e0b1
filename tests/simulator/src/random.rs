//! The one source of chance: everything that a run does follows from its seed.

/// xorshift64*, seeded through splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self((mixed ^ (mixed >> 31)) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// From 0 to `end`, without `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    /// Both ends included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Both ends included.
    pub(crate) fn small(&mut self, low: u32, high: u32) -> u32 {
        u32::try_from(self.between(low.into(), high.into())).expect("between two of its kind")
    }

    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("an index")
    }

    /// True in `per_mille` of a thousand cases.
    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }

    /// A difference in both directions.
    pub(crate) fn within(&mut self, most: u64) -> i64 {
        let magnitude = i64::try_from(self.below(most + 1)).expect("a small number");
        if self.chance(500) { magnitude } else { -magnitude }
    }

    pub(crate) fn bytes16(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next().to_be_bytes());
        bytes[8..].copy_from_slice(&self.next().to_be_bytes());
        bytes
    }
}
