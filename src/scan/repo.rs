//! Reading a repository through gix.
