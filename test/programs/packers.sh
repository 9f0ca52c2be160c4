# Compressors and cryptographic sums with threads: what they wrote is taken apart by another program, or by themselves
# without us, and must be the file. Sourced by dev/test-programs.
# shellcheck shell=bash disable=SC2154

if [ ! -s "$T/file" ]; then
	awk -v mib="$([ -n "$quick" ] && echo 4 || echo 16)" -v seed=1 -f "$TOP/test/programs/text.awk" >"$T/file"
fi

pigz() { run pigz -p 16 -c "$T/file" | gzip -dc | sha256sum; }
pbzip2() { run pbzip2 -p16 -c "$T/file" | bzip2 -dc | sha256sum; }
lbzip2() { run lbzip2 -n 16 -kc "$T/file" | bzip2 -dc | sha256sum; }
lbzip2_back() { bzip2 -c "$T/file" >packed && run lbzip2 -d -n 16 -kc packed | sha256sum; }
zstd() { run zstd -T16 -q -c "$T/file" | command zstd -dcq | sha256sum; }
xz() { run xz -T16 --block-size=262144 -0 -c "$T/file" | command xz -dc | sha256sum; }
xz_back() { command xz -T2 --block-size=262144 -0 -c "$T/file" >packed && run xz -T16 -dc packed | sha256sum; }
plzip() { run plzip -n 16 -1 -B 262144 -c "$T/file" | command plzip -n 1 -dc | sha256sum; }
plzip_back() { command plzip -0 -B 262144 -c "$T/file" >packed && run plzip -n 16 -dc packed | sha256sum; }
lrzip() { run lrzip -q -l -p 8 -o packed "$T/file" >/dev/null && command lrzip -q -d -p 1 -o back packed >/dev/null && sha256sum <back; }
sevenzip() {
	run 7z a -bd -m0=lzma2 -mx=1 -mmt=8 packed.7z "$T/file" >out || { cat out; return 1; }
	7z x -so packed.7z | sha256sum
}
zpaq() { run zpaq add packed.zpaq "$T/file" -m1 -t8 >out 2>&1 && command zpaq x packed.zpaq "$T/file" -to back >/dev/null 2>&1 && sha256sum <back; }

compare pigz 60 "pigz gzip" "rotator/1 steal/4" "$EVERY"
compare pbzip2 60 "pbzip2 bzip2" "rotator/2" "$EVERY"
compare lbzip2 60 "lbzip2 bzip2" "rotator/1 steal/2" "$EVERY"
compare lbzip2-back 60 "lbzip2 bzip2" "rotator/2" "$EVERY"
compare zstd 60 "zstd" "rotator/2 steal/1" "$EVERY"
compare xz 60 "xz" "rotator/2" "$EVERY"
compare xz-back 60 "xz" - "$EVERY"
compare plzip 60 "plzip" - "$EVERY"
compare plzip-back 60 "plzip" - "$EVERY"
compare lrzip 60 "lrzip" - "$EVERY"
compare sevenzip 60 "7z" - "$EVERY"
compare zpaq 90 "zpaq" - "$EVERY"
