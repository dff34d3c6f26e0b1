//! What this isolate has done so far, for the page for operators. Counts only: no topic, no key (OPS-014).

use std::{cell::RefCell, collections::BTreeMap};

use sealog_proto::status::Code;

/// Rises only; starts at nothing with each isolate.
#[derive(Debug, Default)]
pub struct Counters(RefCell<Requests>);

/// Answered calls, by method and status code.
pub type Requests = BTreeMap<&'static str, BTreeMap<&'static str, u64>>;

impl Counters {
    /// Counts an answered call.
    pub fn request(&self, method: &'static str, code: Code) {
        *self.0.borrow_mut().entry(method).or_default().entry(name(code)).or_default() += 1;
    }

    /// The counts now.
    pub fn requests(&self) -> Requests {
        self.0.borrow().clone()
    }
}

/// The name of a code as metrics spell it (OPS-017).
const fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_counted_under_its_name() {
        let counters = Counters::default();
        counters.request("Query", Code::Ok);
        counters.request("Query", Code::Ok);
        counters.request("Query", Code::Aborted);
        assert_eq!(counters.requests()["Query"], BTreeMap::from([("OK", 2), ("Aborted", 1)]));
    }
}
