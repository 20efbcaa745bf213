//! The properties that resources and templates share: presentation, access and caching.

/// The properties that resources and templates share. Each revision gets the fields it defines.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Details {
    /// A name for programs, and the label under revisions without `title`. Default: the URI or template.
    pub name: Option<String>,
    /// A label for people (2025-06-18).
    pub title: Option<String>,
    /// A description for people and models.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its icons (2025-11-25).
    pub icons: Vec<Icon>,
    /// Hints for clients.
    pub annotations: Annotations,
    /// Further members of `_meta`, as the text of a JSON object (2025-06-18).
    pub meta: Option<String>,
    /// Whether and how long results may be cached (2026-07-28).
    pub cache: CacheHint,
    /// The scopes that a token must have to access it, all of them. Never published.
    pub scopes: Vec<String>,
    /// Whether its handler decides who may use it: see [`Event::Access`](crate::connection::Event::Access). Default
    /// `false`. Never published.
    pub access: bool,
}

impl Details {
    /// Fills fields that are not set from the template that serves the resource. Not the title, which would then be the
    /// same for all resources of a list.
    pub(crate) fn complete_from(&mut self, template: &Self) {
        let own = &mut self.annotations;
        let shared = &template.annotations;
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
    /// The intended audience. Default: everyone.
    pub audience: Vec<Audience>,
    /// Its importance, from 0 (optional) to 1 (required).
    pub priority: Option<f64>,
    /// The time of its last change: an ISO 8601 time with its zone (2025-06-18).
    pub last_modified: Option<String>,
    /// Annotations that the protocol does not define, as the text of a JSON object. Published in `_meta` under
    /// [`meta::ANNOTATIONS`](crate::meta::ANNOTATIONS) (2025-06-18, X-05).
    pub extra: Option<String>,
}

/// The intended audience of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Audience {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }

    /// Parses a name on the wire.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::User, Self::Assistant].into_iter().find(|audience| audience.as_str() == word)
    }
}

/// An icon of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Icon {
    /// Its location: an `http:`, `https:` or `data:` URI.
    pub src: String,
    /// Its media type, if `src` does not contain it.
    pub mime_type: Option<String>,
    /// The sizes it is designed for: `48x48`, or `any`.
    pub sizes: Vec<String>,
    /// The theme it is designed for. Default: either.
    pub theme: Option<Theme>,
}

impl Icon {
    /// An icon at `src`.
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), ..Self::default() }
    }

    /// Sets its media type. Default: none.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Adds a size: `48x48`, or `any`. Default: none.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.push(size.into());
        self
    }

    /// Sets the theme it is designed for. Default: either.
    #[must_use]
    pub fn theme(mut self, theme: Theme) -> Self {
        self.theme = Some(theme);
        self
    }
}

/// The background that an icon is designed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}

impl Theme {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// Parses a name on the wire.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Light, Self::Dark].into_iter().find(|theme| theme.as_str() == word)
    }
}

/// Whether and how long a result may be cached. Default: not at all, and by the caller only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheHint {
    /// The time in milliseconds.
    pub ttl_ms: u64,
    /// The principals that may get the cached result.
    pub scope: CacheScope,
}

/// The principals that may get a cached result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheScope {
    /// All principals: the result is the same for every caller.
    Public,
    /// Only the principal that made the request.
    #[default]
    Private,
}

impl CacheScope {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }

    /// Parses a name on the wire.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Public, Self::Private].into_iter().find(|scope| scope.as_str() == word)
    }
}

/// The builder methods for `self.details` and `self.children`, the same for both types.
macro_rules! details_setters {
    () => {
        /// Sets the name for programs, which is also the label under revisions without `title`. Default: the URI or
        /// template.
        pub fn name(mut self, name: impl Into<String>) -> Self {
            self.details.name = Some(name.into());
            self
        }

        /// Sets the label for people. Default: none.
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.details.title = Some(title.into());
            self
        }

        /// Sets the description for people and models. Default: none.
        pub fn description(mut self, description: impl Into<String>) -> Self {
            self.details.description = Some(description.into());
            self
        }

        /// Sets the media type. Default: none.
        pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
            self.details.mime_type = Some(mime_type.into());
            self
        }

        /// Adds an icon. Default: none.
        pub fn icon(mut self, icon: $crate::resource::Icon) -> Self {
            self.details.icons.push(icon);
            self
        }

        /// Sets the icons.
        pub fn icons(mut self, icons: impl IntoIterator<Item = $crate::resource::Icon>) -> Self {
            self.details.icons = icons.into_iter().collect();
            self
        }

        /// Sets the annotations.
        pub fn annotations(mut self, annotations: $crate::resource::Annotations) -> Self {
            self.details.annotations = annotations;
            self
        }

        /// Sets the intended audience. Default: everyone.
        pub fn audience(mut self, audience: impl IntoIterator<Item = $crate::resource::Audience>) -> Self {
            self.details.annotations.audience = audience.into_iter().collect();
            self
        }

        /// Sets the importance, from 0 (optional) to 1 (required). Default: none.
        pub fn priority(mut self, priority: f64) -> Self {
            self.details.annotations.priority = Some(priority);
            self
        }

        /// Sets the time of the last change: an ISO 8601 time with its zone. Default: none.
        pub fn last_modified(mut self, time: impl Into<String>) -> Self {
            self.details.annotations.last_modified = Some(time.into());
            self
        }

        /// Sets members of `_meta`, as the text of a JSON object. Default: none.
        pub fn meta(mut self, object: impl Into<String>) -> Self {
            self.details.meta = Some(object.into());
            self
        }

        /// Sets whether and how long results may be cached. Default: not at all.
        pub fn cache(mut self, cache: $crate::resource::CacheHint) -> Self {
            self.details.cache = cache;
            self
        }

        /// Sets the scopes that a token must have to access it, all of them. Default: none.
        pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
            self.details.scopes = scopes.into_iter().map(Into::into).collect();
            self
        }

        /// Sets whether its subscribers are also notified of changes under it. Default `false`.
        pub fn children(mut self, children: bool) -> Self {
            self.children = children;
            self
        }
    };
}
pub(super) use details_setters;
