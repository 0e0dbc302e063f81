//! Where the ranks print: where the supervisor does, line by line behind their rank, or into
//! files.
//!
//! Owned by [`super::Supervisor`]. Invariants: a rank writes its files itself, so their content
//! does not depend on the supervisor. The ranks that a debugger controls print where it does.

use crate::boot::error::BootError;
use crate::boot::passed_stream::PrefixedStream;
use crate::env::RankSet;
use crate::rank::JobRank;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The streams of a rank: their descriptors, and the ends of the names of their files.
const STREAMS: [(i32, &str); 2] = [(1, "out"), (2, "err")];

/// Where the ranks print.
#[derive(Debug, Default)]
pub(super) struct RankOutput {
    kind: OutputKind,
    /// Ranks whose output is left alone.
    pub(super) spared: Option<RankSet>,
}

#[derive(Debug, Default)]
enum OutputKind {
    #[default]
    Inherited,
    Prefixed(Vec<PrefixedStream>),
    Folder(PathBuf),
}

impl RankOutput {
    /// Through the supervisor, which puts the rank in front of each line.
    pub(super) fn prefixed(self) -> RankOutput {
        RankOutput { kind: OutputKind::Prefixed(Vec::new()), ..self }
    }

    /// Into files of this folder, one for each of these ranks and each stream. Makes the folder
    /// and all files, empty.
    ///
    /// # Errors
    /// One cannot be made; the message names it.
    pub(super) fn in_folder(
        self,
        folder: &Path,
        ranks: &[JobRank],
    ) -> Result<RankOutput, BootError> {
        let failed = |what: &str, path: &Path, e: io::Error| {
            BootError::new(
                format!("{what} {} cannot be made: {e}", path.display()),
                "Name a folder that you may write to: gasnetrun --output DIR.",
            )
        };
        fs::create_dir_all(folder).map_err(|e| failed("the folder", folder, e))?;
        for (_, stream) in STREAMS {
            for rank in ranks {
                let path = file(folder, *rank, stream);
                fs::File::create(&path).map_err(|e| failed("the output file", &path, e))?;
            }
        }
        Ok(RankOutput { kind: OutputKind::Folder(folder.to_path_buf()), ..self })
    }

    /// What this rank is to print to: descriptors of the standard streams, and their replacements.
    pub(super) fn ends(&mut self, rank: JobRank) -> io::Result<Vec<(i32, OwnedFd)>> {
        if self.is_spared(rank) {
            return Ok(Vec::new());
        }
        let mut ends = Vec::new();
        for (standard, name) in STREAMS {
            match &mut self.kind {
                OutputKind::Inherited => {}
                OutputKind::Prefixed(streams) => {
                    let (stream, end) = PrefixedStream::new(&format!("[{rank}] "), standard)?;
                    streams.push(stream);
                    ends.push((standard, end));
                }
                OutputKind::Folder(folder) => {
                    let end = OpenOptions::new().append(true).open(file(folder, rank, name))?;
                    ends.push((standard, end.into()));
                }
            }
        }
        Ok(ends)
    }

    /// Whether the output of this rank is left alone.
    pub(super) fn is_spared(&self, rank: JobRank) -> bool {
        self.spared.as_ref().is_some_and(|spared| spared.has(rank.0))
    }

    /// The streams that pass through the supervisor.
    pub(super) fn streams(&self) -> &[PrefixedStream] {
        match &self.kind {
            OutputKind::Prefixed(streams) => streams,
            _ => &[],
        }
    }

    /// The same, to pass on what has arrived.
    pub(super) fn streams_mut(&mut self) -> &mut [PrefixedStream] {
        match &mut self.kind {
            OutputKind::Prefixed(streams) => streams,
            _ => &mut [],
        }
    }
}

/// The file of a stream of a rank.
fn file(folder: &Path, rank: JobRank, stream: &str) -> PathBuf {
    folder.join(format!("rank-{rank}.{stream}"))
}
