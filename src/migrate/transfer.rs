//! The bytes of one file: read once, hashed while they are read, written with their holes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use rustix::fs::SeekFrom;

use crate::migrate::fsys::{self, FileStat};

/// Reads of a large file; measured best between 256 KiB and 4 MiB on local disks, and one round trip each at most.
pub(super) const CHUNK_BYTES: usize = 1 << 20;
/// Files from here on are read by several threads while another one writes; below, one read holds them whole.
const LARGE_BYTES: u64 = 2 << 20;
/// Threads that read one large file: reading ahead of the writer, without keeping other files waiting.
const READERS: usize = 4;
/// Chunks that a reader may be ahead of the writer.
const CHUNKS_AHEAD: usize = 2;

/// Where a failure came from; the two sides are treated differently.
#[derive(Debug)]
pub(super) enum Fault {
    /// Reading the source failed.
    Source(io::Error),
    /// Writing the copy failed.
    Destination(io::Error),
    /// The file was longer or shorter than its stat data said: it is being written to.
    Changed,
}

/// Copies the content of `from`, `stat.size` bytes long, and returns its hash; `moved` hears of the bytes as they go.
pub(super) fn content(
    from: &File,
    to: &File,
    stat: &FileStat,
    buffer: &mut Vec<u8>,
    moved: &(dyn Fn(u64) + Sync),
) -> Result<blake3::Hash, Fault> {
    if stat.stored < stat.size && stat.size >= LARGE_BYTES {
        let parts = data_parts(from, stat.size).map_err(Fault::Source)?;
        return stream(from, to, &parts, stat.size, moved);
    }
    if stat.size >= LARGE_BYTES {
        return stream(from, to, &[(0, stat.size)], stat.size, moved);
    }
    small(from, to, stat, buffer, moved)
}

fn small(
    from: &File,
    to: &File,
    stat: &FileStat,
    buffer: &mut Vec<u8>,
    moved: &(dyn Fn(u64) + Sync),
) -> Result<blake3::Hash, Fault> {
    let size = usize::try_from(stat.size).map_err(|_| Fault::Changed)?;
    buffer.resize(size, 0);
    // Not a byte more than there should be: many mounts then ask the server for the size once more. A file that grew
    // has other times, which the last look at the source sees.
    if read_full(from, buffer, 0).map_err(Fault::Source)? < size {
        return Err(Fault::Changed);
    }
    let data = &buffer[..size];
    let hash = blake3::hash(data);
    let parts = if stat.stored < stat.size {
        data_parts(from, stat.size).map_err(Fault::Source)?
    } else {
        vec![(0, stat.size)]
    };
    write_parts(to, data, &parts, stat.size).map_err(Fault::Destination)?;
    moved(stat.size);
    Ok(hash)
}

fn write_parts(to: &File, data: &[u8], parts: &[(u64, u64)], size: u64) -> io::Result<()> {
    let mut end = 0;
    for (from, until) in parts {
        let part = usize::try_from(*from).ok().zip(usize::try_from(*until).ok()).and_then(|(a, b)| data.get(a..b));
        to.write_all_at(part.unwrap_or_default(), *from)?;
        end = *until;
    }
    if end < size { to.set_len(size) } else { Ok(()) }
}

/// Returns the parts of a file that hold data, as half-open ranges; the whole where the filesystem does not tell.
fn data_parts(file: &File, size: u64) -> io::Result<Vec<(u64, u64)>> {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < size {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(rustix::io::Errno::NXIO) => break,
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOTSUP) => return Ok(vec![(0, size)]),
            Err(error) => return Err(error.into()),
        };
        let end = rustix::fs::seek(file, SeekFrom::Hole(start))?.min(size);
        if start >= size || end <= start {
            break;
        }
        parts.push((start, end));
        at = end;
    }
    Ok(parts)
}

type Chunk = io::Result<(u64, Vec<u8>)>;

/// Several readers, one writer; chunks are dealt to the readers in turn and taken back in the same order.
fn stream(
    from: &File,
    to: &File,
    parts: &[(u64, u64)],
    size: u64,
    moved: &(dyn Fn(u64) + Sync),
) -> Result<blake3::Hash, Fault> {
    let chunks: Vec<(u64, usize)> = parts.iter().flat_map(|(start, end)| cut(*start, *end)).collect();
    let hash = thread::scope(|scope| {
        let readers = READERS.min(chunks.len()).max(1);
        let lanes: Vec<(Receiver<Chunk>, Sender<Vec<u8>>)> = (0..readers)
            .map(|lane| {
                let (send, chunk) = sync_channel(CHUNKS_AHEAD);
                let (give_back, buffers) = channel();
                let mine = chunks.iter().skip(lane).step_by(readers);
                scope.spawn(move || read_lane(from, mine, &send, &buffers));
                (chunk, give_back)
            })
            .collect();
        write_lanes(to, &lanes, &chunks, size, moved)
    })?;
    // One byte is left before the end and none behind it, or the file grew or shrank meanwhile; a hole would hide that.
    let last = fsys::retry_io(|| from.read_at(&mut [0, 0], size - 1)).map_err(Fault::Source)?;
    if last == 1 { Ok(hash) } else { Err(Fault::Changed) }
}

fn cut(start: u64, end: u64) -> impl Iterator<Item = (u64, usize)> {
    (start..end).step_by(CHUNK_BYTES).map(move |at| {
        let length = (end - at).min(CHUNK_BYTES as u64);
        (at, usize::try_from(length).unwrap_or(CHUNK_BYTES))
    })
}

