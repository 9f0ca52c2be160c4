#!/bin/bash
# The table of names is complete and true: every thread function that the installed libc exports has a row; every row
# that says OURS or BOTH is exported by the drop-in, and nothing else is; doc/posix.md shows the table as it is.
set -u
shopt -s lastpipe # check counts in this shell
cd "$(dirname "$0")/../.." || exit 2
BUILD=${BUILD:-build}
lib=$BUILD/libkochab-posix.so.0
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT
failed=0

[ -e "$lib" ] || { echo "no $lib"; exit 77; }
libc=$(ldd "$lib" | awk '$1 ~ /^libc\.so/ { print $3 }')
[ -e "$libc" ] || { echo "no glibc here"; exit 77; }

exports() { nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u; }
# the names that the tables of stdio define
stdio_rows() { sed -nE 's/^(CALL|FAST)\([^,]*, ([A-Za-z0-9_]+),.*/\2/p; s/^(PRINT|HAND)\(([A-Za-z0-9_]+)[,)].*/\2/p' src/posix/stdio.def; }
unsafe_rows() { sed -nE "s/^(COPY|LOCK|ENTRY|HENTRY|STATE)\([^,]*, ([A-Za-z0-9_]+),.*/\2/p; s/^($1)\(([A-Za-z0-9_]+),.*/\2/p" src/posix/unsafe.def; }
path_rows() { sed -nE 's/^PATH\([^,]*, ([A-Za-z0-9_]+),.*/\1/p; s/^HAND\(([A-Za-z0-9_]+)\)/\1/p' src/posix/path.def; }
# call_rows KINDS: these rows begin with a type, rows of ALSO and LEFT with the name
call_rows() {
	sed -nE "s/^($1)\(//p" src/posix/call.def | sed -E 's/^(ssize_t|int|void|pid_t|FILE \*), //; s/,.*//'
}
defined() { { rows 'OURS|BOTH'; stdio_rows; path_rows; unsafe_rows HAND; call_rows 'TRANSFER|POLL|APART|LENT|OPENS|DISK|GIVEN|AT_ONCE|HAND|ALSO'; } | sort; }
rows() { sed -nE "s/^($1)\(([A-Za-z0-9_]+),.*/\2/p" src/posix/names.def | sort; }

# check WHAT: standard input is the list of errors
check() {
	if grep . | sed "s|^|$1: |" | head -n 20 | grep .; then failed=1; fi
}

{ rows 'OURS|BOTH|PASS'; stdio_rows; unsafe_rows 'HAND|SAFE|FREE'; } | sort | uniq -d | check "twice in names.def"
{ rows 'OURS|BOTH|PASS'; stdio_rows; path_rows; unsafe_rows HAND; call_rows '[A-Z_]+'; } | sort | uniq -d | check "twice in call.def"
{
	exports "$libc"
	old=${libc%/*}/libpthread.so.0 # before glibc 2.34
	[ ! -e "$old" ] || exports "$old"
} | grep -E '^(__)?(pthread_|sem_|thrd_|mtx_|cnd_|tss_|call_once$|sched_)' | sort -u >"$T/libc"
[ "$(wc -l <"$T/libc")" -gt 150 ] || { echo "too few names found in $libc"; exit 1; }
comm -23 "$T/libc" <(rows 'OURS|BOTH|PASS') | check "libc exports it, names.def lacks it"
exports "$lib" | grep -v '^kb_' >"$T/ours"
comm -13 "$T/ours" <(defined) | check "names.def says it is ours, the drop-in does not export it"
comm -23 "$T/ours" <(defined) | check "the drop-in exports it, names.def does not say so"
sed -n '/^<!-- names -->/,/^<!-- end -->/p' doc/posix.md | diff - <(echo '<!-- names -->'; dev/posix-names; echo '<!-- end -->') |
	check "doc/posix.md is not dev/posix-names"
sed -n '/^<!-- calls -->/,/^<!-- end -->/p' doc/posix.md | diff - <(echo '<!-- calls -->'; dev/posix-names calls; echo '<!-- end -->') |
	check "doc/posix.md is not dev/posix-names calls"
sed -n '/^<!-- unsafe -->/,/^<!-- end -->/p' doc/unsafe.md | diff - <(echo '<!-- unsafe -->'; dev/posix-names unsafe; echo '<!-- end -->') |
	check "doc/unsafe.md is not dev/posix-names unsafe"

# The functions that POSIX (issue 7, XSH 2.9.1) does not require to be thread-safe.
tr -s ' \n' '\n' <<'END' | grep . | sort | comm -23 - <(unsafe_rows 'HAND|SAFE|FREE' | sort) | check "unsafe.def lacks it"
asctime basename catgets crypt ctime dbm_clearerr dbm_close dbm_delete dbm_error dbm_fetch dbm_firstkey dbm_nextkey
dbm_open dbm_store dirname dlerror drand48 encrypt endgrent endpwent endutxent ftw getc_unlocked getchar_unlocked getdate
getenv getgrent getgrgid getgrnam gethostent getlogin getnetbyaddr getnetbyname getnetent getopt getprotobyname
getprotobynumber getprotoent getpwent getpwnam getpwuid getservbyname getservbyport getservent getutxent getutxid
getutxline gmtime hcreate hdestroy hsearch inet_ntoa l64a lgamma lgammaf lgammal localeconv localtime lrand48 mrand48 nftw
nl_langinfo ptsname putc_unlocked putchar_unlocked putenv pututxline rand readdir setenv setgrent setkey setpwent
setutxent strerror strsignal strtok system ttyname unsetenv wcstombs wctomb
ctermid tmpnam mbrlen mbrtowc mbsnrtowcs mbsrtowcs wcrtomb wcsnrtombs wcsrtombs
ecvt fcvt gcvt gethostbyaddr gethostbyname
END
exit $failed
