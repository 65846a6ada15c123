#!/bin/sh
# The smallest process: create it, wait for it, read its output. Needs a running server (npm start).
set -eu
base=${TROUPE_URL:-http://127.0.0.1:8080}

created=$(curl -sS "$base/processes" -H 'Content-Type: application/json' -d '{"code": "return \"Hello\""}')
id=$(printf '%s' "$created" | sed 's/[^0-9]*\([0-9]*\).*/\1/')

curl -sS "$base/processes/$id?wait=30"
echo
curl -sS "$base/processes/$id/output"
echo
