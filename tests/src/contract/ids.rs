//! Every id of the API contract, in the order of its sections.

/// One requirement.
#[derive(Clone, Copy, Debug)]
pub struct Requirement {
    /// The number in API-nnn.
    pub id: u16,
    /// What it is about, in a few words.
    pub what: &'static str,
    /// Why there is no end-to-end test; `None` when there must be one.
    pub reason: Option<&'static str>,
}

const fn tested(id: u16, what: &'static str) -> Requirement {
    Requirement { id, what, reason: None }
}

const fn untested(id: u16, what: &'static str, reason: &'static str) -> Requirement {
    Requirement { id, what, reason: Some(reason) }
}

const CLIENT: &str = "a rule for clients, not for the backend";
const SDK: &str = "a rule for client SDKs; this repository has none";

/// The contract.
pub const REQUIREMENTS: &[Requirement] = &[
    // 1. Sequence ids, order, and visibility
    tested(286, "ids lie between 1 and 2^63 - 1"),
    tested(287, "no id is given twice, on any topic"),
    tested(288, "an envelope keeps its id"),
    tested(289, "a later publish gets greater ids, on every topic"),
    tested(201, "a read returns a prefix, in order"),
    tested(202, "Query reads its own writes"),
    tested(203, "the closed allocation boundary"),
    tested(291, "the boundary never falls"),
    // 2. The envelope
    tested(210, "field numbers, types and presence"),
    tested(211, "stored bytes and their hash"),
    tested(212, "the backend sets all metadata"),
    // 3. Publish
    tested(220, "all of a publish is stored, or nothing"),
    tested(224, "a failed answer proves no rollback"),
    tested(290, "a Query settles a publish that ended in OUT_OF_RANGE"),
    tested(221, "one entry per envelope, in order"),
    tested(222, "a duplicate gets the stored metadata"),
    tested(223, "a failure names the envelope and the reason"),
    tested(230, "each kind is parsed and checked as the table says"),
    tested(235, "key package shapes that must be accepted"),
    tested(231, "a verifier failure is no verdict"),
    tested(232, "one history, or ABORTED"),
    tested(233, "one update per inbox in a request"),
    tested(234, "the association log is bounded"),
    tested(296, "one inbox per handle"),
    tested(297, "reserved and short names are refused"),
    tested(298, "seven days between claims"),
    // 4. Query
    tested(240, "a page lies above the cursors, without holes"),
    tested(241, "the default limit and the ceiling"),
    tested(242, "a repeated topic is read from its lowest cursor"),
    tested(243, "key package topics are not paged"),
    tested(244, "the newest envelope of each topic"),
    tested(245, "results are matched by topic"),
    // 5. Subscribe
    tested(250, "Started comes first"),
    tested(251, "an invalid update fails the stream"),
    tested(252, "Applied acknowledges every update"),
    tested(253, "adds and removes are idempotent"),
    tested(254, "everything is delivered, in order, or the stream fails"),
    tested(255, "keepalive on an idle stream"),
    tested(256, "a Ping is answered"),
    tested(257, "a missed Pong closes the stream"),
    tested(258, "frame rates are bounded"),
    tested(259, "only the client ends a healthy stream"),
    tested(261, "catch-up starves nobody"),
    tested(260, "a static stream starts with its targets"),
    // 6. Identity reads
    tested(270, "identifiers resolve to the latest live association"),
    tested(299, "handles resolve to the inbox that claimed them"),
    tested(271, "one verdict per contract-wallet signature"),
    // 7. Bounds, errors, and transport
    tested(281, "each condition has its status code"),
    tested(282, "25 MiB are carried, more is refused"),
    tested(283, "an answer is complete, or it fails"),
    untested(284, "what a client repeats after which code", CLIENT),
    tested(285, "gRPC-Web and CORS (native gRPC on the same port: a gateway, later)"),
    // 8. Connection statistics
    untested(292, "API call statistics", SDK),
    untested(293, "identity call statistics", SDK),
    untested(294, "a text summary of the statistics", SDK),
    untested(295, "statistics can be cleared", SDK),
];
