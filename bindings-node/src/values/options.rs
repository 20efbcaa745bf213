//! Options from objects: converts values of JavaScript to those of the core. The core decides which options exist and
//! which values they take.

use crate::values::error::{raise, unusable};
use crate::values::guard::PolicySource;
use crate::values::spelling::{camel_case, snake_case};
use mcp_resources_engine::engine::{EngineOptions, ServerInfo, Setup};
use mcp_resources_engine::option::{FromOption, NamedOptions, OptionError, OptionValue, PathStep, set_all};
use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::collections::BTreeMap;

/// The most requests of one connection that a number can name exactly.
const MOST_IN_FLIGHT: usize = 1 << 20;
/// Whole numbers beyond it are not exact.
const MOST_WHOLE: f64 = 9_007_199_254_740_991.0;

/// The value of an option. The names of an object are option names; names that the user chooses stand in lists of
/// pairs.
#[napi(transparent)]
pub struct PlainValue(
    Either7<bool, f64, String, Uint8Array, Vec<PlainValue>, BTreeMap<String, PlainValue>, Null>,
);

/// The settings besides the options of a server.
#[napi(object, object_to_js = false)]
pub struct ServerSettings {
    /// The file where each request is recorded, or whether records are kept for a function.
    pub audit: Option<Either<String, bool>>,
    /// The guard's policy.
    pub guard: Option<PolicySource>,
    /// The URL of the bus to the other processes of the server.
    pub bus: Option<String>,
}

/// Reads the options of a server into what it has so far.
pub(crate) fn server(
    env: &Env,
    mut setup: Setup,
    fields: PlainValue,
    settings: ServerSettings,
) -> Result<(ServerInfo, EngineOptions)> {
    set(&mut setup, fields)?;
    let Setup { info, mut options } = setup;
    options.limits.in_flight = options.limits.in_flight.min(MOST_IN_FLIGHT);
    if let Some(policy) = settings.guard {
        options.guard = policy.read(env)?;
    }
    Ok((info, options))
}

/// Sets the options that an object has.
pub(crate) fn set<T: NamedOptions>(options: &mut T, fields: PlainValue) -> Result<()> {
    set_all(options, fields.into()).map_err(|error| refused(&error))
}

/// Reads one value.
pub(crate) fn read<T: FromOption>(value: impl Into<OptionValue>) -> Result<T> {
    T::from_option(value.into()).map_err(|error| refused(&error))
}

/// The `TypeError` for a wrong option.
pub(crate) fn refused(error: &OptionError) -> Error {
    unusable(error.message(error.given(), camel_case))
}

/// The `TypeError` for a wrong option of a provider. JavaScript puts the value at `path` in the place of the zero in the
/// message.
pub(crate) fn refused_option(env: &Env, error: &OptionError) -> Error {
    let steps = error.path().iter().map(|step| match step {
        PathStep::Name(name) => name.to_string(),
        PathStep::Item(at) => at.to_string(),
    });
    let path = steps.collect::<Vec<_>>().join("\0");
    raise(env, "OptionError", error.message("\0", camel_case), &[("path", &path)])
}

impl PlainValue {
    /// Whether it is an object with this member.
    pub(crate) fn has(&self, name: &str) -> bool {
        matches!(&self.0, Either7::F(members) if members.contains_key(name))
    }
}

impl From<PlainValue> for OptionValue {
    fn from(PlainValue(given): PlainValue) -> Self {
        match given {
            Either7::A(truth) => Self::Bool(truth),
            #[expect(clippy::cast_possible_truncation, reason = "it is a whole number of at most 53 bits")]
            Either7::B(number) if number.fract() == 0.0 && number.abs() <= MOST_WHOLE => {
                Self::Integer(number as i128)
            }
            Either7::B(number) => Self::Number(number),
            Either7::C(text) => Self::Text(text),
            Either7::D(bytes) => Self::Bytes(bytes.to_vec()),
            Either7::E(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Either7::F(members) => {
                let member = |(name, value): (String, PlainValue)| (snake_case(&name), value.into());
                Self::Members(members.into_iter().map(member).collect())
            }
            Either7::G(_) => Self::None,
        }
    }
}

/// A number that cannot be negative.
pub(crate) fn unsigned<T: TryFrom<i64>>(name: &str, value: i64) -> Result<T> {
    T::try_from(value).map_err(|_| unusable(format!("{name} is {value}, expected a whole number from 0")))
}
