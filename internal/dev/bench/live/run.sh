#!/bin/bash
# Throughput, CPU time, HTTP requests and round trips of labs that are up, beside a Linux
# bridge, Open vSwitch's user-space datapath and mininet, in one run on one machine: only the
# ratios mean something.
# Needs iperf3 and ping; ab, Open vSwitch and mininet are left out where they are not installed.
# usage: run.sh WINLAB [SECONDS]
set -eu
winlab=$(realpath "$1")
export SECONDS_EACH=${2:-5}
cd "$(dirname "$0")/../../../.."
for tool in iperf3 ping; do
  command -v $tool >/dev/null || { echo "bench-live needs $tool (Debian, Ubuntu: apt-get install iperf3 iputils-ping)" >&2; exit 2; }
done
command -v ab >/dev/null || echo "HTTP is left out: there is no ab (Debian, Ubuntu: apt-get install apache2-utils)" >&2
name=bench-live-$$
dir=$(mktemp -d)
trap '"$winlab" down "$name" >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
export HTTPD=$dir/httpd
${GO:-go} build -o "$HTTPD" ./internal/dev/bench/live/httpd
. internal/dev/bench/live/measure.sh
printf '%-40s %14s %14s %14s %14s  %s\n' "" "Mbit/s, 1" "Mbit/s, 8" "CPU s/Gbit" "HTTP/s" "round trip in ms, median / 90 %"
for lab in l2bridge-flannel-host-gw overlay-flannel-vxlan; do
  "$winlab" up "fixtures/labs/$lab.yaml" -d --name "$name" 2>/dev/null
  for to in neighbour peer; do
    ip=$("$winlab" ps --name "$name" | awk -v p="pod/$to" '$1 == p {print $4}')
    serve "$winlab exec --name $name pod/$to --"
    case $to in neighbour) where="within a node" ;; *) where="between nodes" ;; esac
    printf '%-40s ' "$lab, $where"
    measure "$winlab exec --name $name pod/client --" "$ip"
  done
  "$winlab" down "$name" 2>/dev/null
done
unshare -Urnmpf --kill-child internal/dev/bench/live/others.sh
