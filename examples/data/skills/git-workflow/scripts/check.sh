#!/bin/sh
# Fails if the first line of the last commit is too long.
git log -1 --format=%s | awk 'length($0) > 72 { exit 1 }'
