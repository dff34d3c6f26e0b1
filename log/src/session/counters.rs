//! What a session counts (stream-protocol, part 3). More than one in a hundred of the unusual is a defect.

/// Counts since the instance was made. The shell adds them up over all streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames sent to the client.
    pub frames: u64,
    /// Envelopes sent to the client.
    pub envelopes: u64,
    /// Items of pushes.
    pub items: u64,
    /// Of these, refused: for a watch that the session does not have.
    pub unwanted: u64,
    /// Of these, without rows.
    pub hints: u64,
    /// Of these, not delivered but pulled: the registration was current, and rows before the item's are missing.
    pub pulls_after_push: u64,
    /// Topics of pages.
    pub pages: u64,
    /// Of these, dropped because another registration had not been served (API-261).
    pub pages_dropped: u64,
    /// Instances that found a live socket.
    pub wakes: u64,
    /// Of these, ended the stream: memory held something that is lost.
    pub busy_restarts: u64,
    /// Of these, asked the partitions for the heads again.
    pub syncs: u64,
    /// Watches that a partition lacked when it was asked for heads again.
    pub sync_repairs: u64,
}

impl Counters {
    /// Adds the counts of another session.
    pub fn add(&mut self, other: &Self) {
        self.frames += other.frames;
        self.envelopes += other.envelopes;
        self.items += other.items;
        self.unwanted += other.unwanted;
        self.hints += other.hints;
        self.pulls_after_push += other.pulls_after_push;
        self.pages += other.pages;
        self.pages_dropped += other.pages_dropped;
        self.wakes += other.wakes;
        self.busy_restarts += other.busy_restarts;
        self.syncs += other.syncs;
        self.sync_repairs += other.sync_repairs;
    }
}
