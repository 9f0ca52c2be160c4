#!/bin/bash
# timeout: 900
# Parallel compressors that know nothing of us, with 64 threads on 1, 2 and 4 virtual processors: what they wrote
# decompresses, on plain threads, to the same bytes. KB_TEST_MIB is the size of the file (24).
set -u
KOCHAB_BIN=${KOCHAB_BIN:-${BUILD:-build}/kochab}
[ -x "$KOCHAB_BIN" ] || { echo "no $KOCHAB_BIN"; exit 77; }
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT
failed=0 ran=0

# Half text-like, half noise, from the seed: the same file for the same seed.
generate() {
	awk -v mib="${KB_TEST_MIB:-24}" -v seed="${KB_TEST_SEED:-1}" -f "${BASH_SOURCE[0]%/*}/../programs/text.awk" >"$1"
}

try() { # VPS DECOMPRESS... -- COMPRESS...
	local vps=$1 undo=() rc
	shift
	while [ "$1" != -- ]; do undo+=("$1"); shift; done
	shift
	command -v "$1" >/dev/null && command -v "${undo[0]}" >/dev/null || { echo "no $1"; return; }
	ran=$((ran + 1))
	timeout -s QUIT -k 5 300 "$KOCHAB_BIN" run --vps "$vps" -- "$@" "$T/file" >"$T/packed"
	rc=$?
	if [ $rc != 0 ]; then
		echo "FAIL $* on $vps: exit $rc"
		failed=1
	elif ! "${undo[@]}" <"$T/packed" | cmp - "$T/file"; then
		echo "FAIL $* on $vps: other bytes"
		failed=1
	fi
}

generate "$T/file"
for vps in 1 2 4; do
	try $vps gzip -dc -- pigz -p 64 -c
	try $vps bzip2 -dc -- pbzip2 -p64 -c
	try $vps zstd -dcq -- zstd -T64 -q -c
	try $vps xz -dc -- xz -T64 --block-size=262144 -0 -c
done
[ $ran -gt 0 ] || { echo "none of pigz, pbzip2, zstd, xz is installed"; exit 77; }
exit $failed
