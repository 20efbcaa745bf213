//! Several templates, matched against URIs in any spelling.

use super::UriTemplate;
use super::error::TemplateConflict;
use super::index::{Lookup, TemplateIndex};
use super::lint::TemplateLint;
use crate::uri::{InvalidUri, MAX_URI, normalize};
use std::borrow::Cow;

/// Several templates, matched against URIs in any spelling.
///
/// # Examples
/// ```
/// use mcp_resources_template::{Lookup, TemplateSet, UriTemplate};
/// let templates = ["note://{id}", "note://list"].map(|text| UriTemplate::parse(text).unwrap());
/// let set = TemplateSet::new(templates)?;
/// let Lookup::Match { index, params } = set.match_uri("NOTE://7")? else { panic!("no match") };
/// assert_eq!((index, params.text("id")), (0, Some("7")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TemplateSet {
    templates: Vec<UriTemplate>,
    index: TemplateIndex,
}

impl TemplateSet {
    /// Makes a set of `templates`, which are identified by their positions.
    ///
    /// # Errors
    /// [`TemplateConflict`], as for [`TemplateIndex::build`].
    pub fn new(templates: impl IntoIterator<Item = UriTemplate>) -> Result<Self, TemplateConflict> {
        let templates: Vec<_> = templates.into_iter().collect();
        let index = TemplateIndex::build(&templates)?;
        Ok(Self { templates, index })
    }

    /// The templates, in the order in which they were given.
    pub fn templates(&self) -> &[UriTemplate] {
        &self.templates
    }

    /// Finds the template for `uri`.
    ///
    /// # Errors
    /// [`InvalidUri`] if `uri` is longer than [`MAX_URI`] or not a URI.
    pub fn match_uri<'u>(&self, uri: &'u str) -> Result<Lookup<'u>, InvalidUri> {
        let normal = normalize(uri, MAX_URI)?;
        Ok(match normal {
            Cow::Borrowed(normal) => self.index.lookup(normal),
            Cow::Owned(normal) => self.index.lookup(&normal).into_owned(),
        })
    }

    /// The lints of all templates, as for [`TemplateIndex::lints`].
    pub fn lints(&self) -> Vec<TemplateLint> {
        self.index.lints()
    }
}
