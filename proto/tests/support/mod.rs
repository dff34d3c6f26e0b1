//! What the property tests share.

pub(crate) mod rewrite;
pub(crate) mod values;
