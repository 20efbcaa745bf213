//! The command `mcp-resources`, in the process of npm's `bin`.

use napi_derive::napi;

/// Runs the command; `argv` begins with the name of the program. Returns the exit status.
#[napi]
pub(crate) fn main(argv: Vec<String>) -> u8 {
    mcp_resources_cli::run(argv.into_iter().map(Into::into))
}

#[cfg(test)]
mod tests {
    /// A usage error is the status 2.
    #[test]
    fn an_unknown_word_is_a_usage_error() {
        assert_eq!(super::main(vec!["mcp-resources".into(), "lss".into()]), 2);
    }
}
