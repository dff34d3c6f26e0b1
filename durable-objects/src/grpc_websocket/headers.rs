//! The header block: what a browser cannot send with a WebSocket's handshake.

/// More is no header block.
const MAX_BYTES: usize = 64 * 1024;

/// Why a header block is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadersError {
    /// It is too long.
    #[error("the header block has more than {MAX_BYTES} bytes: send fewer headers")]
    TooLong,
    /// It is something else.
    #[error(
        "the first message is no header block: send ASCII lines `name: value`, each ended by CR LF, before any frame"
    )]
    Malformed,
    /// The frames that follow would be compressed.
    #[error("the header grpc-encoding names a compression: send messages uncompressed (identity)")]
    Compressed,
}

/// Checks the header block of a call. No header of a stream says anything else that counts: a time limit of the client's
/// is its own business (API-259), and credentials are not asked for.
pub fn check_headers(block: &[u8]) -> Result<(), HeadersError> {
    if block.len() > MAX_BYTES {
        return Err(HeadersError::TooLong);
    }
    let text = std::str::from_utf8(block).ok().filter(|text| text.is_ascii());
    for line in text.ok_or(HeadersError::Malformed)?.split("\r\n").filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or(HeadersError::Malformed)?;
        if name.is_empty()
            || !name.bytes().all(is_token)
            || value.bytes().any(|b| b.is_ascii_control() && b != b'\t')
        {
            return Err(HeadersError::Malformed);
        }
        let value = value.trim();
        let is_identity = value.is_empty() || value.eq_ignore_ascii_case("identity");
        if name.eq_ignore_ascii_case("grpc-encoding") && !is_identity {
            return Err(HeadersError::Compressed);
        }
    }
    Ok(())
}

/// What a header's name is made of (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn header_blocks_of_known_clients_are_accepted() {
        for block in [
            "content-type: application/grpc-web+proto\r\nx-grpc-web: 1\r\n",
            "Content-Type:application/grpc-web\r\nauthorization: Bearer a:b",
            "grpc-encoding: identity\r\ngrpc-timeout: 5S\r\n",
            "Grpc-Encoding:  Identity \r\n",
            "x-empty:\r\n",
            "",
        ] {
            assert_eq!(check_headers(block.as_bytes()), Ok(()), "{block:?}");
        }
    }

    #[test]
    fn what_is_no_header_block_is_refused() {
        let grpc_frame: &[u8] = b"\0\0\0\0\0\0";
        for block in
            [grpc_frame, b"\x01", b"a", b": b", b"a b: c", b"a: b\nc: d", b"a: \0", "a: \u{fc}".as_bytes()]
        {
            assert_eq!(check_headers(block), Err(HeadersError::Malformed), "{block:?}");
        }
        assert_eq!(check_headers(&vec![b'a'; MAX_BYTES + 1]), Err(HeadersError::TooLong));
    }

    #[test]
    fn api_281_a_compression_is_refused() {
        for block in ["grpc-encoding: gzip", "Grpc-Encoding: identity,gzip\r\n"] {
            assert_eq!(check_headers(block.as_bytes()), Err(HeadersError::Compressed), "{block:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_headers_or_an_error(block: Vec<u8>) {
            let _ = check_headers(&block);
        }
    }
}
