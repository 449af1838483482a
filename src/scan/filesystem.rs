//! Where a path really is.
