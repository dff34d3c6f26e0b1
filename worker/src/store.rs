//! The objects as the services see them: the deployment's shape is checked before the first call, and failures are
//! logged.

use std::{cell::Cell, collections::BTreeMap, time::Duration};

use sealog_log::coordinator::Part;
use sealog_objects::{CallError, NewSession, Objects, Published};
use sealog_proto::{
    internal::{
        AssociateReply, AssociateRequest, HistoryReply, HistoryRequest, InboxesReply, InboxesRequest,
        JoinRequest, KnownReply, KnownRequest, LookupReply, LookupRequest, NewestReply, NewestRequest,
        ReadReply, ReadRequest, failure::Kind,
    },
    status::Code,
};
use worker::console_error;

use crate::error::Status;

/// Calls the objects of the deployment.
#[derive(Debug)]
pub struct Store {
    objects: Objects,
    log_partitions: u32,
    directory_partitions: u32,
    joined: Cell<bool>,
}

impl Store {
    /// A store over so many log partitions and Directories.
    pub fn new(objects: Objects, log_partitions: u32, directory_partitions: u32) -> Self {
        Self { objects, log_partitions, directory_partitions, joined: Cell::new(false) }
    }

    /// Stores the part of each participant, all or none. Idempotent.
    pub async fn publish(&self, parts: Vec<Part>, patience: Duration) -> Result<Published, Status> {
        self.join().await?;
        logged(self.objects.publish(parts, patience).await)
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

    /// Reads identity logs from one partition.
    pub async fn history(&self, partition: u32, request: HistoryRequest) -> Result<HistoryReply, Status> {
        self.join().await?;
        logged(self.objects.history(partition, request).await)
    }

    /// Asks one partition which envelopes are stored.
    pub async fn known(&self, partition: u32, request: KnownRequest) -> Result<KnownReply, Status> {
        self.join().await?;
        logged(self.objects.known(partition, request).await)
    }

    /// Lists inboxes of one partition.
    pub async fn inboxes(&self, partition: u32, request: InboxesRequest) -> Result<InboxesReply, Status> {
        self.join().await?;
        logged(self.objects.inboxes(partition, request).await)
    }

    /// Looks identifiers up at one Directory.
    pub async fn lookup(&self, directory: u32, request: LookupRequest) -> Result<LookupReply, Status> {
        self.join().await?;
        logged(self.objects.lookup(directory, request).await)
    }

    /// Tells one Directory what identity updates did. Idempotent.
    pub async fn associate(
        &self,
        directory: u32,
        request: AssociateRequest,
    ) -> Result<AssociateReply, Status> {
        self.join().await?;
        logged(self.objects.associate(directory, request).await)
    }

    /// The closed allocation boundary (API-203).
    pub async fn boundary(&self) -> Result<u64, Status> {
        self.join().await?;
        Ok(logged(self.objects.boundary().await)?.boundary)
    }

    /// An object for a new stream.
    pub async fn new_session(&self) -> Result<NewSession, Status> {
        self.join().await?;
        logged(self.objects.new_session())
    }

    /// Whether the deployment was created with as many partitions as are set. Fixes nothing where it has no number yet: who
    /// only asks for its health must not decide how it is built.
    pub async fn check_shape(&self) -> Result<(), Status> {
        if self.joined.get() {
            return Ok(());
        }
        let stored = logged(self.objects.join(JoinRequest::default()).await)?;
        self.compare(stored.log_partitions, stored.directory_partitions)
    }

    /// Checks once that the deployment was created with as many partitions as are set: with another number, topics
    /// would be looked for where they are not. First requests that come together all ask; that harms nothing.
    async fn join(&self) -> Result<(), Status> {
        if self.joined.get() {
            return Ok(());
        }
        let request = JoinRequest {
            log_partitions: self.log_partitions,
            directory_partitions: self.directory_partitions,
        };
        let stored = logged(self.objects.join(request).await)?;
        self.compare(stored.log_partitions, stored.directory_partitions)
    }

    /// Compares what is set with what is stored, where 0 means nothing, and remembers that all of it agrees.
    fn compare(&self, log_partitions: u32, directory_partitions: u32) -> Result<(), Status> {
        for (setting, set, stored) in [
            ("LOG_PARTITIONS", self.log_partitions, log_partitions),
            ("DIRECTORY_PARTITIONS", self.directory_partitions, directory_partitions),
        ] {
            if stored != 0 && set != stored {
                return Err(other_shape(setting, set, stored));
            }
        }
        self.joined.set(log_partitions != 0 && directory_partitions != 0);
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

fn other_shape(setting: &str, set: u32, stored: u32) -> Status {
    Status::new(
        Code::Unavailable,
        format!(
            "{setting} is {set}, but this deployment was created with {stored} and what it keeps is spread over so \
             many objects: set {setting} back to {stored}, or create a new deployment"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_number_of_partitions_is_named_with_what_to_do() {
        let status = other_shape("LOG_PARTITIONS", 4, 8);
        assert_eq!(status.code, Code::Unavailable);
        for part in ["LOG_PARTITIONS is 4", "created with 8", "LOG_PARTITIONS back to 8"] {
            assert!(status.message.contains(part), "{part}");
        }
    }
}
