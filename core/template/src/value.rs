//! Values of variables: the results of matching and the input of expansion.

use super::options::TemplateVariable;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The value of one variable. Borrows from the normal form of the URI unless decoding changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'u> {
    /// One text.
    Scalar(Cow<'u, str>),
    /// One or more texts.
    List(Vec<Cow<'u, str>>),
    /// One or more pairs of distinct keys with their values, in the order of the URI.
    Map(Vec<(Cow<'u, str>, Cow<'u, str>)>),
}

impl<'u> Value<'u> {
    /// The text of a scalar; `None` for a list or a map.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Scalar(text) => Some(text),
            Self::List(_) | Self::Map(_) => None,
        }
    }

    /// Copies everything that it borrows.
    pub fn into_owned(self) -> Value<'static> {
        fn own(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        match self {
            Self::Scalar(text) => Value::Scalar(own(text)),
            Self::List(items) => Value::List(items.into_iter().map(own).collect()),
            Self::Map(pairs) => {
                Value::Map(pairs.into_iter().map(|(key, value)| (own(key), own(value))).collect())
            }
        }
    }
}

impl<'u> From<&'u str> for Value<'u> {
    fn from(text: &'u str) -> Self {
        Self::Scalar(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Scalar(Cow::Owned(text))
    }
}

impl<'u, T: Into<Cow<'u, str>>> From<Vec<T>> for Value<'u> {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

impl<'u, K: Into<Cow<'u, str>>, V: Into<Cow<'u, str>>> FromIterator<(K, V)> for Value<'u> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self::Map(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}

/// The values of the variables that a URI defines, in template order.
///
/// Up to two values are stored without an allocation; names are shared with the template.
#[derive(Clone, Debug)]
pub struct MatchedParams<'u> {
    variables: Arc<[TemplateVariable]>,
    // Not a `SmallVec`, which would make the lifetime invariant.
    first: [Option<(u16, Value<'u>)>; 2],
    more: Vec<(u16, Value<'u>)>,
    count: usize,
}

impl<'u> MatchedParams<'u> {
    /// No values yet, for the variables of one template.
    pub(super) fn new(variables: Arc<[TemplateVariable]>) -> Self {
        Self { variables, first: [const { None }; 2], more: Vec::new(), count: 0 }
    }

    /// Adds the value of the variable at `position`. Call it in template order.
    pub(super) fn push(&mut self, position: u16, value: Value<'u>) {
        match self.first.get_mut(self.count) {
            Some(place) => *place = Some((position, value)),
            None => self.more.push((position, value)),
        }
        self.count += 1;
    }

    /// The value at `position`, if it has been added.
    pub(super) fn at_mut(&mut self, position: u16) -> Option<&mut Value<'u>> {
        let values = self.first.iter_mut().flatten().chain(&mut self.more);
        values.into_iter().find(|(at, _)| *at == position).map(|(_, value)| value)
    }

    /// The value of the variable `name`; `None` if the URI leaves it undefined or the template has no such variable.
    pub fn get(&self, name: &str) -> Option<&Value<'u>> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// The text of the scalar `name`; `None` if it is undefined, a list or a map.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// The defined variables with their values, in template order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value<'u>)> {
        let values = self.first.iter().flatten().chain(&self.more);
        values.map(|(position, value)| (&*self.variables[usize::from(*position)].name, value))
    }

    /// The number of defined variables.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no variable is defined.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All variables of the template, defined or not, in template order.
    pub fn variables(&self) -> &[TemplateVariable] {
        &self.variables
    }

    /// Copies everything that it borrows.
    pub fn into_owned(self) -> MatchedParams<'static> {
        let owned = |(position, value): (u16, Value<'u>)| (position, value.into_owned());
        MatchedParams {
            variables: self.variables,
            first: self.first.map(|place| place.map(owned)),
            more: self.more.into_iter().map(owned).collect(),
            count: self.count,
        }
    }
}

impl PartialEq for MatchedParams<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for MatchedParams<'_> {}

/// The values for an expansion, by variable name. A missing name is undefined, which RFC 6570 allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values<'v>(BTreeMap<Cow<'v, str>, Value<'v>>);

impl<'v> Values<'v> {
    /// No values: every variable is undefined.
    pub fn new() -> Self {
        Self::default()
    }

    /// Defines `name`, replacing an earlier value.
    pub fn insert(&mut self, name: impl Into<Cow<'v, str>>, value: impl Into<Value<'v>>) {
        self.0.insert(name.into(), value.into());
    }

    /// Adds the value of `name`.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'v, str>>, value: impl Into<Value<'v>>) -> Self {
        self.insert(name, value);
        self
    }

    /// The value of `name`, if it is defined.
    pub fn get(&self, name: &str) -> Option<&Value<'v>> {
        self.0.get(name)
    }
}

impl<'v, N: Into<Cow<'v, str>>> FromIterator<(N, Value<'v>)> for Values<'v> {
    fn from_iter<I: IntoIterator<Item = (N, Value<'v>)>>(values: I) -> Self {
        Self(values.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

/// The parameters of a match, for expanding them again.
impl<'p> From<&'p MatchedParams<'_>> for Values<'p> {
    fn from(params: &'p MatchedParams<'_>) -> Self {
        params.iter().map(|(name, value)| (name, value.clone().into_owned())).collect()
    }
}
