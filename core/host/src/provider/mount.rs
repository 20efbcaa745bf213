//! What a provider serves, as it says when it is mounted.

use mcp_resources_engine::resource::{Resource, Template};

/// A part of a provider, by a number of its own choice: each request says which part it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route(pub u32);

/// What a provider serves: see [`Provider::mount`](super::Provider::mount).
#[derive(Debug)]
#[must_use = "it is what `Provider::mount` returns"]
pub struct Mount {
    pub(super) name: String,
    pub(super) templates: Vec<(Route, Template)>,
    pub(super) resources: Vec<(Route, Resource)>,
    pub(super) threads: usize,
    pub(super) queue: usize,
}

impl Mount {
    /// Nothing yet. `name` stands in errors and logs, such as `files("docs")`.
    pub fn new(name: impl Into<String>) -> Self {
        let (templates, resources) = Default::default();
        Self { name: name.into(), templates, resources, threads: 4, queue: 256 }
    }

    /// With a template. What it lists and completes is said in the [`Template`].
    pub fn template(mut self, route: Route, template: Template) -> Self {
        self.templates.push((route, template));
        self
    }

    /// With a resource at a fixed URI. Others may come later, with [`Feed::publish`](super::Feed::publish).
    pub fn resource(mut self, route: Route, resource: Resource) -> Self {
        self.resources.push((route, resource));
        self
    }

    /// How many threads answer its requests at most, and how many requests may wait for one. Default 4 and 256. A request
    /// that finds the queue full is an error at once. With 0 threads [`Provider`](super::Provider)'s functions are called
    /// where the request was read, and must never block.
    pub fn workers(mut self, threads: usize, queue: usize) -> Self {
        (self.threads, self.queue) = (threads, queue);
        self
    }
}
