//! The Node binding: a list of modules whose exports `js/` wraps. Every protocol word, code and rule is the core's.

mod about;
mod answer;
mod audit;
mod auth;
mod calls;
mod channel;
mod elsewhere;
mod error;
mod function;
mod guard;
mod http;
mod link;
mod options;
mod peer;
mod providers;
mod quick;
mod redact;
mod request;
mod resource;
mod rules;
mod serve;
mod server;
mod template;
mod testing;
mod web;
mod woken;
