//! Reading a case: every field that is asked for is there and has its type, or the case is a mismatch. What a case does
//! not state is not compared, and what it says beyond that (notes, the names of rules) is not looked at.

use std::fmt::{Debug, Display};

use base16ct::{lower, mixed};
use sealog_admission::Rejection;
use sealog_proto::backend::publish_error::Reason;
use serde_json::Value;

use super::Report;

/// A case, or a group of cases, with a name for the report.
pub(super) struct Case<'a> {
    pub(super) name: String,
    pub(super) value: &'a Value,
}

impl<'a> Case<'a> {
    pub(super) fn new(name: &str, value: &'a Value) -> Self {
        Self { name: name.to_owned(), value }
    }

    /// The cases of a list; each is called by its name, or else by its place. A file may hold a part of the cases, so
    /// that a list may be missing or empty.
    pub(super) fn list(&self, field: &str, report: &mut Report) -> Vec<Case<'a>> {
        match &self.value[field] {
            Value::Null => Vec::new(),
            list => Self::new(&format!("{}.{field}", self.name), list).items(report),
        }
    }

    /// The cases of a group that is itself a list.
    pub(super) fn items(&self, report: &mut Report) -> Vec<Case<'a>> {
        let Some(list) = self.value.as_array() else {
            report.mismatches.push(format!("{}: this is no list of cases", self.name));
            return Vec::new();
        };
        let named = |(place, value): (usize, &'a Value)| {
            let name = value["name"].as_str().map_or_else(|| format!("#{place}"), |name| format!("{name:?}"));
            Case { name: format!("{} {name}", self.name), value }
        };
        list.iter().enumerate().map(named).collect()
    }

    /// Any list beside the known ones would be cases that nobody judges.
    pub(super) fn has_no_list_but(&self, known: &[&str], report: &mut Report) {
        let Some(fields) = self.value.as_object() else {
            report.mismatches.push(format!("{}: this is no object with cases", self.name));
            return;
        };
        for (field, value) in fields {
            if value.is_array() && !known.contains(&field.as_str()) {
                report.mismatches.push(format!("{}: the list `{field}` is not known", self.name));
            }
        }
    }

    /// Whether the case says anything of this kind; null counts as nothing.
    pub(super) fn states(&self, field: &str) -> bool {
        !self.value[field].is_null()
    }

    pub(super) fn text(&self, field: &str) -> Result<&'a str, String> {
        self.value[field].as_str().ok_or_else(|| format!("`{field}` is no string"))
    }

    /// As [`text`](Self::text); null or missing is `None`.
    pub(super) fn optional_text(&self, field: &str) -> Result<Option<&'a str>, String> {
        self.states(field).then(|| self.text(field)).transpose()
    }

    /// Bytes as hexadecimal of either case, with `0x` before it or not.
    pub(super) fn hex(&self, field: &str) -> Result<Vec<u8>, String> {
        unhex(self.text(field)?).ok_or_else(|| format!("`{field}` is no hexadecimal"))
    }

    /// A number, or a string of its digits.
    pub(super) fn number(&self, field: &str) -> Result<u64, String> {
        let value = &self.value[field];
        value
            .as_u64()
            .or_else(|| value.as_str()?.parse().ok())
            .ok_or_else(|| format!("`{field}` is no unsigned number of 64 bits"))
    }

    /// As [`number`](Self::number); null or missing is `None`.
    pub(super) fn optional_number(&self, field: &str) -> Result<Option<u64>, String> {
        self.states(field).then(|| self.number(field)).transpose()
    }

    /// Compares a text with the one that is stated, if one is.
    pub(super) fn same_text(&self, field: &str, got: &str) -> Result<(), String> {
        self.optional_text(field)?.map_or(Ok(()), |expected| same(field, got, expected))
    }

    /// Compares bytes with those that are stated, if any are.
    pub(super) fn same_bytes(&self, field: &str, got: &[u8]) -> Result<(), String> {
        if !self.states(field) {
            return Ok(());
        }
        same(field, lower::encode_string(got), lower::encode_string(&self.hex(field)?))
    }

    /// Compares the verdict with `expect`, and with `reason` where one is stated. Returns what was accepted.
    pub(super) fn expect<T>(&self, verdict: Verdict<T>) -> Result<Option<T>, String> {
        self.compare(self.text("expect")?, verdict)
    }

    /// As [`expect`](Self::expect), with a verdict that the case need not state.
    pub(super) fn compare<T>(&self, expected: &str, verdict: Verdict<T>) -> Result<Option<T>, String> {
        let (got, why) = match &verdict {
            Verdict::Accept(_) => ("accept", String::new()),
            Verdict::Reject(_, why) => ("reject", format!(" ({why})")),
            Verdict::Unavailable => ("unavailable", String::new()),
        };
        same("expect", got, expected).map_err(|mismatch| mismatch + &why)?;
        if let Verdict::Reject(reason, _) = &verdict {
            self.same_text("reason", reason.as_str_name()).map_err(|mismatch| mismatch + &why)?;
        }
        Ok(match verdict {
            Verdict::Accept(accepted) => Some(accepted),
            Verdict::Reject(..) | Verdict::Unavailable => None,
        })
    }
}

/// What came of a case.
pub(super) enum Verdict<T> {
    Accept(T),
    /// With a text that says why.
    Reject(Reason, String),
    Unavailable,
}

impl<T> Verdict<T> {
    /// Of bytes that are no message of the kind: a publish with them is refused before it is looked at.
    pub(super) fn undecodable(error: &prost::DecodeError) -> Self {
        Self::Reject(Reason::MalformedPayload, error.to_string())
    }
}

impl<T> From<Rejection> for Verdict<T> {
    fn from(rejection: Rejection) -> Self {
        Self::Reject(rejection.reason(), rejection.to_string())
    }
}

impl<T> From<Result<T, Rejection>> for Verdict<T> {
    fn from(result: Result<T, Rejection>) -> Self {
        result.map_or_else(Self::from, Self::Accept)
    }
}

/// The bytes that hexadecimal of either case spells, with `0x` before it or not.
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    mixed::decode_vec(text.strip_prefix("0x").unwrap_or(text)).ok()
}

/// Whether what was computed is what the file says.
#[expect(clippy::needless_pass_by_value, reason = "called with temporaries, like an assertion")]
pub(super) fn same<T: PartialEq<U> + Debug, U: Debug>(
    what: impl Display,
    got: T,
    expected: U,
) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{what}: expected {expected:?}, got {got:?}")) }
}
