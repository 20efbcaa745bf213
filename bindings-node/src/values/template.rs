//! URI templates outside of a server: expansion, matching, and sets of templates.

use crate::values::error::{invalid_template, invalid_uri, raise, unusable};
use mcp_resources_template as core;
use mcp_resources_template::{ExpandError, Lookup, TemplateOptions, Value, Values, VariableOptions};
use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::collections::HashMap;
use std::str::FromStr;

/// A URI template (RFC 6570).
#[napi]
pub struct UriTemplate {
    pub(crate) template: core::UriTemplate,
    pub(crate) options: TemplateOptions,
}

/// The matching options of one variable of a template.
#[napi(object)]
pub struct Variable {
    /// The type of its value. Default: a list with `*`, else a scalar.
    #[napi(ts_type = "'scalar' | 'list' | 'map'")]
    pub kind: Option<String>,
    /// The policy for refused values. Default: `path` for `{+x}`, `text` in a query or fragment, else `segment`.
    #[napi(ts_type = "'segment' | 'path' | 'text' | 'any'")]
    pub policy: Option<String>,
    /// Whether `{x}` and `{+x}` may be empty. Default `false`.
    pub empty: Option<bool>,
    /// The characters that `{+x}` may contain: `any` lets it match `?` and `#` too. Default `operator`.
    #[napi(ts_type = "'operator' | 'any'")]
    pub chars: Option<String>,
    /// Whether every URI defines it: said by a template, not to be given.
    pub required: Option<bool>,
}

/// Several templates: the most specific one that matches wins, whatever their order.
#[napi]
pub struct TemplateSet(core::TemplateSet);

/// The result of matching a URI.
#[napi(object, object_from_js = false)]
pub struct Found<'env> {
    /// Whether a template matches, none does, or the winning one refuses a value.
    #[napi(ts_type = "'match' | 'none' | 'rejected'")]
    pub outcome: &'static str,
    /// The template's text.
    pub template: Option<String>,
    /// The values by name.
    #[napi(ts_type = "Record<string, string | string[] | Record<string, string>>")]
    pub params: Option<Object<'env>>,
    /// The variable whose value is refused.
    pub variable: Option<String>,
    /// Why it is.
    pub why: Option<String>,
}

/// A text, texts, or pairs of texts.
type Expandable = Either3<String, Vec<String>, Vec<(String, String)>>;

#[napi]
impl UriTemplate {
    /// Parses a template.
    #[napi(catch_unwind, constructor)]
    pub fn new(
        env: &Env,
        template: String,
        variables: Option<HashMap<String, Variable>>,
        #[napi(ts_arg_type = "'ignore' | 'reject' | null")] extra_query: Option<String>,
    ) -> Result<Self> {
        let mut options = TemplateOptions::default();
        if let Some(word) = extra_query {
            options.extra_query = parse("extraQuery", &word)?;
        }
        for (name, variable) in variables.into_iter().flatten() {
            options.variables.insert(name, variable.options()?);
        }
        let template = core::UriTemplate::with_options(&template, &options);
        let template = template.map_err(|error| invalid_template(env, &error))?;
        Ok(Self { template, options })
    }

    /// The names of the variables, in template order, with their options.
    #[napi(catch_unwind, getter)]
    pub fn variables(&self) -> Vec<(String, Variable)> {
        let describe = |variable: &core::TemplateVariable| {
            let options = self.options.variables.get(&*variable.name).copied().unwrap_or_default();
            let described = Variable {
                kind: Some(variable.kind.to_string()),
                policy: Some(variable.policy.to_string()),
                empty: Some(options.empty),
                chars: Some(options.chars.to_string()),
                required: Some(variable.required),
            };
            (variable.name.to_string(), described)
        };
        self.template.variables().iter().map(describe).collect()
    }

