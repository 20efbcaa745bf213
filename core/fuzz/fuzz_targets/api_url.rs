//! The target `api_url` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_resources_fuzz::api_url(data));
