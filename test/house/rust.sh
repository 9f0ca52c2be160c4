#!/bin/bash
# lang/rust: its tests pass with the library that was built, without a network.
# timeout: 600
. "$(dirname "$0")/lib.sh"
command -v cargo >/dev/null || skip "no cargo"
[ -e "$BUILD/libkochab.so.0" ] || skip "no shared library in this build"
[ -z "${SAN:-}" ] || skip "a sanitizer's library must come first"
cp -r "$TOP/lang/rust" "$T/rust" && cd "$T/rust" || exit 1
export CARGO_TARGET_DIR=$T/target LIBKOCHAB_DIR=$BUILD LD_LIBRARY_PATH=$BUILD
for vps in 1 2; do
	KOCHAB_VPS=$vps cargo test --offline >out 2>&1 && grep -q "8 passed; 0 failed" out || { tail -40 out; failures=$((failures + 1)); }
	KOCHAB_VPS=$vps cargo run --offline --example pool >out 2>&1 && grep -q "15518 divisors" out || { tail -40 out; failures=$((failures + 1)); }
done
finish
