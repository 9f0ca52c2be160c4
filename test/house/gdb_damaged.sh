#!/bin/bash
# The debugger helper in a damaged program: what cannot be read is told in a line, the rest is shown, and a name does nothing
# to the terminal. (dev/fuzz/run gdb does it at random.)
. "$(dirname "$0")/lib.sh"
limit=60
. "$(dirname "$0")/gdb_lib.sh"
[ "$(gdb -batch -ex 'python print("yes")' 2>/dev/null)" = yes ] || skip "gdb has no Python"
[ "$(uname -m)" = x86_64 ] || skip "the helper is tested on x86-64 only"

cp "$TOP/dev/fuzz/gdb.c" "$T/hamlet.c"
build_hamlet
export KOCHAB_VPS=2

cat >"$T/damage.py" <<'END'
table = "kbi_descriptor_table.at[%d]."
used = int(gdb.parse_and_eval("kbi_descriptor_table.used.v_"))
parked = [i for i in range(used) if gdb.parse_and_eval((table + "name") % i).string() == "parked"]
name = gdb.parse_and_eval(("&" + table + "name") % parked[0])
gdb.selected_inferior().write_memory(int(name), b"\x1b[2Jx\0")
gdb.execute(("set var " + table + "task.state.v_ = 77ul << 32") % parked[1])
gdb.execute(("set var " + table + "task.ctx.sp = (void *)8") % parked[2])
END
ask damaged -ex 'break stop_here' -ex run -x "$T/damage.py" -ex "source $TOP/dev/kochab-gdb.py" \
	-ex "kochab vps" -ex "kochab threads" -ex "kochab apply all bt" \
	-ex 'set var kbi_vp_n = 4000000000' -ex "kochab vps" \
	-ex 'set var kbi_descriptor_table.used.v_ = 4294967295' -ex 'echo many\n' -ex "kochab threads" \
	-ex 'set var kbi_descriptor_table.at = (void *)4096' -ex 'echo nowhere\n' -ex "kochab threads" -ex "kochab apply all bt" \
	-ex "kochab bt 1" -ex 'echo last\n' -ex 'set var kbi_vps = (void *)8' -ex "kochab vps" -ex 'echo over\n' "$T/hamlet"
has damaged '^ +[0-9]+  waiting on VP [01] +\\x1b\[2Jx +parks'
has damaged '^ +[0-9]+  damaged '
has damaged '^\(its stack pointer is 0x8\)'
has damaged '^ +[0-9]+  waiting on VP [01] +parked +parks'
has damaged '^#[0-9]+ +.*waits \(depth='
has damaged '^VP 1023 '
has damaged '^over$'
LC_ALL=C grep -q $'\033' "$T/damaged" && { echo "control characters"; failures=$((failures + 1)); }
grep -E 'Python|Traceback' "$T/damaged" && failures=$((failures + 1))
for part in many nowhere; do
	n=$(sed -n "/^$part\$/,/^[a-z]\+\$/p" "$T/damaged" | wc -l)
	[ "$n" -lt 400 ] || { echo "$part: $n lines"; failures=$((failures + 1)); }
done
[ "$failures" = 0 ] || show damaged | grep -v 'VP [0-9]*  (C' | head -n 120
finish
