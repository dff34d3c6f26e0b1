//! Other encodings of the same value: everything that protobuf allows a writer, and a canonical encoder forbids itself.
//!
//! Driven by the descriptors, so that a new field is covered on the day it is added.

use std::collections::{BTreeMap, VecDeque};

use prost::Message;
use prost::bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint, encode_varint};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};

/// Every message of the `.proto` files by its full name (with the leading dot).
pub(crate) struct Schema(BTreeMap<String, DescriptorProto>);

impl Schema {
    pub(crate) fn load() -> Self {
        let files = FileDescriptorSet::decode(sealog_proto::DESCRIPTORS).unwrap().file;
        let mut messages = BTreeMap::new();
        for file in files {
            let package = format!(".{}", file.package());
            file.message_type.iter().for_each(|message| collect(&package, message, &mut messages));
        }
        Self(messages)
    }

    fn field(&self, message: &str, number: u64) -> &FieldDescriptorProto {
        let fields = &self.0[message].field;
        fields.iter().find(|field| u64::try_from(field.number()) == Ok(number)).unwrap()
    }
}

fn collect(scope: &str, message: &DescriptorProto, into: &mut BTreeMap<String, DescriptorProto>) {
    let name = format!("{scope}.{}", message.name());
    message.nested_type.iter().for_each(|nested| collect(&name, nested, into));
    into.insert(name, message.clone());
}

/// Where the choices come from: proptest shrinks the bytes.
pub(crate) struct Choices {
    bytes: Vec<u8>,
    next: usize,
}

impl Choices {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        assert!(!bytes.is_empty());
        Self { bytes, next: 0 }
    }

    fn below(&mut self, count: usize) -> usize {
        let byte = self.bytes[self.next % self.bytes.len()];
        self.next += 1;
        usize::from(byte) % count
    }

    fn flip(&mut self) -> bool {
        self.below(2) == 1
    }
}

/// Encodes the value of `canonical` in another way.
pub(crate) fn rewrite(schema: &Schema, message: &str, canonical: &[u8], choices: &mut Choices) -> Vec<u8> {
    pieces(schema, message, canonical, choices).concat()
}

/// The encoded fields of a message in an order that yields the same value.
fn pieces(schema: &Schema, message: &str, mut canonical: &[u8], choices: &mut Choices) -> Vec<Vec<u8>> {
    // Fields of one number keep their order; the last of them wins, or they form a list.
    let mut queues: BTreeMap<u64, VecDeque<Vec<u8>>> = BTreeMap::new();
    while canonical.has_remaining() {
        let (number, wire_type) = decode_key(&mut canonical).unwrap();
        let number = u64::from(number);
        let field = schema.field(message, number);
        let queue = queues.entry(number).or_default();
        match wire_type {
            WireType::Varint => {
                let mut value = decode_varint(&mut canonical).unwrap();
                if choices.flip() {
                    queue.push_back([key(number, 0, choices), varint(value ^ 1, choices)].concat());
                }
                if field.r#type() == Type::Bool {
                    value <<= choices.below(8);
                }
                queue.push_back([key(number, 0, choices), varint(value, choices)].concat());
            }
            WireType::LengthDelimited => {
                let len = usize::try_from(decode_varint(&mut canonical).unwrap()).unwrap();
                let (value, rest) = canonical.split_at(len);
                canonical = rest;
                if field.r#type() != Type::Message {
                    if choices.flip() {
                        queue.push_back(delimited(number, b"decoy", choices));
                    }
                    queue.push_back(delimited(number, value, choices));
                    continue;
                }
                let parts = pieces(schema, field.type_name(), value, choices);
                // A message that comes twice is merged, unless it is an element of a list.
                let split = if field.label() != Label::Repeated && choices.flip() {
                    choices.below(parts.len() + 1)
                } else {
                    0
                };
                if split > 0 {
                    queue.push_back(delimited(number, &parts[..split].concat(), choices));
                }
                queue.push_back(delimited(number, &parts[split..].concat(), choices));
            }
            other => panic!("no field of an envelope has the wire type {other:?}"),
        }
    }
    interleave(queues, choices)
}

fn interleave(mut queues: BTreeMap<u64, VecDeque<Vec<u8>>>, choices: &mut Choices) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    while !queues.is_empty() {
        if choices.flip() {
            pieces.push(unknown_field(choices));
        }
        let number = *queues.keys().nth(choices.below(queues.len())).unwrap();
        let queue = queues.get_mut(&number).unwrap();
        pieces.push(queue.pop_front().unwrap());
        if queue.is_empty() {
            queues.remove(&number);
        }
    }
    pieces
}

/// A field that no message here has, of any wire type.
fn unknown_field(choices: &mut Choices) -> Vec<u8> {
    const NUMBER: u64 = 1_000;
    match choices.below(5) {
        0 => [key(NUMBER, 0, choices), varint(u64::MAX, choices)].concat(),
        1 => [key(NUMBER, 1, choices), vec![0xff; 8]].concat(),
        2 => delimited(NUMBER, &[0xff; 3], choices),
        3 => {
            let inside = delimited(1, b"in a group", choices);
            [key(NUMBER, 3, choices), inside, key(NUMBER, 4, choices)].concat()
        }
        _ => [key(NUMBER, 5, choices), vec![0xff; 4]].concat(),
    }
}

fn delimited(number: u64, value: &[u8], choices: &mut Choices) -> Vec<u8> {
    let len = u64::try_from(value.len()).unwrap();
    [key(number, 2, choices), varint(len, choices), value.to_vec()].concat()
}

fn key(number: u64, wire_type: u64, choices: &mut Choices) -> Vec<u8> {
    varint(number << 3 | wire_type, choices)
}

/// A varint of any length that a reader accepts.
fn varint(value: u64, choices: &mut Choices) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_varint(value, &mut bytes);
    for _ in 0..choices.below(4) {
        if bytes.len() < 10 {
            *bytes.last_mut().unwrap() |= 0x80;
            bytes.push(0);
        }
    }
    bytes
}
