//! The parts of a provider, as an enum, and the only conversion between such an enum and the numbers of routes.
//!
//! ```text
//!   enum SiteRoute { Index, Page, Site(at) }      Index = 0, Page = 1, Site(0) = 2, Site(1) = 5, Site(2) = 8, …
//! ```

use mcp_resources_runtime::provider::Route;

/// Defines an enum of the parts of a provider. A part is plain, or one of many of a kind, with an index. The enum converts
/// into a [`Route`], and `parse` converts back; it returns `None` for a number without a part.
#[doc(hidden)]
#[macro_export]
macro_rules! routes {
    ($(#[$about:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $part:ident $(($at:ident: usize))?,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($(#[$doc])* $part $(($crate::route::routes!(@index $at)))?,)+ }

        impl $name {
            /// One part of each kind, made of its index.
            const KINDS: &'static [fn(usize) -> Self] =
                &[$(|_index| Self::$part $(({ let $at = _index; $at }))?),+];

            /// The part that a route addresses.
            $vis fn parse(route: mcp_resources_runtime::provider::Route) -> Option<Self> {
                $crate::route::part(Self::KINDS, route)
            }
        }

        impl From<$name> for mcp_resources_runtime::provider::Route {
            fn from(part: $name) -> Self {
                let index = match part { $($name::$part $(($at))? => 0 $(+ $at)?),+ };
                $crate::route::number($name::KINDS, &part, index)
            }
        }
    };
    (@index $at:ident) => { usize };
}
pub use routes;

/// The part with the number of `route`.
pub fn part<T>(kinds: &[fn(usize) -> T], route: Route) -> Option<T> {
    let number = usize::try_from(route.0).ok()?;
    let kind = kinds.get(number % kinds.len().max(1))?;
    Some(kind(number / kinds.len().max(1)))
}

/// The route of a part. One whose number would be too large is that of no request.
pub fn number<T: PartialEq>(kinds: &[fn(usize) -> T], part: &T, index: usize) -> Route {
    let kind = kinds.iter().position(|kind| kind(index) == *part).unwrap_or_default();
    let number = index.checked_mul(kinds.len()).and_then(|first| first.checked_add(kind));
    Route(number.and_then(|number| u32::try_from(number).ok()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    routes! {
        enum TestRoute {
            Index,
            Page,
            Site(at: usize),
        }
    }

    #[test]
    fn each_part_has_a_number_of_its_own() {
        let parts =
            [TestRoute::Index, TestRoute::Page, TestRoute::Site(0), TestRoute::Site(1), TestRoute::Site(9)];
        for (part, number) in parts.into_iter().zip([0, 1, 2, 5, 29]) {
            let route = Route::from(part);
            assert_eq!((route, TestRoute::parse(route)), (Route(number), Some(part)));
        }
        assert_eq!(Route::from(TestRoute::Site(usize::MAX)), Route(u32::MAX));
    }
}
