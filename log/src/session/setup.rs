//! What a session is created with.

use bytes::Bytes;

/// The settings of a session. They do not change while a stream lives: a deploy ends all streams.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The unique id of the Session object: what partitions know the stream by (rule 1).
    pub session: Bytes,
    /// The setting `LOG_PARTITIONS`.
    pub partitions: u32,
    /// The limits.
    pub limits: Limits,
}

/// Limits of a stream. The first group is published (CONF-069).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Topics that one Update may add.
    pub max_update_adds: usize,
    /// Topics that one Update may remove.
    pub max_update_removes: usize,
    /// Topics registered on a bidirectional stream after an Update.
    pub max_stream_topics: usize,
    /// Topics of a static stream.
    pub max_static_topics: usize,
    /// Update frames (API-258).
    pub updates: Rate,
    /// Ping frames of the client (API-258).
    pub pings: Rate,
    /// The longest request frame, in bytes; also what Updates that wait may hold together.
    pub max_request_bytes: usize,
    /// The longest response frame, in bytes.
    pub max_response_bytes: usize,

    /// The longest silence of a healthy stream, in milliseconds (API-255).
    pub keepalive_interval_ms: u32,
    /// How long a Pong may take, in milliseconds (API-257). Greater than the interval.
    pub max_pong_wait_ms: u32,
}

/// How often a frame may come: a token bucket, which starts full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens that come back in a second.
    pub per_second: u32,
    /// Tokens that the bucket holds.
    pub burst: u32,
}

impl Default for Limits {
    fn default() -> Self {
        let rate = Rate { per_second: 10, burst: 100 };
        Self {
            max_update_adds: 100_000,
            max_update_removes: 100_000,
            max_stream_topics: 100_000,
            max_static_topics: 10_000,
            updates: rate,
            pings: rate,
            max_request_bytes: 26_214_400,
            max_response_bytes: 26_214_400,
            keepalive_interval_ms: 30_000,
            max_pong_wait_ms: 90_000,
        }
    }
}
