//! The target `config_file` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_resources_fuzz::config_file(data));
