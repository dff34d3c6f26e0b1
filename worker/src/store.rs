//! The objects as the services see them: the deployment's shape is checked before the first call, and failures are
//! logged.

use std::{cell::Cell, collections::BTreeMap, time::Duration};

use sealog_log::{coordinator::Part, participant};
use sealog_objects::{CallError, Objects, Published};
use sealog_proto::{
    internal::{JoinRequest, NewEnvelope, NewestReply, NewestRequest, ReadReply, ReadRequest, failure::Kind},
    status::Code,
};
use worker::console_error;

use crate::error::Status;

/// Calls the objects of the deployment.
#[derive(Debug)]
pub struct Store {
    objects: Objects,
    log_partitions: u32,
    joined: Cell<bool>,
}

impl Store {
    /// A store over `log_partitions` partitions.
    pub fn new(objects: Objects, log_partitions: u32) -> Self {
        Self { objects, log_partitions, joined: Cell::new(false) }
    }

    /// Stores the envelopes of each partition, all or none. Idempotent.
    pub async fn publish(
        &self,
        parts: Vec<(u32, Vec<NewEnvelope>)>,
        patience: Duration,
    ) -> Result<Published, Status> {
        self.join().await?;
        let parts = parts.into_iter().map(|(partition, envelopes)| Part {
            participant: participant::log(partition),
            envelopes,
            claims: Vec::new(),
        });
        logged(self.objects.publish(parts.collect(), patience).await)
    }

    /// Reads rows from one partition.
    pub async fn read(&self, partition: u32, request: ReadRequest) -> Result<ReadReply, Status> {
        self.join().await?;
        logged(self.objects.read(partition, request).await)
    }

    /// Reads newest rows from one partition.
    pub async fn newest(&self, partition: u32, request: NewestRequest) -> Result<NewestReply, Status> {
        self.join().await?;
        logged(self.objects.newest(partition, request).await)
    }

    /// The closed allocation boundary (API-203).
    pub async fn boundary(&self) -> Result<u64, Status> {
        self.join().await?;
        Ok(logged(self.objects.boundary().await)?.boundary)
    }

    /// Checks once that the deployment was created with as many partitions as are set: with another number, topics
    /// would be looked for where they are not. First requests that come together all ask; that harms nothing.
    async fn join(&self) -> Result<(), Status> {
        if self.joined.get() {
            return Ok(());
        }
        let request = JoinRequest { log_partitions: self.log_partitions, ..JoinRequest::default() };
        let stored = logged(self.objects.join(request).await)?.log_partitions;
        if stored != self.log_partitions {
            return Err(other_shape(self.log_partitions, stored));
        }
        self.joined.set(true);
        Ok(())
    }

    /// Calls to objects so far, by command.
    pub fn object_calls(&self) -> BTreeMap<&'static str, u64> {
        self.objects.calls()
    }
}

fn logged<T>(result: Result<T, CallError>) -> Result<T, Status> {
    result.map_err(|error| {
        if error.kind != Kind::Deadline {
            console_error!("a call to an object failed: {:?}: {}", error.kind, error.message);
        }
        error.into()
    })
}

fn other_shape(set: u32, stored: u32) -> Status {
    Status::new(
        Code::Unavailable,
        format!(
            "LOG_PARTITIONS is {set}, but this deployment was created with {stored} and its topics are spread over \
             so many objects: set LOG_PARTITIONS back to {stored}, or create a new deployment"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_number_of_partitions_is_named_with_what_to_do() {
        let status = other_shape(4, 8);
        assert_eq!(status.code, Code::Unavailable);
        for part in ["LOG_PARTITIONS is 4", "created with 8", "LOG_PARTITIONS back to 8"] {
            assert!(status.message.contains(part), "{part}");
        }
    }
}
