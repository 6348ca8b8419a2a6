#!/bin/sh
# The first process in the cluster's namespaces. Runs each line of standard input as a command, and ends, and with it
# every process of the cluster, at the end of input.
# From the environment: HOST_ADDRESS NODE_ADDRESS DATA LOGS.
set -eu
exec 3<&0
trap 'exit 0' TERM

hostname real-0
# Programs of the node insist on these folders: here they are the cluster's own, and the host's stay untouched.
mount -t tmpfs tmpfs /run
for d in /var/lib/kubelet /var/lib/cni /var/log/containers /tmp/hostpath_pv; do
  mkdir -p "$d" "$DATA/host$d"
  mount --bind "$DATA/host$d" "$d"
done

ip link set lo up
until ip link show eth0 >/dev/null 2>&1; do sleep 0.02; done
ip addr add "$NODE_ADDRESS/30" dev eth0
ip link set eth0 up
ip route add default via "$HOST_ADDRESS"
sysctl -qw net.ipv4.ip_forward=1

# start NAME COMMAND...: its end is reported on standard output, which the supervisor reads.
start() {
  name=$1
  shift
  { "$@" >>"$LOGS/$name.log" 2>&1 </dev/null 3<&- || :; echo "exited $name"; } &
}

# This process only waits, so that it reaps the orphans of the container runtime.
{ while read -r line; do eval "$line"; done <&3; kill -TERM 1; } &
wait
