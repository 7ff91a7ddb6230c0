# What is measured between two places; for run.sh and others.sh, which source it.
# $HTTPD is the server of package httpd, $SECONDS_EACH how long each stream goes.

# busy prints the CPU time of the whole machine so far that was not idle, in 1/100 s.
busy() { awk '$1 == "cpu" {print $2 + $3 + $4 + $7 + $8}' /proc/stat; }

# serve B: starts the servers; B is how to run a command there.
serve() {
  $1 iperf3 -s >/dev/null 2>&1 &
  $1 "$HTTPD" :8099 >/dev/null 2>&1 &
  sleep 1
}

# measure A ADDRESS prints Mbit/s of one stream and of eight, CPU seconds per gigabit of
# the one, HTTP requests per second of eight clients that connect anew each time, and the
# round trip: median and nine of ten, in ms.
measure() {
  local a=$1 to=$2 one eight from cpu http rtt
  from=$(busy)
  one=$($a iperf3 -c "$to" -t "$SECONDS_EACH" -f m | awk '/receiver/ {print $7}')
  cpu=$(awk -v busy=$(($(busy) - from)) -v mbit="$one" -v s="$SECONDS_EACH" 'BEGIN {printf "%.2f", busy / 100 / (mbit * s / 1000)}')
  eight=$($a iperf3 -c "$to" -t "$SECONDS_EACH" -P 8 -f m | awk '/SUM.*receiver/ {print $6}')
  http=-
  if command -v ab >/dev/null; then
    http=$($a ab -q -n 5000 -c 8 "http://$to:8099/" | awk '/Requests per second/ {printf "%d", $4}')
  fi
  rtt=$($a ping -i 0.002 -c 1000 "$to" | grep -o 'time=[0-9.]*' | cut -d= -f2 | sort -n | awk '{t[NR] = $1} END {printf "%s / %s", t[int(NR / 2)], t[int(NR * .9)]}')
  printf '%14s %14s %14s %14s  %s\n' "$one" "$eight" "$cpu" "$http" "$rtt"
}
