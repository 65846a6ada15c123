#!/bin/sh
# A program that never ends, with one second to live: what it had output is kept. Needs a running server (npm start).
set -eu
base=${TROUPE_URL:-http://127.0.0.1:8080}

created=$(curl -sS "$base/processes" -H 'Content-Type: application/json' -d '{
  "code": "output({ reached: \"the loop\" }); for (;;) await new Promise((resolve) => setTimeout(resolve, 10))",
  "timeoutMs": 1000
}')
id=$(printf '%s' "$created" | sed 's/[^0-9]*\([0-9]*\).*/\1/')

curl -sS "$base/processes/$id?wait=30"
echo
curl -sS "$base/processes/$id/output"
echo
