#!/bin/sh
# Runs inside.sh as the first process of namespaces of its own, joined to the host by one veth pair, and cleans up when
# it ends. Standard input is the tether: its end, also by the death of whoever holds the other end, ends everything.
# From the environment: LINK HOST_ADDRESS NODE_ADDRESS POD_CIDR SERVICE_CIDR CGROUP INSIDE and what inside.sh takes.
set -u
exec 3<&0

# Every cgroup v1 hierarchy that takes processes, or the one of v2.
hierarchies() {
  if [ -f /sys/fs/cgroup/cgroup.controllers ]; then echo /sys/fs/cgroup; return; fi
  for h in /sys/fs/cgroup/*; do [ -L "$h" ] || [ ! -f "$h/tasks" ] || echo "$h"; done
}

clean() {
  ip link del "$LINK" 2>/dev/null
  tries=0
  # The container runtime also makes cgroups in v1's empty unified hierarchy.
  for h in $(hierarchies) /sys/fs/cgroup/unified; do
    # A killed process leaves its cgroup a moment later.
    while [ -d "$h$CGROUP" ] && [ $tries -lt 100 ]; do
      find "$h$CGROUP" -depth -type d -exec rmdir {} + 2>/dev/null
      [ -d "$h$CGROUP" ] && sleep 0.05
      tries=$((tries + 1))
    done
  done
}

fail() {
  echo "$1" >&2
  [ -z "${u-}" ] || kill -KILL "$u" 2>/dev/null
  clean
  exit "$2"
}

# Code 75 when another cluster took the same slot a moment ago: try another one.
code() {
  case $1 in *'File exists'*) echo 75 ;; *) echo 1 ;; esac
}

said=$(ip link add "$LINK" type veth peer name "${LINK}i" 2>&1) || {
  echo "The link $LINK cannot be made: $said" >&2
  exit "$(code "$said")"
}

for h in $(hierarchies); do
  mkdir -p "$h$CGROUP" || fail "The cgroup $h$CGROUP cannot be made." 1
  # A v1 cpuset starts empty, and nothing can run in an empty one.
  for f in cpuset.mems cpuset.cpus; do
    [ ! -f "$h/tasks" ] || [ ! -f "$h/$f" ] || cat "$h/$f" > "$h$CGROUP/$f"
  done
  [ ! -f "$h/cgroup.subtree_control" ] || echo "+cpu +cpuset +memory +pids +io" > "$h/cgroup.subtree_control" || :
done

unshare --fork --pid --mount --net --uts --ipc --kill-child=SIGKILL --mount-proc sh "$INSIDE" <&3 &
u=$!
trap 'kill -KILL $u 2>/dev/null' INT TERM HUP
init=
while [ -z "$init" ]; do
  kill -0 "$u" 2>/dev/null || fail 'The namespaces cannot be made.' 1
  init=$(cat "/proc/$u/task/$u/children" 2>/dev/null)
  [ -n "$init" ] || sleep 0.02
done
init=${init% }

said=$({
  ip link set "${LINK}i" netns "$init" name eth0 &&
    ip addr add "$HOST_ADDRESS/30" dev "$LINK" &&
    ip link set "$LINK" up &&
    ip route add "$POD_CIDR" via "$NODE_ADDRESS" dev "$LINK" &&
    ip route add "$SERVICE_CIDR" via "$NODE_ADDRESS" dev "$LINK"
} 2>&1) || fail "The link $LINK cannot be set up: $said" "$(code "$said")"
echo "init $init"

exec 3<&-
wait "$u"
clean
