#!/bin/bash
# kochab run says why a program cannot run, or not with the drop-in: then it runs without; and exits as shells do.
. "$(dirname "$0")/lib.sh"
[ -z "${SAN:-}" ] || skip "not with sanitizers: it runs programs on the drop-in, or many threads"
cd "$T" || exit 1

expect 127 "not found in PATH" "$K" run no-such-program-anywhere
expect 127 "No such file" "$K" run ./missing
expect 127 "not found in PATH" "$K" run ''
expect 126 "is a directory" "$K" run "$T"

cp "$(type -P true)" noexec && chmod 644 noexec
expect 126 "not an executable file" "$K" run ./noexec
mkdir p1 p2 && cp noexec p1/prog
expect 126 "p1/prog: not an executable file" env PATH="$T/p1:$T/p2" "$K" run prog
mkfifo -m 755 fifo
expect 126 "not an executable file" "$K" run ./fifo

printf 'just text\n' >text && chmod 755 text
expect 126 "neither an ELF program nor a script" "$K" run ./text
: >empty && chmod 755 empty
expect 126 "neither an ELF program nor a script" "$K" run ./empty
printf '#!/no/such/interpreter -x\n' >script && chmod 755 script
expect 126 "/no/such/interpreter: No such file" "$K" run ./script
printf '#!\n' >bare && chmod 755 bare
expect 126 "names no interpreter" "$K" run ./bare
printf '#!%s/loop\n' "$T" >loop && chmod 755 loop
expect 126 "too many levels" "$K" run ./loop

# Somebody else's rights, which only root can give away, or one's own.
cp "$(type -P true)" suid && chmod 4755 suid
expect 0 "" "$K" run ./suid
cp "$(type -P true)" sgid && chmod 2755 sgid
expect 0 "" "$K" run ./sgid
if [ "$(id -u)" = 0 ]; then
	chown 65534 suid && chmod 4755 suid
	expect 0 "setuid bit, the loader ignores LD_PRELOAD for it: it runs without Kochab" "$K" run ./suid
	chown 0:65534 sgid && chmod 2755 sgid
	expect 0 "setgid bit" "$K" run ./sgid
fi
if command -v setcap >/dev/null && cp "$(type -P true)" cap && setcap cap_net_raw+ep cap 2>/dev/null; then
	chmod 755 "$T"
	mkdir all && cp "$K" "$BUILD/libkochab-posix.so.0" all/ # whom that is may not see the build
	expect 0 "file capabilities" setpriv --reuid 65534 --regid 65534 --clear-groups all/kochab run ./cap
fi

# Without /proc the command finds its library by its own name.
if unshare -m mount -t tmpfs none /proc 2>/dev/null; then
	expect 0 "" unshare -m sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$K" run true
fi

# Static programs, position dependent or not.
echo 'int main(void) { return 9; }' >nine.c
for how in -static -static-pie; do
	${CC:-gcc} $how -o static nine.c 2>/dev/null || continue
	expect 9 "static: statically linked, no library can be loaded into it: it runs without Kochab" "$K" run ./static
	static=1
done
[ -n "${static:-}" ] || { echo "no static libc to test with"; failures=1; }

# The ELF header of a good program, with its class and then its machine changed.
patch() { # FILE OFFSET BYTES
	cp "$(readlink -f "$(type -P true)")" "$1" && printf '%b' "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
patch bits32 4 '\001'
expect 0 "a 32-bit program" "$K" run ./bits32 # so it says, and is none
patch machine 18 '\377\0'
expect 126 "built for another machine" "$K" run ./machine
printf '#!%s/bits32\n' "$T" >script32 && chmod 755 script32
expect 0 "bits32: a 32-bit program" "$K" run ./script32
printf '\177ELF' >short && chmod 755 short
expect 126 "neither an ELF program" "$K" run ./short
head -c 200 "$(readlink -f "$(type -P true)")" >truncated && chmod 755 truncated
expect 126 "kochab: " "$K" run ./truncated
${CC:-gcc} -c -o object nine.c && chmod 755 object
expect 126 "not a program" "$K" run ./object

# Another libc's, itself and by a script.
if command -v musl-gcc >/dev/null && musl-gcc -o musl nine.c && { ./musl; [ $? = 9 ]; }; then
	printf '#!%s/musl\n' "$T" >script-musl && chmod 755 script-musl
	expect 9 "musl: linked with musl, and the drop-in is for glibc: it runs without Kochab" "$K" run ./musl
	expect 9 "musl: linked with musl" "$K" run ./script-musl
	expect 9 "musl: linked with musl" "$K" run --malloc kochab --children no ./musl
else
	echo "no musl-gcc: its programs are not tried"
fi

expect 126 "KOCHAB_LIB=/no/such: neither" env KOCHAB_LIB=/no/such "$K" run true
finish
