#!/bin/bash
# The built files are protected: dev/hardening --check.
. "$(dirname "$0")/lib.sh"
[ -z "${SAN:-}" ] || skip "not of sanitizer builds"
type -P readelf >/dev/null || skip "no readelf"
expect 0 "" "$TOP/dev/hardening" --check
# it sees missing protections
printf 'int main(void) { return 0; }' >"$T/m.c"
"${CC:-cc}" -no-pie -Wl,-z,norelro,-z,lazy -z execstack -o "$T/weak" "$T/m.c" 2>/dev/null || skip "no compiler"
expect 1 "no read-only relocations" "$TOP/dev/hardening" --check "$T/weak"
expect 1 "no stack without execution" "$TOP/dev/hardening" --check "$T/weak"
mkdir "$T/w" && printf 'int main(int n, char **v) { char a[64]; return a[n] = **v; }' >"$T/m.c"
"${CC:-cc}" -fstack-protector-all -U_FORTIFY_SOURCE -o "$T/w/kochab" "$T/m.c" 2>/dev/null || skip "no compiler"
expect 1 "no FORTIFY" "$TOP/dev/hardening" --check "$T/w/kochab" # canaries are not taken for it
expect 1 "no code that may lie anywhere" "$TOP/dev/hardening" --check "$T/weak"
finish
