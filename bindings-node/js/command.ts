#!/usr/bin/env node
// The program `mcp-resources`: the native command, without the rest of the package.
import { binding } from './binding.js';

process.exit(binding.main(['mcp-resources', ...process.argv.slice(2)]));
