//! softdev
