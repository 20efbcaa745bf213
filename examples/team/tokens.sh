#!/bin/sh
# Makes a token for each person of the example, prints it once, and adds its SHA-256 to the file.
#   ./tokens.sh tokens.yaml
set -eu
file=${1:-tokens.yaml}
new() { printf '%s: ' "$1"; mcp-resources token new "$@" --expires 90d --file "$file"; }
new alice --group engineering
new bob --group operations
new carol
