//! Counts what an object committed, by reading the write-ahead log of its SQLite database.
//!
//! Locally each commit is one flush to the disk, the dearest thing that a publish does; so tests count commits.
//! The format is fixed (sqlite.org, "Database File Format", section 4): a header of 32 bytes with the salt at byte 16, then
//! frames of 24 bytes and a page. A frame belongs to the log while its salt is the header's; it ends a commit when its second
//! word, the size of the database after the commit, is not 0.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::{capnp, settings::Settings};

const HEADER_LEN: usize = 32;
const FRAME_HEADER_LEN: usize = 24;

/// How far the logs of the objects of one class had come at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark(BTreeMap<PathBuf, Log>);

/// One object's log: it starts anew, with a new salt, after its pages were copied to the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Log {
    salt: [u8; 8],
    commits: u64,
}

impl Mark {
    /// Reads the logs of all objects of `class` below the state directory.
    pub fn now(state: &Path, settings: &Settings, class: &str) -> Result<Self> {
        let mut logs = BTreeMap::new();
        for path in files(state, settings, class, "sqlite-wal")? {
            let log = read(&fs::read(&path)?).with_context(|| path.display().to_string())?;
            logs.insert(path, log);
        }
        Ok(Self(logs))
    }

    /// The commits of all objects between `earlier` and this mark.
    ///
    /// Fails when a log started anew in between (after about 1,000 pages): then nobody can say.
    pub fn commits_since(&self, earlier: &Self) -> Result<u64> {
        self.by_object_since(earlier).map(|commits| commits.iter().sum())
    }

    /// The same, one number for each object that has a log.
    pub fn by_object_since(&self, earlier: &Self) -> Result<Vec<u64>> {
        self.0
            .iter()
            .map(|(path, now)| {
                let before = earlier.0.get(path).copied().unwrap_or_default();
                ensure!(
                    before.commits == 0 || before.salt == now.salt,
                    "the log started anew while it was watched: commit less between two marks"
                );
                Ok(now.commits - before.commits)
            })
            .collect()
    }
}

/// The databases of all objects of `class` below the state directory.
pub fn databases(state: &Path, settings: &Settings, class: &str) -> Result<Vec<PathBuf>> {
    files(state, settings, class, "sqlite")
}

fn files(state: &Path, settings: &Settings, class: &str, extension: &str) -> Result<Vec<PathBuf>> {
    let folder = state.join(capnp::OBJECTS).join(capnp::namespace(settings, class));
    let mut files = Vec::new();
    if folder.exists() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            // `metadata.sqlite` is workerd's own: the alarms of the class.
            let is_object = path.file_stem().is_some_and(|stem| stem != "metadata");
            if is_object && path.extension().is_some_and(|e| e == extension) {
                files.push(path);
            }
        }
    }
    Ok(files)
}

fn read(log: &[u8]) -> Result<Log> {
    let Some((header, frames)) = log.split_at_checked(HEADER_LEN) else {
        return Ok(Log::default()); // not written yet
    };
    ensure!(matches!(word(header, 0), 0x377f_0682 | 0x377f_0683), "this is no write-ahead log");
    let page = usize::try_from(word(header, 8))?;
    let salt: [u8; 8] = header[16..24].try_into()?;
    let commits = frames
        .chunks_exact(FRAME_HEADER_LEN + page)
        .take_while(|frame| frame[8..16] == salt)
        .filter(|frame| word(frame, 4) != 0)
        .count();
    Ok(Log { salt, commits: u64::try_from(commits)? })
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 512;

    /// A log with one frame for each `(salt, size after commit)`.
    fn log(salt: u8, frames: &[(u8, u32)]) -> Vec<u8> {
        let mut log = vec![0; HEADER_LEN];
        log[..4].copy_from_slice(&0x377f_0682_u32.to_be_bytes());
        log[10] = 2; // 0x200: the page size
        log[16..24].fill(salt);
        for &(salt, size) in frames {
            let mut frame = vec![0; FRAME_HEADER_LEN + PAGE];
            frame[4..8].copy_from_slice(&size.to_be_bytes());
            frame[8..16].fill(salt);
            log.extend(frame);
        }
        log
    }

    fn write(state: &Path, settings: &Settings, log: &[u8]) -> Mark {
        let folder = state.join(capnp::OBJECTS).join(capnp::namespace(settings, "C"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("1.sqlite-wal"), log).unwrap();
        fs::write(folder.join("metadata.sqlite-wal"), self::log(1, &[(1, 9)])).unwrap();
        Mark::now(state, settings, "C").unwrap()
    }

    #[test]
    fn only_frames_that_end_a_commit_of_this_log_count() {
        let frames = [(1, 0), (1, 0), (1, 3), (1, 3), (9, 3)];
        assert_eq!(read(&log(1, &frames)).unwrap().commits, 2);
        assert_eq!(read(&log(1, &[])).unwrap().commits, 0);
        assert_eq!(read(&[]).unwrap(), Log::default());
        assert!(read(&[0; HEADER_LEN]).is_err());
        let torn = log(1, &frames[..3]);
        assert_eq!(read(&torn[..torn.len() - 1]).unwrap().commits, 0);
    }

    #[test]
    fn commits_are_counted_between_marks_and_a_restarted_log_is_noticed() {
        let (state, settings) = (tempfile::tempdir().unwrap(), Settings::load().unwrap());
        let nothing = Mark::now(state.path(), &settings, "C").unwrap();
        let first = write(state.path(), &settings, &log(1, &[(1, 2)]));
        let second = write(state.path(), &settings, &log(1, &[(1, 2), (1, 0), (1, 3), (1, 3)]));
        assert_eq!(first.commits_since(&nothing).unwrap(), 1);
        assert_eq!(second.commits_since(&first).unwrap(), 2);
        assert_eq!(second.by_object_since(&first).unwrap(), [2]);
        let anew = write(state.path(), &settings, &log(2, &[(2, 2); 9]));
        assert!(anew.commits_since(&second).is_err());
    }
}
