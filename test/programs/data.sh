# Data bases inside a process. Sourced by dev/test-programs.
# shellcheck shell=bash disable=SC2154

rocksdb() {
	run db_bench --db="$PWD/db" --num=20000 --benchmarks=fillseq,readrandom,readwhilewriting,compact,readrandom \
		--threads=8 --write_buffer_size=1000000 --seed=1 --disable_wal=1 >out 2>&1 || { cat out >&2; return 1; }
	grep -o '([0-9]* of [0-9]* found)' out
}
sqlite() { run "$T/sqlite"; }
leveldb() { run "$T/leveldb"; }
sqlite_shell() {
	run sqlite3 db 'pragma threads=4; pragma cache_size=100; create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
		insert into t select i * 7919 % 60000, hex(i) from n; create index x on t(b, a); pragma integrity_check; select count(*), sum(a) from t;'
}
build sqlite "${CC:-gcc}" -O1 "$OWN/sqlite.c" -lsqlite3 -pthread
build leveldb "${CXX:-g++}" -std=c++17 -O1 "$OWN/leveldb.cc" -lleveldb -pthread
compare rocksdb 60 "db_bench" "rotator/2" "$EVERY"
compare leveldb 60 "$T/leveldb" "rotator/2" "$EVERY"
compare sqlite 60 "$T/sqlite" "rotator/1" "$EVERY"
compare sqlite-shell 60 "sqlite3" - "$EVERY"
