//! What is signed (RFC 9420 section 5.1.2).

/// `SignContent`: the bytes that a signature over `content`, made for the purpose `label`, is over.
pub(crate) fn sign_content(label: &str, content: &[u8]) -> Vec<u8> {
    let label = ["MLS 1.0 ", label].concat();
    let mut bytes = Vec::with_capacity(4 + label.len() + 4 + content.len());
    write_vector(label.as_bytes(), &mut bytes);
    write_vector(content, &mut bytes);
    bytes
}

/// `opaque field<V>`.
///
/// # Panics
/// At 2^30 bytes, which no length can say. Contents come out of requests of some 25 MiB.
fn write_vector(content: &[u8], to: &mut Vec<u8>) {
    match u32::try_from(content.len()) {
        Ok(len @ 0..0x40) => to.extend(&len.to_be_bytes()[3..]),
        Ok(len @ 0x40..0x4000) => to.extend(&(len | 0x4000).to_be_bytes()[2..]),
        Ok(len @ 0x4000..0x4000_0000) => to.extend((len | 0x8000_0000).to_be_bytes()),
        _ => panic!("a vector of {} bytes", content.len()),
    }
    to.extend(content);
}
