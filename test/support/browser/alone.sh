#!/bin/sh
# Starts the browser of BERTH_BROWSER in a network namespace of its own. Playwright starts one file, and adds the arguments.
exec unshare --net "$BERTH_NODE" "$(dirname "$0")/alone.ts" "$@"