fn read_lane<'a>(
    from: &File,
    chunks: impl Iterator<Item = &'a (u64, usize)>,
    send: &SyncSender<Chunk>,
    buffers: &Receiver<Vec<u8>>,
) {
    for (at, length) in chunks {
        let mut buffer = buffers.try_recv().unwrap_or_default();
        buffer.resize(*length, 0);
        let result = read_full(from, &mut buffer, *at).map(|filled| {
            buffer.truncate(filled);
            (*at, buffer)
        });
        let is_last = result.is_err();
        // The writer went away: it failed, and says so itself.
        if send.send(result).is_err() || is_last {
            return;
        }
    }
}

fn read_full(from: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match fsys::retry_io(|| from.read_at(&mut buffer[filled..], at + filled as u64))? {
            0 => break,
            got => filled += got,
        }
    }
    Ok(filled)
}

fn write_lanes(
    to: &File,
    lanes: &[(Receiver<Chunk>, Sender<Vec<u8>>)],
    planned: &[(u64, usize)],
    size: u64,
    moved: &(dyn Fn(u64) + Sync),
) -> Result<blake3::Hash, Fault> {
    let mut hasher = blake3::Hasher::new();
    let mut end = 0;
    for ((_, length), (chunks, give_back)) in planned.iter().zip(lanes.iter().cycle()) {
        let (at, data) = chunks.recv().map_err(|_| Fault::Changed)?.map_err(Fault::Source)?;
        hash_hole(&mut hasher, at - end);
        to.write_all_at(&data, at).map_err(Fault::Destination)?;
        hasher.update(&data);
        end = at + data.len() as u64;
        moved(data.len() as u64);
        if data.len() < *length {
            return Err(Fault::Changed);
        }
        // The reader may be done already.
        let _ = give_back.send(data);
    }
    hash_hole(&mut hasher, size - end.min(size));
    if end < size {
        to.set_len(size).map_err(Fault::Destination)?;
    }
    Ok(hasher.finalize())
}

fn hash_hole(hasher: &mut blake3::Hasher, mut length: u64) {
    static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
    while length > 0 {
        let part = usize::try_from(length).unwrap_or(ZEROS.len()).min(ZEROS.len());
        hasher.update(&ZEROS[..part]);
        length -= part as u64;
    }
}

/// Hashes what the copy holds, dropped from the page cache first so that it comes from the disk where that is possible.
pub(super) fn read_back(file: &File, buffer: &mut Vec<u8>) -> io::Result<(blake3::Hash, u64)> {
    // Advice only: a filesystem without it (tmpfs) answers from memory.
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    let mut hasher = blake3::Hasher::new();
    let mut at = 0;
    buffer.resize(CHUNK_BYTES, 0);
    loop {
        let got = file.read_at(buffer, at)?;
        if got == 0 {
            return Ok((hasher.finalize(), at));
        }
        hasher.update(&buffer[..got]);
        at += got as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(write: impl Fn(&File), stated: Option<u64>) -> (Result<blake3::Hash, Fault>, Vec<u8>, FileStat, FileStat) {
        let dir = tempfile::tempdir().unwrap();
        let from = File::create_new(dir.path().join("from")).unwrap();
        write(&from);
        let from = File::open(dir.path().join("from")).unwrap();
        let to = File::create_new(dir.path().join("to")).unwrap();
        let mut stat = fsys::stat_fd(&from).unwrap();
        stat.size = stated.unwrap_or(stat.size);
        let result = content(&from, &to, &stat, &mut Vec::new(), &|_| {});
        let copied = fsys::stat_fd(&to).unwrap();
        (result, std::fs::read(dir.path().join("to")).unwrap(), stat, copied)
    }

    #[test]
    fn files_of_every_size_arrive_with_the_hash_of_their_content() {
        for size in [0, 1, 4096, CHUNK_BYTES - 1, 4 * CHUNK_BYTES, 5 * CHUNK_BYTES + 3, 11 * CHUNK_BYTES] {
            let data: Vec<u8> = (0..=250).cycle().take(size).collect();
            let (hash, copied, _, _) = copy(|file| file.write_all_at(&data, 0).unwrap(), None);
            assert_eq!(hash.unwrap(), blake3::hash(&data), "{size}");
            assert!(copied == data, "{size}");
        }
    }

    #[test]
    fn holes_stay_holes() {
        let size = 64 << 20;
        for (at, len) in [(0, 5), (20 << 20, 3 << 20), (size - 1, 1)] {
            let write = |file: &File| {
                file.set_len(size).unwrap();
                file.write_all_at(&vec![7; len], at).unwrap();
            };
            let (hash, copied, from, to) = copy(write, None);
            assert_eq!(hash.unwrap(), blake3::hash(&copied));
            assert_eq!(copied.len() as u64, size);
            assert!(to.stored <= from.stored + (1 << 16), "{} of {}", to.stored, from.stored);
        }
    }

    #[test]
    fn a_file_that_is_shorter_than_its_stat_data_counts_as_changed_and_a_large_one_that_is_longer_too() {
        const LARGE: usize = 9 << 20;
        for (real, stated) in [(1000, 1001), (LARGE, LARGE as u64 + 1), (LARGE, LARGE as u64 - 1)] {
            let (result, ..) = copy(|file| file.write_all_at(&vec![1; real], 0).unwrap(), Some(stated));
            assert!(matches!(result, Err(Fault::Changed)), "{real} {stated}");
        }
    }
}
