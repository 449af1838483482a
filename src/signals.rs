//! The wish to stop: SIGINT, SIGTERM and SIGHUP, turned into a flag that every long loop looks at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::Error;

/// A flag that is set when somebody wants the run to end; cheap to clone and to look at.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Makes the flag and lets the signals set it instead of ending the process, so that temporary data is removed.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the system refuses the handlers.
    pub fn on_signals() -> Result<Self, Error> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0))
                .map_err(|source| Error::io("handle signals in", "/proc/self", source))?;
        }
        Ok(interrupt)
    }

    /// Returns whether the run should end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks for the end of the run.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns [`Error::Interrupted`] when the run should end, for use with `?`.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] when the flag is set.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_set() { Err(Error::Interrupted) } else { Ok(()) }
    }
}
