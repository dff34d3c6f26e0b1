//! What the fuzz targets check, one module per decoder family.

pub mod admission;
pub mod identity;
pub mod chain;
pub mod session;
pub mod transport;
