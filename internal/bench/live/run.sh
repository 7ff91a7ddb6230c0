#!/bin/bash
# Throughput and round trips of labs that are up, beside a Linux bridge and Open vSwitch's
# user-space datapath, in one run on one machine: only the ratios mean something.
# Needs iperf3 and ping; Open vSwitch is left out where it is not installed.
# usage: run.sh WINLAB [SECONDS]
set -eu
winlab=$(realpath "$1")
seconds=${2:-5}
cd "$(dirname "$0")/../../.."
for tool in iperf3 ping; do
  command -v $tool >/dev/null || { echo "bench-live needs $tool (Debian, Ubuntu: apt-get install iperf3 iputils-ping)" >&2; exit 2; }
done
name=bench-live-$$
trap '"$winlab" down "$name" 2>/dev/null || true' EXIT
printf '%-40s %14s %16s  %s\n' "" "Mbit/s, 1" "Mbit/s, 8" "round trip, min/avg/max/mdev"
row() { printf '%-40s %14s %16s  %s\n' "$1" "$2" "$3" "$4"; }
for lab in l2bridge-flannel-host-gw overlay-flannel-vxlan; do
  "$winlab" up "fixtures/labs/$lab.yaml" -d --name "$name" 2>/dev/null
  for to in neighbour peer; do
    ip=$("$winlab" ps --name "$name" | awk -v p="pod/$to" '$1 == p {print $4}')
    "$winlab" exec --name "$name" "pod/$to" -- iperf3 -s >/dev/null 2>&1 &
    sleep 1
    one=$("$winlab" exec --name "$name" pod/client -- iperf3 -c "$ip" -t "$seconds" -f m | awk '/receiver/ {print $7}')
    eight=$("$winlab" exec --name "$name" pod/client -- iperf3 -c "$ip" -t "$seconds" -P 8 -f m | awk '/SUM.*receiver/ {print $6}')
    rtt=$("$winlab" exec --name "$name" pod/client -- ping -i 0.002 -c 1000 -q "$ip" | tail -1 | cut -d= -f2)
    case $to in neighbour) where="within a node" ;; *) where="between nodes" ;; esac
    row "$lab, $where" "$one" "$eight" "$rtt"
  done
  "$winlab" down "$name" 2>/dev/null
done
unshare -Urnmpf --kill-child internal/bench/live/others.sh "$seconds" | while read -r what _ one _ eight _ rtt; do
  case $what in veth) what="Linux bridge, veth" ;; ovs) what="Open vSwitch, user space, TAP" ;; esac
  row "$what" "$one" "$eight" "$rtt"
done
