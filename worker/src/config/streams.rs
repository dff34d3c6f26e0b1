//! The settings of streams.

use sealog_objects::{Rate, StreamLimits};

use super::{ConfigError, Limits, Settings};

/// The shortest interval: each idle stream wakes its object once in it.
const MIN_INTERVAL_MS: u64 = 100;
/// The longest: a day.
const MAX_INTERVAL_MS: u64 = 86_400_000;
/// The most frames of a kind, in a second or at once.
const MAX_RATE: u64 = 100_000;

impl Settings {
    pub(super) fn streams(&mut self, limits: &Limits) -> Result<StreamLimits, ConfigError> {
        let streams = StreamLimits {
            max_update_adds: self.count("MAX_UPDATE_ADDS", 100_000)?,
            max_update_removes: self.count("MAX_UPDATE_REMOVES", 100_000)?,
            max_stream_topics: self.count("MAX_STREAM_TOPICS", 100_000)?,
            max_static_topics: self.count("MAX_STATIC_TOPICS", 10_000)?,
            updates: Rate {
                per_second: self.limit("MAX_UPDATE_FRAMES_PER_SECOND", 10, MAX_RATE)?,
                burst: self.limit("MAX_UPDATE_BURST", 100, MAX_RATE)?,
            },
            pings: Rate {
                per_second: self.limit("MAX_PING_FRAMES_PER_SECOND", 10, MAX_RATE)?,
                burst: self.limit("MAX_PING_BURST", 100, MAX_RATE)?,
            },
            max_request_bytes: limits.publish.max_request_bytes,
            max_response_bytes: limits.publish.max_response_bytes,
            keepalive_interval_ms: self.interval("KEEPALIVE_INTERVAL_MS", 30_000)?,
            max_pong_wait_ms: self.interval("MAX_PONG_WAIT_MS", 90_000)?,
        };
        if streams.max_pong_wait_ms <= streams.keepalive_interval_ms {
            return Err(ConfigError::Contradiction(
                "MAX_PONG_WAIT_MS",
                format!("must be greater than KEEPALIVE_INTERVAL_MS, {}", streams.keepalive_interval_ms),
            ));
        }
        Ok(streams)
    }

    fn interval(&mut self, name: &'static str, default: u32) -> Result<u32, ConfigError> {
        let (min, max) = (MIN_INTERVAL_MS, MAX_INTERVAL_MS);
        let number = self.number(name, default.into(), min, max)?;
        u32::try_from(number).map_err(|_| ConfigError::Number { name, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{blames, read, read_with};
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_published_table() {
        assert_eq!(read(&[("LOG_PARTITIONS", "8")]).unwrap().streams, StreamLimits::default());
    }

    #[test]
    fn every_limit_is_a_setting() {
        let streams = |name, value| read_with(name, value).unwrap().streams;
        assert_eq!(streams("KEEPALIVE_INTERVAL_MS", "1000").keepalive_interval_ms, 1_000);
        assert_eq!(streams("MAX_PONG_WAIT_MS", "60000").max_pong_wait_ms, 60_000);
        assert_eq!(streams("MAX_UPDATE_ADDS", "7").max_update_adds, 7);
        assert_eq!(streams("MAX_UPDATE_REMOVES", "7").max_update_removes, 7);
        assert_eq!(streams("MAX_STREAM_TOPICS", "7").max_stream_topics, 7);
        assert_eq!(streams("MAX_STATIC_TOPICS", "7").max_static_topics, 7);
        assert_eq!(streams("MAX_UPDATE_FRAMES_PER_SECOND", "7").updates, Rate { per_second: 7, burst: 100 });
        assert_eq!(streams("MAX_UPDATE_BURST", "7").updates, Rate { per_second: 10, burst: 7 });
        assert_eq!(streams("MAX_PING_FRAMES_PER_SECOND", "7").pings, Rate { per_second: 7, burst: 100 });
        assert_eq!(streams("MAX_PING_BURST", "7").pings, Rate { per_second: 10, burst: 7 });
        assert_eq!(streams("MAX_REQUEST_BYTES", "20000000").max_request_bytes, 20_000_000);
        assert_eq!(streams("MAX_RESPONSE_BYTES", "20000000").max_response_bytes, 20_000_000);
    }

    #[test]
    fn conf_065_every_refusal_names_the_setting() {
        for name in ["KEEPALIVE_INTERVAL_MS", "MAX_PONG_WAIT_MS", "MAX_STREAM_TOPICS", "MAX_PING_BURST"] {
            assert!(blames(read_with(name, "0"), name), "{name}");
        }
        assert!(blames(read_with("MAX_PONG_WAIT_MS", "30000"), "MAX_PONG_WAIT_MS"));
        assert!(read_with("MAX_PONG_WAIT_MS", "30001").is_ok());
    }
}
