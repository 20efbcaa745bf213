//! The target `files_path` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_resources_fuzz::files_path(data));
