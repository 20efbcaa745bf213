//! The command `mcp-resources`: one `main` for a binary, the wheel's console script and npm's `bin`.
//!
//! ```text
//!  mcp-resources serve files:DIR ──▶ mcp-resources-providers ──▶ mcp-resources-host ──▶ stdio, HTTP
//!  mcp-resources ls, read, watch ──▶ a client of any server
//! ```
//!
//! What it needs stands in the manifest under the feature `command`; the command does not stand here yet.
