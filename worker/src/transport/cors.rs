//! Who may call from a browser: everyone. Every answer says so, errors and preflights too (API-285).

/// Headers of every answer.
pub const ALWAYS: [(&str, &str); 3] = [
    ("access-control-allow-origin", "*"),
    ("access-control-expose-headers", "grpc-status, grpc-message, grpc-status-details-bin, x-request-id"),
    // Says what is accepted to a client whose compressed request was refused (API-281).
    ("grpc-accept-encoding", "identity"),
];

/// Methods that a preflight allows.
pub const METHODS: &str = "GET, POST, OPTIONS";

/// Seconds for which a browser may keep the answer to a preflight: the most that Chromium honours.
pub const MAX_AGE: &str = "7200";

/// Allowed whether a preflight asks for them or not.
const HEADERS: &str =
    "content-type, authorization, grpc-timeout, x-grpc-web, x-user-agent, traceparent, tracestate";

/// The headers that a preflight allows: those that it asks for, and those that clients of this API use (OPS-012).
pub fn allowed_headers(requested: Option<&str>) -> String {
    match requested.map(str::trim) {
        Some(requested) if !requested.is_empty() => format!("{requested}, {HEADERS}"),
        _ => HEADERS.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_285_a_browser_may_read_the_status() {
        let (_, exposed) = ALWAYS.iter().find(|(name, _)| *name == "access-control-expose-headers").unwrap();
        for name in ["grpc-status", "grpc-message", "grpc-status-details-bin", "x-request-id"] {
            assert!(exposed.split(", ").any(|header| header == name), "{name}");
        }
    }

    #[test]
    fn ops_012_requested_headers_are_mirrored_beside_the_known_ones() {
        let headers = allowed_headers(Some("x-anything"));
        for name in ["x-anything", "traceparent", "tracestate", "authorization"] {
            assert!(headers.split(", ").any(|header| header == name), "{name}");
        }
        assert_eq!(allowed_headers(None), allowed_headers(Some(" ")));
    }
}
