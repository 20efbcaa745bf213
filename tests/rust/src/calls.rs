//! The parts of the Python binding that need no interpreter, with the tests beside them: the binding itself is a library that
//! an interpreter loads, and has no test program.
#![expect(dead_code, reason = "the binding uses what the tests do not")]

#[path = "../../../bindings-python/src/calls/consumer.rs"]
mod consumer;
#[path = "../../../bindings-python/src/calls/jobs.rs"]
mod jobs;
#[path = "../../../bindings-python/src/calls/tracker.rs"]
mod tracker;
