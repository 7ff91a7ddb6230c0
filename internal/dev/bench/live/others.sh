#!/bin/bash
# The same between two network namespaces over a veth pair on a Linux bridge, and over
# Open vSwitch's user-space datapath on TAP devices, and between two hosts of mininet
# with either switch (mininet connects hosts by veth pairs). To be run by run.sh, in user,
# network, mount and PID namespaces of its own.
set -u
. "$(dirname "$0")/measure.sh"
mount -t tmpfs tmpfs /run && mount -t proc proc /proc || exit 1
ip link set lo up
mkdir -p /run/netns /run/ovs
row() { # name, address of b
  printf '%-40s ' "$1"
  measure "ip netns exec a" "$2"
}
ip netns add a; ip netns add b
ip link add br0 type bridge; ip link set br0 up
for n in a b; do
  ip link add v$n type veth peer name eth0 netns $n
  ip link set v$n master br0 up
  ip netns exec $n ip link set lo up; ip netns exec $n ip link set eth0 up
done
ip netns exec a ip addr add 10.9.0.1/24 dev eth0; ip netns exec b ip addr add 10.9.0.2/24 dev eth0
serve "ip netns exec b"
row "Linux bridge, veth" 10.9.0.2
# mininet SWITCH: a row for two hosts of it.
mininet() {
  local n h1 h2 pid
  mkfifo /run/mn
  mn --topo single,2 --switch "$1" --controller none </run/mn >/run/mn.log 2>&1 &
  pid=$!
  exec 3>/run/mn
  for n in $(seq 200); do grep -q "Starting CLI" /run/mn.log && break; sleep 0.1; done
  # Without a controller the switch forwards nothing but in this mode.
  case $1 in ovs*) ovs-vsctl set-fail-mode s1 standalone ;; esac
  h1=$(pgrep -f 'mininet:h1$') && h2=$(pgrep -f 'mininet:h2$') || { cat /run/mn.log >&2; exit 1; }
  # Open vSwitch in user space does not fill in the checksums that veth leaves out.
  case $1 in ovs*)
    mnexec -a "$h1" ethtool -K h1-eth0 tx off >/dev/null
    mnexec -a "$h2" ethtool -K h2-eth0 tx off >/dev/null ;;
  esac
  serve "mnexec -a $h2"
  printf '%-40s ' "mininet, $2"
  measure "mnexec -a $h1" 10.0.0.2
  echo exit >&3
  exec 3>&-
  wait $pid
  rm /run/mn
}
if ! command -v mn >/dev/null || ! command -v brctl >/dev/null; then
  echo "mininet is left out: there is no mn or no brctl (Debian, Ubuntu: apt-get install mininet bridge-utils)" >&2
else
  mininet lxbr "Linux bridge"
fi
if ! command -v ovs-vswitchd >/dev/null; then
  echo "Open vSwitch is left out: there is no ovs-vswitchd (Debian, Ubuntu: apt-get install openvswitch-switch)" >&2
  exit 0
fi
export OVS_RUNDIR=/run/ovs OVS_LOGDIR=/run/ovs OVS_DBDIR=/run/ovs
ovsdb-tool create /run/ovs/conf.db /usr/share/openvswitch/vswitch.ovsschema
ovsdb-server /run/ovs/conf.db --remote=punix:/run/ovs/db.sock --pidfile=/run/ovs/ovsdb.pid --detach --log-file=/run/ovs/ovsdb.log >/dev/null 2>&1
db=unix:/run/ovs/db.sock
ovs-vsctl --db=$db --no-wait init
ovs-vswitchd $db --pidfile=/run/ovs/vswitchd.pid --detach --log-file=/run/ovs/vswitchd.log >/dev/null 2>&1
ovs-vsctl --db=$db -t 10 add-br ovs0 -- set bridge ovs0 datapath_type=netdev
for n in a b; do
  ovs-vsctl --db=$db -t 10 add-port ovs0 o$n -- set interface o$n type=internal
  ip link set o$n netns $n
  ip netns exec $n ip link set o$n up
done
ip netns exec a ip addr add 10.8.0.1/24 dev oa; ip netns exec b ip addr add 10.8.0.2/24 dev ob
row "Open vSwitch, user space, TAP" 10.8.0.2
command -v mn >/dev/null && command -v brctl >/dev/null && mininet ovs,datapath=user "Open vSwitch, user space"
kill "$(cat /run/ovs/vswitchd.pid)" "$(cat /run/ovs/ovsdb.pid)"
