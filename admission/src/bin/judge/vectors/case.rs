//! Reading a case: every field that is asked for is there and has its type, or the case is a mismatch.

use std::fmt::{Debug, Display};

use base16ct::mixed;
use sealog_admission::Rejection;
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

    /// The cases of a list; each is called by its name, or else by its place.
    pub(super) fn list(&self, field: &str, report: &mut Report) -> Vec<Case<'a>> {
        let cases = cases(&format!("{}.{field}", self.name), &self.value[field]);
        if cases.is_empty() {
            report.mismatches.push(format!("{}: `{field}` is no list of cases", self.name));
        }
        cases
    }

    /// The cases of a group that is itself a list.
    pub(super) fn items(&self, report: &mut Report) -> Vec<Case<'a>> {
        let cases = cases(&self.name, self.value);
        if cases.is_empty() {
            report.mismatches.push(format!("{}: no list of cases", self.name));
        }
        cases
    }

    /// Any list beside the known ones would be cases that nobody judges.
    pub(super) fn has_no_list_but(&self, known: &[&str], report: &mut Report) {
        for (field, value) in self.value.as_object().into_iter().flatten() {
            if value.is_array() && !known.contains(&field.as_str()) {
                report.mismatches.push(format!("{}: the list `{field}` is not known", self.name));
            }
        }
    }

    pub(super) fn text(&self, field: &str) -> Result<&'a str, String> {
        self.value[field].as_str().ok_or_else(|| format!("`{field}` is no string"))
    }

    /// As [`text`](Self::text); null or missing is `None`.
    pub(super) fn optional_text(&self, field: &str) -> Result<Option<&'a str>, String> {
        if self.value[field].is_null() { Ok(None) } else { self.text(field).map(Some) }
    }

    pub(super) fn hex(&self, field: &str) -> Result<Vec<u8>, String> {
        mixed::decode_vec(self.text(field)?).map_err(|_| format!("`{field}` is no hexadecimal"))
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
        if self.value[field].is_null() { Ok(None) } else { self.number(field).map(Some) }
    }

    /// Compares the verdict with `expect`, and with `reason` where one is stated. Returns what was accepted.
    pub(super) fn expect<T>(&self, verdict: Verdict<T>) -> Result<Option<T>, String> {
        let expected = self.text("expect")?;
        let (got, why) = match &verdict {
            Verdict::Accept(_) => ("accept", String::new()),
            Verdict::Reject(rejection) => ("reject", format!(" ({rejection})")),
            Verdict::Unavailable => ("unavailable", String::new()),
        };
        same("expect", got, expected).map_err(|mismatch| mismatch + &why)?;
        if let (Verdict::Reject(rejection), false) = (&verdict, self.value["reason"].is_null()) {
            let got = rejection.reason().as_str_name();
            same("reason", got, self.text("reason")?).map_err(|mismatch| mismatch + &why)?;
        }
        Ok(match verdict {
            Verdict::Accept(accepted) => Some(accepted),
            Verdict::Reject(_) | Verdict::Unavailable => None,
        })
    }
}

/// What came of a case.
pub(super) enum Verdict<T> {
    Accept(T),
    Reject(Rejection),
    Unavailable,
}

impl<T> From<Result<T, Rejection>> for Verdict<T> {
    fn from(result: Result<T, Rejection>) -> Self {
        result.map_or_else(Self::Reject, Self::Accept)
    }
}

fn cases<'a>(group: &str, list: &'a Value) -> Vec<Case<'a>> {
    let named = |(place, value): (usize, &'a Value)| {
        let name = value["name"].as_str().map_or_else(|| format!("#{place}"), |name| format!("{name:?}"));
        Case { name: format!("{group} {name}"), value }
    };
    list.as_array().into_iter().flatten().enumerate().map(named).collect()
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
