# Runs commands while a watch runs, and prints what the watch saw: its first
# lines, as many as the first argument says. The watch has to see something
# that is there from the beginning.
#   sh watch.sh LINES WATCH COMMANDS
count=$1 watch=$2 commands=$3
seen=$(mktemp)
# What it saw, where that is not enough.
trap 'cat "$seen" >&2; exit 1' TERM
lines() { until [ "$(wc -l <"$seen")" -ge "$1" ]; do sleep 0.05; done; }
$watch >"$seen" 2>&1 &
pid=$!
lines 1
sh -c "$commands" >/dev/null
lines "$count"
kill $pid
head -n "$count" "$seen"
