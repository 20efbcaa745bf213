//! The target `front_matter` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_resources_fuzz::front_matter(data));
