//! Checksums, and what a round got wrong as one sentence.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// CRC-32 (IEEE) over everything it is given.
#[derive(Debug, Default)]
pub(super) struct Crc(crc32fast::Hasher);

impl Crc {
    pub(super) fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    pub(super) fn hex(self) -> String {
        format!("{:08x}", self.0.finalize())
    }
}

/// SHA-256 over everything it is given.
#[derive(Debug, Default)]
pub(super) struct Sha(Sha256);

impl Sha {
    pub(super) fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    pub(super) fn hex(self) -> String {
        let mut hex = String::new();
        for byte in self.0.finalize() {
            // Writing into a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }
}

/// Collects what differs from what it must be.
#[derive(Debug, Default)]
pub(super) struct Mismatch(Vec<String>);

impl Mismatch {
    pub(super) fn number(&mut self, what: &str, wanted: u64, found: Option<u64>) {
        self.text(what, &wanted.to_string(), found.map(|found| found.to_string()).as_deref());
    }

    pub(super) fn text(&mut self, what: &str, wanted: &str, found: Option<&str>) {
        if found != Some(wanted) {
            self.0.push(format!("{what} is {} instead of {wanted}", found.unwrap_or("unknown")));
        }
    }

    pub(super) fn truth(&mut self, problem: &str, is_fine: bool) {
        if !is_fine {
            self.0.push(problem.to_owned());
        }
    }

    /// Returns everything that differs; `None` when nothing does.
    pub(super) fn finish(self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_the_published_ones() {
        let mut crc = Crc::default();
        crc.update(b"1234");
        crc.update(b"56789");
        // Check value of CRC-32/ISO-HDLC in the catalogue of parametrised CRC algorithms.
        assert_eq!(crc.hex(), "cbf43926");
        let mut sha = Sha::default();
        sha.update(b"abc");
        // FIPS 180-2, appendix B.1.
        assert_eq!(sha.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn everything_that_differs_is_named() {
        let mut mismatch = Mismatch::default();
        mismatch.number("bytes", 5, Some(5));
        mismatch.number("files", 3, Some(2));
        mismatch.text("output", "a", None);
        mismatch.truth("broken", false);
        assert_eq!(
            mismatch.finish().as_deref(),
            Some("files is 2 instead of 3; output is unknown instead of a; broken")
        );
        assert_eq!(Mismatch::default().finish(), None);
    }
}
