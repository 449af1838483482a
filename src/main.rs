//! Parses the command line, runs the command, prints the error, chooses the exit status.

fn main() {}
