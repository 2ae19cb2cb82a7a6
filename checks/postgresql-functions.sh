# Functions of the scripts that check PostgreSQL on the engine: they read this file. A script sets `build`, `native`, `work` and `data`
# before it starts a server.

pathlength=$(realpath "${PATHLENGTH:-target/release/pathlength}")
port=${PORT:-54321}
passed=0
failed=0
data=
# The subcommand that starts programs of the build, with its options.
run=run

say() { printf '%s\n' "$*"; }

# What counts the server, if it is counted from its start: the numbers of its runs, and the process of the last one.
runs=0
counting=

# PostgreSQL does not run as root.
if [ "$(id -u)" = 0 ]; then
    as_user() { setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$work" "$@"; }
else
    as_user() { "$@"; }
fi

check() { # check WHAT COMMAND...: runs it, tells how it went
    what=$1
    shift
    begin=$(date +%s)
    say "--- $what" >>"$work/output"
    if "$@" >>"$work/output" 2>&1; then
        passed=$((passed + 1)) result=ok
    else
        failed=$((failed + 1)) result=FAILED
    fi
    printf '%-6s %5d s  %s\n' "$result" $(($(date +%s) - begin)) "$what"
    [ "$result" = ok ] || tail -n 15 "$work/output"
}

# Stop the server however this script ends.
server() { head -n 1 "$data/postmaster.pid" 2>/dev/null; }
trap '[ -z "$data" ] || ! process=$(server) || [ -z "$process" ] || kill -QUIT "$process"' EXIT
trap 'exit 1' INT TERM

alpha() { # alpha PROGRAM ARGUMENT...: a program of the build, on the engine
    program=$1
    shift
    # shellcheck disable=SC2086  # a list of words
    as_user "$pathlength" $run "$build/$program" "$@"
}

start() {
    if [ -n "${COUNT:-}" ]; then
        start_counted
    else
        alpha bin/pg_ctl start -w -t 300 -D "$data" -l "$work/log" \
            -o "-p $port -k $work -c listen_addresses=127.0.0.1 -c max_prepared_transactions=2"
    fi
}

# The server as the program of a command that counts it, which COUNT names: count, or caches.
start_counted() { # start_counted [FILE]: saves counts there, instead of a table
    runs=$((runs + 1))
    set -- ${1:+-o "$1"}
    [ $# -gt 0 ] || set -- --by process --format csv -o "$work/run-$runs.csv"
    as_user "$pathlength" "$COUNT" --children "$@" \
        "$build/bin/postgres" -D "$data" -p "$port" -k "$work" -c listen_addresses=127.0.0.1 \
        -c max_prepared_transactions=2 >>"$work/log" 2>&1 &
    counting=$!
    for _ in $(seq 300); do
        sql 'select 1' && return
        kill -0 "$counting" || return
        sleep 1
    done
    return 1
}

# Stops the server. The command that counted it ends, too, and what it counted adds up.
stop() {
    alpha bin/pg_ctl stop -w -t 300 -D "$data" -m "$1" && ended
}

ended() { # ended [STATUS]: the counting of a server that has ended
    [ -n "${COUNT:-}" ] || return 0
    status=0
    wait "$counting" || status=$?
    [ "$status" = "${1:-0}" ] && adds_up "$work/run-$runs.csv"
}

# Whether the table of processes adds up: instructions follow the words of a row, which are quoted if they have commas.
adds_up() {
    sed 's/"[^"]*"//g' "$1" | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "instructions") column = i }
        NR > 1 && $1 != "total" { sum += $column } $1 == "total" { total = $column }
        END { printf "%.0f instructions in %d processes\n", total, NR - 2; exit !(sum == total && total > 1000000) }'
}

# Tells whether a folder of counts, whose command was killed, has what was counted until then.
shows() {
    as_user "$pathlength" count --by process --format csv -o "$work/shown.csv" "$1" && adds_up "$work/shown.csv"
}

# The process of the command that counts the server: the server is its child.
counter() { awk '$1 == "PPid:" { print $2 }' "/proc/$(server)/status"; }

sql() { as_user "$native/bin/psql" -X -q -A -t -v ON_ERROR_STOP=1 -h "$work" -p "$port" postgres -c "$1"; }

tables() { as_user "$native/bin/pgbench" -i -q -h "$work" -p "$port" postgres; }

pgbench() { # pgbench HOST ARGUMENT...: four clients, who keep the history of those before them (-n)
    host=$1
    shift
    as_user "$native/bin/pgbench" -n -c 4 -h "$host" -p "$port" "$@" postgres
}

# Runs a command while the host's own server has the data: loading and checking take long on the engine.
natively() { # natively COMMAND...
    as_user "$native/bin/pg_ctl" start -w -t 300 -D "$data" -l "$work/native.log" \
        -o "-p $port -k $work -c listen_addresses=127.0.0.1" || return
    result=0
    "$@" || result=$?
    as_user "$native/bin/pg_ctl" stop -w -t 300 -D "$data" -m fast && return $result
}

until_true() { # until_true COMMAND...: tries it for ten minutes, as a busy machine starts a server slowly
    for _ in $(seq 600); do
        "$@" && return
        sleep 1
    done
    return 1
}

say 'Building PostgreSQL; the first time takes some minutes.'
builds=$("$pathlength" build postgresql --format csv)
folder() { dirname "$(dirname "$(realpath "$(say "$builds" | awk -F, -v name="$1" '$1 == name { print $2 }')")")"; }
native=$(folder native)

# Prepares a folder for the checks of a build.
prepare() {
    build=$(folder "$1")
    work=$(mktemp -d "${TMPDIR:-/tmp}/postgresql-check.XXXXXX")
    data=$work/data
    # Servers append to it, started by whomever.
    touch "$work/log"
    [ "$(id -u)" != 0 ] || chown -R nobody "$work"
    if ! as_user test -x "$build/bin/postgres" -a -x "$pathlength"; then
        say "PostgreSQL does not run as root, and the user nobody may not read $build or $pathlength."
        exit 1
    fi
}

finish() {
    say "$passed checks passed, $failed failed."
    [ "$failed" = 0 ]
}
