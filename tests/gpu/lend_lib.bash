# Sourced by the scenario scripts whose programs lend their memory, behind
# scenario_lib.bash.
# shellcheck shell=bash
# shellcheck disable=SC2154 # OUT, own_library_path and others are the script's

# of_a NAME: what `gmb session list` says of tenant a's only session.
of_a() {
  gmb --output json session list --tenant a | awk -v name="\"$1\":" '
    $1 == name { gsub(/[",]/, "", $2); print $2; exit }'
}
a_is() { [ "$(of_a "$1")" = "$2" ]; }
a_has_one_session() {
  [ "$(gmb --output json session list --tenant a | grep -c '"leased_bytes"')" -eq 1 ]
}
# Memory that the other tenant does not need may stay.
a_is_away() { [ "$(of_a evicted_bytes)" -gt $(($(of_a leased_bytes) * 9 / 10)) ]; }

# lends NAME PROGRAM...: with a folder behind its words, the program answers,
# idles, loses its memory to another tenant, answers again; twice. `ready_within`
# is how many seconds its start may take. For `held_back` seconds the other tenant
# still has the memory when the program is asked for the first time. With
# `afterwards`, a function with the program's log and folder, it answers three
# times in all.
lends() {
  local name=$1 log=$OUT/$1.log turn pid taker answers=2
  shift
  mkdir -p "$work/$name"
  start "$log" gmb --socket-dir "$sockets" run --tenant a --park-after 200ms -- \
    env LD_LIBRARY_PATH="$own_library_path" "$@" "$work/$name"
  pid=$started
  check "$name is ready" wait_until "${ready_within:-60}" says "$log" '^ready' || return
  check "$name has one session" wait_until 10 a_has_one_session
  for turn in 1 2; do
    check "$name parks" wait_until 20 a_is gate PARKED
    note "$(of_a leases) leases of $(of_a leased_bytes) bytes"
    start "$OUT/$name.taker.log" gmb --socket-dir "$sockets" hold --tenant b \
      --bytes "${TAKE:-4092MiB}" --fill 1 --wait 20s
    taker=$started
    check "its memory serves another" wait_until 20 a_is_away
    wait_until 20 says "$OUT/$name.taker.log" 'held\|holds\|holding'
    if [ -n "${held_back:-}" ] && [ "$turn" -eq 1 ]; then
      touch "$work/$name/go-$turn"
      sleep "$held_back"
      check "it waits while another has its memory" waits_for "$log" "$turn"
      end "$taker"
    else
      end "$taker"
      touch "$work/$name/go-$turn"
    fi
    check "it answers" wait_until 30 says "$log" "^turn $turn"
  done
  if [ -n "${afterwards:-}" ]; then
    "$afterwards" "$log" "$work/$name"
    answers=3
  fi
  touch "$work/$name/end"
  check "it ends well" ended_well "$pid"
  sed 's/^/      /' "$log"
  check "all was equal" [ "$(grep -c 'equal True' "$log")" -eq $answers ]
  says "$log" 'equal False\|goes on False\|never lends' && fail "see its lines"
}
waits_for() { ! says "$1" "^turn $2"; }
