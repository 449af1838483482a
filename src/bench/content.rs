//! Contents of files: the same bytes on every machine and in every round, made once and not while a clock runs.

/// Seed of the generator; any odd number does, as long as it never changes between versions that are compared.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// Pieces that differ from one another; each begins one byte further in the pool.
const DISTINCT: usize = 4096;
/// Length of the pieces of a long stream.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// Bytes without pattern, so that a filesystem that compresses has no advantage.
#[derive(Debug)]
pub(super) struct Content {
    pool: Vec<u8>,
    piece_bytes: usize,
}

impl Content {
    /// Makes pieces of `piece_bytes` each.
    pub(super) fn new(piece_bytes: usize) -> Self {
        let length = piece_bytes + DISTINCT;
        let mut pool = Vec::with_capacity(length + 8);
        let mut state = SEED;
        while pool.len() < length {
            pool.extend_from_slice(&next(&mut state).to_le_bytes());
        }
        pool.truncate(length);
        Self { pool, piece_bytes }
    }

    /// Returns the piece with this number; numbers that differ by less than [`DISTINCT`] have different pieces.
    pub(super) fn piece(&self, number: usize) -> &[u8] {
        let start = number % DISTINCT;
        &self.pool[start..start + self.piece_bytes]
    }

    /// Returns the pieces of a stream of `total` bytes; the last one may be shorter.
    pub(super) fn stream(&self, total: u64) -> impl Iterator<Item = &[u8]> {
        let piece = self.piece_bytes as u64;
        (0..total.div_ceil(piece)).map(move |number| {
            let left = usize::try_from(total - number * piece).unwrap_or(usize::MAX).min(self.piece_bytes);
            // The remainder is below `DISTINCT`.
            let slot = usize::try_from(number % DISTINCT as u64).unwrap_or(0);
            &self.piece(slot)[..left]
        })
    }
}

/// The next number of xorshift64* (Vigna, 'An experimental exploration of Marsaglia's xorshift generators', 2016).
fn next(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_differ_and_do_not_compress_into_one_another() {
        let content = Content::new(4096);
        assert_eq!(content.piece(0).len(), 4096);
        assert_ne!(content.piece(0), content.piece(1));
        assert_eq!(content.piece(3), content.piece(3 + DISTINCT));
        let mut seen = [0_u32; 256];
        content.piece(0).iter().for_each(|byte| seen[usize::from(*byte)] += 1);
        assert!(seen.iter().all(|count| (1..64).contains(count)), "{seen:?}");
    }

    #[test]
    fn a_stream_has_exactly_the_length_asked_for() {
        let content = Content::new(1000);
        for total in [0, 1, 999, 1000, 1001, 12_345] {
            assert_eq!(content.stream(total).map(|piece| piece.len() as u64).sum::<u64>(), total);
        }
    }
}
