#!/bin/sh
# Tries the packages for musl in a container of Alpine, which has no compiler: the command, the wheel and the npm packages.
set -eu
apk add --quiet python3
dist=$PWD/dist
work=$(mktemp -d)
cd "$work"
mkdir project
echo Hello >project/hello.md

tar xzf "$dist"/mcp-resources-*-linux-musl.tar.gz
command=$(echo "$work"/mcp-resources-*/mcp-resources)
"$command" ls -- "$command" serve project | grep -q file:///project/hello.md

python3 -m venv python
python/bin/pip install --quiet --only-binary=:all: --no-index "$dist"/*.whl
python/bin/mcp-resources read file:///project/hello.md -- python/bin/mcp-resources serve project | grep -q Hello

npm init --yes >/dev/null
npm install --silent --ignore-scripts "$dist"/*.tgz
npx mcp-resources read file:///project/hello.md -- npx mcp-resources serve project | grep -q Hello
echo "the command, the wheel and the npm packages work"
