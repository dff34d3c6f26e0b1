//! Protobuf by hand: written and read by field number, independent of the generated types.

/// The value of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Varint(u64),
    Bytes(Vec<u8>),
}

/// A field of bytes, a string, or a message.
pub(crate) fn field(number: u32, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [varint(u64::from(number << 3 | 2)), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// A field of an integer, an enum or a bool.
pub(crate) fn number(number: u32, value: u64) -> Vec<u8> {
    [varint(u64::from(number << 3)), varint(value)].concat()
}

/// The shortest varint.
pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
    out
}

/// A varint stretched to `length` bytes, which decodes to the same value.
pub(crate) fn long_varint(value: u64, length: usize) -> Vec<u8> {
    let mut out = varint(value);
    assert!(out.len() < length && length <= 10);
    *out.last_mut().expect("a varint has a byte") |= 0x80;
    out.resize(length - 1, 0x80);
    out.push(0);
    out
}

/// The fields of a message, in the order in which they stand.
///
/// # Panics
/// When the bytes are no message of varints and length-delimited fields.
pub(crate) fn fields(mut bytes: &[u8]) -> Vec<(u32, Value)> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let tag = take_varint(&mut bytes);
        let number = u32::try_from(tag >> 3).expect("a field number");
        let value = match tag & 7 {
            0 => Value::Varint(take_varint(&mut bytes)),
            2 => {
                let length = usize::try_from(take_varint(&mut bytes)).expect("a length");
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(value.to_vec())
            }
            other => panic!("wire type {other} is not used in this API"),
        };
        out.push((number, value));
    }
    out
}

/// The bytes of a field that occurs once.
pub(crate) fn bytes_of(message: &[u8], number: u32) -> Vec<u8> {
    match only(message, number) {
        Value::Bytes(bytes) => bytes,
        other @ Value::Varint(_) => panic!("field {number} is {other:?}"),
    }
}

/// The number in a field that occurs once.
pub(crate) fn number_of(message: &[u8], number: u32) -> u64 {
    match only(message, number) {
        Value::Varint(value) => value,
        other @ Value::Bytes(_) => panic!("field {number} is {other:?}"),
    }
}

fn only(message: &[u8], number: u32) -> Value {
    let mut values = fields(message).into_iter().filter(|(n, _)| *n == number).map(|(_, value)| value);
    let value = values.next().unwrap_or_else(|| panic!("no field {number}"));
    assert!(values.next().is_none(), "field {number} occurs twice");
    value
}

fn take_varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (&byte, rest) = bytes.split_first().expect("a whole varint");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}