    /// Expands the template with texts, lists and maps of texts.
    #[napi(
        catch_unwind,
        ts_args_type = "values: Record<string, string | Array<string> | Array<[string, string]>>"
    )]
    pub fn expand(&self, env: &Env, values: HashMap<String, Expandable>) -> Result<String> {
        let mut given = Values::new();
        for (name, value) in values {
            given.insert(
                name,
                match value {
                    Either3::A(text) => Value::from(text),
                    Either3::B(items) => Value::from(items),
                    Either3::C(pairs) => pairs.into_iter().collect(),
                },
            );
        }
        self.template.expand(&given).map_err(|error| match error {
            ExpandError::Template(error) => invalid_template(env, &error),
            other => unusable(other.to_string()),
        })
    }

    /// Matches a URI, in any spelling.
    #[napi(catch_unwind, js_name = "match")]
    pub fn match_uri<'env>(&self, env: &'env Env, uri: String) -> Result<Found<'env>> {
        let found = self.template.match_uri(&uri).map_err(|error| invalid_uri(env, &error))?;
        lookup(env, &found, std::slice::from_ref(&self.template))
    }

    /// The text.
    #[napi(catch_unwind)]
    pub fn to_string(&self) -> &str {
        self.template.as_str()
    }
}

impl Variable {
    fn options(&self) -> Result<VariableOptions> {
        let chars = self.chars.as_deref().map(|word| parse("chars", word)).transpose()?;
        Ok(VariableOptions {
            kind: self.kind.as_deref().map(|word| parse("kind", word)).transpose()?,
            policy: self.policy.as_deref().map(|word| parse("policy", word)).transpose()?,
            empty: self.empty.unwrap_or_default(),
            chars: chars.unwrap_or_default(),
        })
    }
}

#[napi]
impl TemplateSet {
    /// A set of templates, none of which matches the same URIs as another.
    #[napi(catch_unwind, constructor)]
    pub fn new(env: &Env, templates: Vec<ClassInstance<'_, UriTemplate>>) -> Result<Self> {
        let set = core::TemplateSet::new(templates.iter().map(|template| template.template.clone()));
        let conflict = |error: core::TemplateConflict| {
            let fields = [("template", &*error.template), ("other", &*error.with)];
            raise(env, "TemplateConflictError", error.to_string(), &fields)
        };
        set.map(Self).map_err(conflict)
    }

    /// Finds the template for a URI, in any spelling.
    #[napi(catch_unwind, js_name = "match")]
    pub fn match_uri<'env>(&self, env: &'env Env, uri: String) -> Result<Found<'env>> {
        let found = self.0.match_uri(&uri).map_err(|error| invalid_uri(env, &error))?;
        lookup(env, &found, self.0.templates())
    }

    /// The number of templates.
    #[napi(catch_unwind, getter)]
    pub fn size(&self) -> u32 {
        u32::try_from(self.0.templates().len()).unwrap_or(u32::MAX)
    }
}

fn lookup<'env>(env: &'env Env, found: &Lookup<'_>, templates: &[core::UriTemplate]) -> Result<Found<'env>> {
    let of = |index: usize| templates.get(index).map(|template| template.as_str().to_owned());
    let mut result = Found { outcome: "none", template: None, params: None, variable: None, why: None };
    match found {
        Lookup::Match { index, params } => {
            let mut values = Object::new(env)?;
            for (name, value) in params.iter() {
                values.set(name, value_to_js(env, value)?)?;
            }
            result.outcome = "match";
            result.template = of(*index);
            result.params = Some(values);
        }
        Lookup::None { .. } => {}
        Lookup::Rejected { index, variable, why } => {
            result.outcome = "rejected";
            result.template = of(*index);
            result.variable = Some(variable.to_string());
            result.why = Some(why.to_string());
        }
    }
    Ok(result)
}

/// The value of a template's variable: a text, an array of texts, or an object.
pub(crate) fn value_to_js<'env>(env: &'env Env, value: &Value<'_>) -> Result<Unknown<'env>> {
    match value {
        Value::Scalar(text) => env.create_string(text)?.into_unknown(env),
        Value::List(items) => {
            let items: Vec<&str> = items.iter().map(|item| &**item).collect();
            items.into_unknown(env)
        }
        Value::Map(pairs) => {
            let mut map = Object::new(env)?;
            for (key, value) in pairs {
                map.set(&**key, &**value)?;
            }
            map.into_unknown(env)
        }
    }
}

fn parse<T: FromStr<Err: std::fmt::Display>>(option: &str, word: &str) -> Result<T> {
    word.parse().map_err(|error: T::Err| unusable(format!("{option} is {word:?}, {error}")))
}
