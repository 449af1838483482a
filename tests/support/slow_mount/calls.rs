//! The kinds of calls that a FUSE server answers, and how many of each were made.

use std::fmt;
use std::time::Duration;

macro_rules! calls {
    ($($name:ident $text:literal $writes:literal,)*) => {
        /// One kind of FUSE request, named as the kernel names it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) enum Call {
            $($name,)*
        }

        impl Call {
            /// Every kind, in the order of [`Counts`].
            pub(crate) const ALL: &[Call] = &[$(Call::$name,)*];

            /// Returns the name of the kind in lower case, as the counters print it.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Call::$name => $text,)*
                }
            }

            /// Whether such a call can change something below the mount point.
            pub(crate) fn is_write_like(self) -> bool {
                match self {
                    $(Call::$name => $writes,)*
                }
            }
        }
    };
}

calls! {
    Lookup "lookup" false,
    Getattr "getattr" false,
    Readlink "readlink" false,
    Open "open" false,
    OpenForWriting "open_for_writing" true,
    Read "read" false,
    Lseek "lseek" false,
    Flush "flush" false,
    Release "release" false,
    Opendir "opendir" false,
    Readdir "readdir" false,
    Readdirplus "readdirplus" false,
    Releasedir "releasedir" false,
    Statfs "statfs" false,
    Access "access" false,
    Getxattr "getxattr" false,
    Listxattr "listxattr" false,
    Fsync "fsync" false,
    Fsyncdir "fsyncdir" false,
    Setattr "setattr" true,
    Mknod "mknod" true,
    Mkdir "mkdir" true,
    Unlink "unlink" true,
    Rmdir "rmdir" true,
    Symlink "symlink" true,
    Rename "rename" true,
    Link "link" true,
    Create "create" true,
    Write "write" true,
    Fallocate "fallocate" true,
    CopyFileRange "copy_file_range" true,
    Setxattr "setxattr" true,
    Removexattr "removexattr" true,
}

/// How many kinds there are.
pub(crate) const KINDS: usize = Call::ALL.len();

impl Call {
    /// Returns the place of the kind in tables of [`KINDS`] entries.
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// Returns the kind with this name.
    pub(crate) fn from_name(name: &str) -> Option<Call> {
        Call::ALL.iter().copied().find(|call| call.name() == name)
    }
}

/// How many calls of each kind arrived at the mount. `forget` is left out: it needs no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) by_kind: [u64; KINDS],
    /// The most calls that were being served at one moment.
    pub(crate) max_in_service: usize,
    /// The delays that were given to calls, added up; what they took at least, had they come one after the other.
    pub(crate) delayed: Duration,
}

impl Counts {
    /// Returns the calls of one kind.
    pub(crate) fn of(&self, call: Call) -> u64 {
        self.by_kind[call.index()]
    }

    /// Returns the calls of every kind.
    pub(crate) fn total(&self) -> u64 {
        self.by_kind.iter().sum()
    }

    /// Returns the calls that can change something: creations, removals, writes, changed attributes, and files opened
    /// for writing.
    pub(crate) fn write_like(&self) -> u64 {
        Call::ALL.iter().filter(|call| call.is_write_like()).map(|call| self.of(*call)).sum()
    }

    /// Returns the counters as a JSON object: kinds that were called, `total`, `write_like`, `max_in_service` and
    /// `delayed_us`.
    pub(crate) fn to_json(self) -> serde_json::Value {
        let mut map = serde_json::Map::new();
        for call in Call::ALL {
            if self.of(*call) > 0 {
                map.insert(call.name().to_owned(), self.of(*call).into());
            }
        }
        map.insert("total".to_owned(), self.total().into());
        map.insert("write_like".to_owned(), self.write_like().into());
        map.insert("max_in_service".to_owned(), self.max_in_service.into());
        map.insert("delayed_us".to_owned(), u64::try_from(self.delayed.as_micros()).unwrap_or(u64::MAX).into());
        map.into()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(f)
    }
}
