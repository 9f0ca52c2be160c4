# shellcheck shell=bash disable=SC2154
# dev/suite.sh - what dev/conformance and dev/glibc-tests share: each program once on plain libc and once under
# `kochab run`, and a table of those that end differently. Sourced; expects OUT, BUILD and the array `options`.
# What libc answered is kept in $OUT/plain and not asked again.

# once DIR NAME COMMAND...: in a directory of its own; its exit into DIR/NAME, what it said into DIR/NAME.out
once() {
	local dir=$1 name=${2//\//_} work
	shift 2
	work=$(mktemp -d)
	(cd "$work" && timeout -k 2 "${LIMIT:-30}" "$@") >"$OUT/$dir/$name.out" 2>&1 </dev/null
	echo $? >"$OUT/$dir/$name"
	rm -rf "$work"
}

# both NAME PROGRAM ARGS...: nothing where the program is empty, that is, did not build
both() {
	local name=$1
	shift
	[ -s "$1" ] || return
	[ -e "$OUT/plain/${name//\//_}" ] || once plain "$name" "$@"
	once run "$name" "$BUILD/kochab" run "${options[@]}" -- "$@"
}

# together COMMAND NAME...: COMMAND NAME for each, JOBS at a time
together() {
	local command=$1 running=0 t
	shift
	mkdir -p "$OUT/bin" "$OUT/plain" && rm -rf "$OUT/run" && mkdir "$OUT/run"
	echo "$# tests, logs in $OUT/run"
	for t; do
		[ $running -lt "${JOBS:-2}" ] || { wait -n; running=$((running - 1)); }
		"$command" "$t" 2>/dev/null &
		running=$((running + 1))
	done
	wait
}

# Is it one of those whose loss the suite explains (array `explained`, may be unset)?
is_explained() {
	local t
	for t in "${explained[@]:-}"; do [ "$t" != "$1" ] || return 0; done
	return 1
}

# table NAME...: uses the suite's own function `word` for an exit; false when one was lost that is not explained
table() {
	local built=0 passing=0 kept=0 known=0 t name plain run why
	printf '%-36s %-12s %s\n' test libc 'kochab run'
	for t; do
		name=${t//\//_}
		[ -e "$OUT/run/$name" ] || continue
		read -r plain <"$OUT/plain/$name"
		read -r run <"$OUT/run/$name"
		built=$((built + 1))
		why=
		[ "$plain" = 0 ] && passing=$((passing + 1)) && [ "$run" = 0 ] && kept=$((kept + 1))
		[ "$plain" = 0 ] && [ "$run" != 0 ] && is_explained "$t" && known=$((known + 1)) && why=' (explained in doc/posix.md)'
		[ "$plain" = "$run" ] || printf '%-36s %-12s %s%s\n' "$t" "$(word "$plain")" "$(word "$run")" "$why"
	done
	echo "$built built; kept $kept of $passing that pass on libc"
	[ $((kept + known)) = $passing ]
}
