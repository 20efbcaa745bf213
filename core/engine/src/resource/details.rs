//! What a resource and a template have in common: how it is shown, to whom, and for how long it may be kept.

/// The description that resources and templates share. Each revision gets the fields it defines (requirements 5.1).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Details {
    /// A name for programs, and the label where a revision has no title. Default: the URI or template.
    pub name: Option<String>,
    /// A label for people (2025-06-18).
    pub title: Option<String>,
    /// What it is, for people and models.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Pictures of it (2025-11-25).
    pub icons: Vec<Icon>,
    /// Hints for clients.
    pub annotations: Annotations,
    /// Further members of `_meta`, as the text of a JSON object (2025-06-18, R-021).
    pub meta: Option<String>,
    /// How long an answer may be kept, and by whom (2026-07-28).
    pub cache: CacheHint,
    /// The scopes that a token must have to see it, all of them. Never published.
    pub scopes: Vec<String>,
}

impl Details {
    /// Takes what is not said here from the template that serves the resource. Not the title: all of a list would have the
    /// same.
    pub(crate) fn complete_from(&mut self, template: &Self) {
        let (own, shared) = (&mut self.annotations, &template.annotations);
        if own.audience.is_empty() {
            own.audience.clone_from(&shared.audience);
        }
        own.priority = own.priority.or(shared.priority);
        own.extra = own.extra.take().or_else(|| shared.extra.clone());
        if self.icons.is_empty() {
            self.icons.clone_from(&template.icons);
        }
        self.description = self.description.take().or_else(|| template.description.clone());
        self.mime_type = self.mime_type.take().or_else(|| template.mime_type.clone());
        self.meta = self.meta.take().or_else(|| template.meta.clone());
    }
}

/// Hints for clients.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Annotations {
    /// For whom it is. Default: nobody in particular.
    pub audience: Vec<Audience>,
    /// How important it is: 1 is required, 0 is wholly optional.
    pub priority: Option<f64>,
    /// When it was last changed: an ISO 8601 time with its zone (2025-06-18).
    pub last_modified: Option<String>,
    /// What the protocol's annotations have no place for, as the text of a JSON object. It is published in `_meta`
    /// under [`meta::ANNOTATIONS`](crate::meta::ANNOTATIONS) (2025-06-18, X-05).
    pub extra: Option<String>,
}

/// For whom a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Audience {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }

    /// The audience with this word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::User, Self::Assistant].into_iter().find(|audience| audience.as_str() == word)
    }
}

/// A picture of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Icon {
    /// Where it is: an `http:`, `https:` or `data:` URI.
    pub src: String,
    /// Its media type, where `src` does not say it.
    pub mime_type: Option<String>,
    /// The sizes it is made for: `48x48`, or `any`.
    pub sizes: Vec<String>,
    /// The theme it is made for. Default: either.
    pub theme: Option<Theme>,
}

impl Icon {
    /// An icon at `src`.
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), ..Self::default() }
    }

    /// Its media type. Default: not said.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Adds a size: `48x48`, or `any`. Default: not said.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.push(size.into());
        self
    }

    /// The theme it is made for. Default: either.
    #[must_use]
    pub fn theme(mut self, theme: Theme) -> Self {
        self.theme = Some(theme);
        self
    }
}

/// The background an icon is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}

impl Theme {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The theme with this word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Light, Self::Dark].into_iter().find(|theme| theme.as_str() == word)
    }
}

/// How long a result may be kept, and by whom. Default: not at all, by nobody but the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheHint {
    /// For how many milliseconds.
    pub ttl_ms: u64,
    /// By whom.
    pub scope: CacheScope,
}

/// Who may be given a kept result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheScope {
    /// Anyone: the result is the same for every caller.
    Public,
    /// The caller alone.
    #[default]
    Private,
}

impl CacheScope {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }

    /// The scope with this word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Public, Self::Private].into_iter().find(|scope| scope.as_str() == word)
    }
}

/// The builder methods over `self.details` and `self.children`, the same for both types.
macro_rules! details_setters {
    () => {
        /// A name for programs, and the label where a revision has no title. Default: the URI or template.
        pub fn name(mut self, name: impl Into<String>) -> Self {
            self.details.name = Some(name.into());
            self
        }

        /// A label for people. Default: none.
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.details.title = Some(title.into());
            self
        }

        /// What it is, for people and models. Default: none.
        pub fn description(mut self, description: impl Into<String>) -> Self {
            self.details.description = Some(description.into());
            self
        }

        /// Its media type. Default: not said.
        pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
            self.details.mime_type = Some(mime_type.into());
            self
        }

        /// Adds a picture. Default: none.
        pub fn icon(mut self, icon: $crate::resource::Icon) -> Self {
            self.details.icons.push(icon);
            self
        }

        /// Sets the pictures.
        pub fn icons(mut self, icons: impl IntoIterator<Item = $crate::resource::Icon>) -> Self {
            self.details.icons = icons.into_iter().collect();
            self
        }

        /// Sets the annotations.
        pub fn annotations(mut self, annotations: $crate::resource::Annotations) -> Self {
            self.details.annotations = annotations;
            self
        }

        /// For whom it is. Default: nobody in particular.
        pub fn audience(mut self, audience: impl IntoIterator<Item = $crate::resource::Audience>) -> Self {
            self.details.annotations.audience = audience.into_iter().collect();
            self
        }

        /// How important it is, from 0 (wholly optional) to 1 (required). Default: not said.
        pub fn priority(mut self, priority: f64) -> Self {
            self.details.annotations.priority = Some(priority);
            self
        }

        /// When it was last changed: an ISO 8601 time with its zone. Default: not said.
        pub fn last_modified(mut self, time: impl Into<String>) -> Self {
            self.details.annotations.last_modified = Some(time.into());
            self
        }

        /// Members of `_meta`, as the text of a JSON object. Default: none.
        pub fn meta(mut self, object: impl Into<String>) -> Self {
            self.details.meta = Some(object.into());
            self
        }

        /// How long an answer may be kept, and by whom. Default: not at all.
        pub fn cache(mut self, cache: $crate::resource::CacheHint) -> Self {
            self.details.cache = cache;
            self
        }

        /// The scopes that a token must have to see it, all of them. Default: none.
        pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
            self.details.scopes = scopes.into_iter().map(Into::into).collect();
            self
        }

        /// Whether a subscription to it also hears of the resources beneath it. Default `false`.
        pub fn children(mut self, children: bool) -> Self {
            self.children = children;
            self
        }
    };
}
pub(super) use details_setters;
