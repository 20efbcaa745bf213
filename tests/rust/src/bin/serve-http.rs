//! Serves cases of `tests/fixtures/http` over real sockets. See `tests/fixtures/serve-http`.

fn main() -> std::io::Result<()> {
    mcp_resources_tests::serve()
}
