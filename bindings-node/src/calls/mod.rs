//! Calls of the functions of a program: their arguments, their answers, and the event loop that runs them.
//!
//! Law: nothing here knows a pipe or an endpoint; what reads and writes is a [`driver::Driver`].

pub(crate) mod about;
pub(crate) mod answers;
pub(crate) mod driver;
pub(crate) mod elsewhere;
pub(crate) mod embed;
pub(crate) mod function;
pub(crate) mod named;
pub(crate) mod origin;
pub(crate) mod quick;
pub(crate) mod redact;
pub(crate) mod request;
pub(crate) mod run;
pub(crate) mod server_state;
pub(crate) mod table;
pub(crate) mod woken;
