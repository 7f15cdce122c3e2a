# Sourced by the scenario scripts: where the programs are, one broker at a
# time, its figures, and the count of steps. Nothing here sleeps for luck:
# wait_until polls with a deadline.
# shellcheck shell=bash
# shellcheck disable=SC2154 # build is the script's

work=$(mktemp -d /tmp/gmb-scenario.XXXXXX)
out=${OUT:-$work} # without OUT, logs are kept only when something failed
mkdir -p "$out"
exec 2>"$out/$(basename "$0").err" # the shell reports every process that is killed
passed=0
skipped=0
failed=0
pids=()   # what is still to be killed at the end
broker=   # pid, empty without one

# program NAME: how to start it, in the array `command_line`.
program() {
  if [ -n "${build:-}" ]; then
    case $1 in
      gpu_* | *_test) command_line=("$build/tests/$1") ;;
      rmm_example) command_line=("$build/rmm/$1") ;;
      *) command_line=("$build/bin/$1") ;;
    esac
  else
    command_line=("${BUNDLE:-.carry}/run" "$1")
  fi
}
run() {
  local command_line
  program "$1"
  shift
  timeout "${LIMIT:-120}" "${command_line[@]}" "$@"
}
# start LOG NAME ARGUMENTS...: in the background, behind the words of `in_front`;
# its pid is in `started`.
in_front=()
start() {
  local log=$1 command_line
  program "$2"
  shift 2
  : >"$log" # now, so that nobody reads an older one
  "${in_front[@]}" "${command_line[@]}" "$@" <&0 >"$log" 2>&1 &
  started=$!
  pids+=("$started")
}

pass() {
  printf 'PASS  %-14s %s\n' "$scenario" "$*"
  passed=$((passed + 1))
}
skip() {
  printf 'SKIP  %-14s %s\n' "$scenario" "$*"
  skipped=$((skipped + 1))
}
fail() {
  printf 'FAIL  %-14s %s\n' "$scenario" "$*"
  failed=$((failed + 1))
}
note() { printf '      %-14s %s\n' "$scenario" "$*"; }
# check WHAT COMMAND...: one step. A command that ends with 77 cannot be tried
# here.
check() {
  local what=$1 code
  shift
  "$@"
  code=$?
  case $code in
    0) pass "$what" ;;
    77) skip "$what" ;;
    *)
      fail "$what"
      return 1
      ;;
  esac
}
# quiet LOG COMMAND...: for checks whose command has much to say.
quiet() {
  local log=$1
  shift
  "$@" >"$log" 2>&1
}
# refused LOG COMMAND...: gmb ended with 1.
refused() {
  quiet "$@"
  [ $? -eq 1 ]
}
# wait_until SECONDS COMMAND...: true as soon as it is.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.05 # between two looks
  done
}
says() { grep -qi -- "$2" "$1" 2>/dev/null; } # LOG PATTERN
gone() { ! kill -0 "$1" 2>/dev/null; }
# ended_well PID: of a child of this shell; waits for it.
ended_well() {
  wait_until 120 gone "$1" && wait "$1"
}
# build_cuda NAME [OPTION...]: preload/NAME.cu, with the runtime linked
# statically, to $work/NAME.
build_cuda() {
  local name=$1
  shift
  if ! command -v nvcc >/dev/null; then skip 'no nvcc here'; return 1; fi
  # shellcheck disable=SC2154 # here is the script's
  quiet "$out/nvcc.log" nvcc -O2 -arch=native -cudart static -o "$work/$name" \
    "$here/preload/$name.cu" "$@" && return
  tail -n 5 "$out/nvcc.log"
  fail "$name is built"
  return 1
}
# part BYTES N OF: rounded down to the granularity.
# shellcheck disable=SC2017 # BYTES * N overflows
part() { echo $(($1 / $3 * $2 / 2097152 * 2097152)); }
mib() { printf '%d MiB' $(($1 / 1048576)); }

gmb() { LIMIT=${LIMIT:-30} run gmb --socket-dir "$sockets" "$@"; }
# pool NAME [UUID]: a figure of the first pool, or of that one.
pool() {
  gmb --output json status 2>>"$out/status.err" | awk -v name="\"$1\":" -v uuid="${2:-}" '
    $1 == "\"uuid\":" { id = $2; gsub(/[",]/, "", id) }
    $1 == name && (uuid == "" || id == uuid) { gsub(/[",]/, "", $2); print $2; exit }'
}
tenant_unreturned() {
  gmb --output json tenant get "$1" | awk '$1 == "\"unreturned_bytes\":" {
    sub(",", "", $2); print $2; exit }'
}
# pool_is NAME OP NUMBER [UUID]
pool_is() {
  local value
  value=$(pool "$1" "${4:-}")
  [ -n "$value" ] && test "$value" "$2" "$3"
}
# At rest: nothing granted or coming back. Memory of contexts, which counts as
# outside, does not matter.
at_rest() {
  pool_is granted_bytes -eq 0 && pool_is scrubbing_bytes -eq 0 &&
    pool_is unreturned_bytes -eq 0
}

# start_broker ARGUMENTS...: of the tenants a, b, c and d.
start_broker() {
  local dir=$work/$scenario
  mkdir -p "$dir"
  sockets=$dir/s
  local config=$dir/gmb.yaml tenant
  {
    echo 'tenants:'
    for tenant in a b c d; do echo "  - {name: $tenant, limit: 100%}"; done
  } >"$config"
  start "$out/$scenario.gmbd.log" gmbd --config "$config" \
    --socket-dir "$sockets" --state-dir "$dir" "$@"
  broker=$started
  if ! wait_until 60 answers; then
    tail -n 5 "$out/$scenario.gmbd.log"
    fail "the broker does not answer"
    return 1
  fi
}
answers() {
  gone "$broker" && return 1
  gmb status >/dev/null 2>&1
}
stop_broker() {
  [ -n "$broker" ] || return 0
  end "$broker" "${1:-TERM}"
  broker=
}
# end PID [SIGNAL]: and wait for it.
end() {
  kill "-${2:-TERM}" "$1" 2>/dev/null
  wait_until 20 gone "$1" || kill -KILL "$1" 2>/dev/null
  wait "$1" 2>/dev/null
  return 0
}
clean_up() {
  local pid
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  wait
  if [ "$failed" -gt 0 ] && [ "$out" = "$work" ]; then
    printf 'logs are in %s\n' "$work"
  else
    rm -rf "$work"
  fi
}
trap clean_up EXIT
# With 77, which CTest shows as skipped, if nothing could be tried.
finish() {
  printf '%d steps failed\n' "$failed"
  [ "$failed" -gt 0 ] || [ "$passed" -gt 0 ] || [ "$skipped" -eq 0 ] || exit 77
  exit "$failed"
}
