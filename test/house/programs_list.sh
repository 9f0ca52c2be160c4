#!/bin/bash
# doc/programs.md has the table that dev/test-programs --list prints.
. "$(dirname "$0")/lib.sh"

"$TOP/dev/test-programs" --list >"$T/is"
sed -n '/^| --- /,/^<!-- end/p' "$TOP/doc/programs.md" | sed -n '/^| [a-z]/p' | sed -n '1,/^<!-- end/p' >"$T/all"
head -n "$(wc -l <"$T/is")" "$T/all" >"$T/said"
[ -s "$T/is" ] || { echo "nothing listed"; failures=1; }
diff "$T/said" "$T/is" || { echo "doc/programs.md is not what dev/test-programs --list says"; failures=1; }
finish
