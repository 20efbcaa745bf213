//! The embedded connection on values alone.
