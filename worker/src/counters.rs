//! What this isolate has done so far, for the page for operators. Counts only: no topic, no key (OPS-014).

use std::{cell::RefCell, collections::BTreeMap};

use sealog_proto::status::Code;
use serde::Serialize;

/// Rises only; starts at nothing with each isolate.
#[derive(Debug, Default)]
pub struct Counters(RefCell<Counts>);

/// A copy of the counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Answered calls, by method and status code.
    pub requests: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    /// Calls to objects, by command.
    pub object_calls: BTreeMap<&'static str, u64>,
}

impl Counters {
    /// Counts an answered call.
    pub fn request(&self, method: &'static str, code: Code) {
        *self.0.borrow_mut().requests.entry(method).or_default().entry(name(code)).or_default() += 1;
    }

    /// Counts a call to an object.
    pub fn object_call(&self, command: &'static str) {
        *self.0.borrow_mut().object_calls.entry(command).or_default() += 1;
    }

    /// The counts now.
    pub fn counts(&self) -> Counts {
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
        counters.object_call("read");
        let counts = counters.counts();
        assert_eq!(counts.requests["Query"], BTreeMap::from([("OK", 2), ("Aborted", 1)]));
        assert_eq!(counts.object_calls, BTreeMap::from([("read", 1)]));
    }
}
