# Languages' own threads, and the tests that interpreters bring with them. Sourced by dev/test-programs.
# shellcheck shell=bash disable=SC2154

PYTHON=/usr/bin/python3
cpython() { # TEST [ONLY THESE]
	run $PYTHON -m test "$1" ${2:+-m "$2"} >out 2>&1
	grep -q '^Tests result: SUCCESS' out || grep -E '^(FAIL|ERROR|[A-Za-z.]*Error):' out >&2
	grep '^Tests result' out || { tail -n 30 out >&2; return 1; }
}
python_thread() { cpython test_thread; }
python_queue() { cpython test_queue; }
python_threading() { cpython test_threading; }
python_threading_quick() { cpython test_threading '*EventTests*'; }
python_futures() { cpython test_concurrent_futures; }
python_futures_quick() { cpython test_concurrent_futures 'ThreadPool*'; }
python_asyncio() { cpython test_asyncio; }
python_subprocess() { cpython test_subprocess; }
python_ssl() { cpython test_ssl; }
python_signal() { cpython test_signal; }
python_select() { cpython test_select; }
python_selectors() { cpython test_selectors; }
python_mp_threads() { cpython test_multiprocessing_fork 'WithThreads*'; }
python_fork1() { cpython test_fork1; }
python_socketserver() { cpython test_socketserver; }
python_httpservers() { cpython test_httpservers; }
python_threadedtempfile() { cpython test_threadedtempfile; }
python_threadsignals() { cpython test_threadsignals; }
python_local() { cpython test_threading_local; }
python_io() { cpython test_io '*Buffered*'; }
python_logging() { cpython test_logging; }
python_faulthandler() { cpython test_faulthandler; }

TESTS='/usr/lib/python3*/test/test_threading.py'
compare python-thread 60 "$TESTS" "rotator/1 rotator/2" "$EVERY"
compare python-threading-quick 60 "$TESTS" "rotator/2" "rotator/1"
compare python-futures-quick 60 "$TESTS" - "rotator/1"
compare python-queue 90 "$TESTS" - "$EVERY"
compare python-threading 120 "$TESTS" - "$EVERY"
compare python-futures 400 "$TESTS" - "rotator/2"
PACKAGES=/usr/lib/python3/dist-packages
python_zmq() { run $PYTHON "$OWN/broker.py"; }
compare python-zmq 60 $PACKAGES/zmq - "$EVERY"
python_grpc() { run $PYTHON "$OWN/calls.py"; }
compare python-grpc 90 $PACKAGES/grpc - "$EVERY"
python_numba() { run $PYTHON "$OWN/prange.py"; }
compare python-numba 90 $PACKAGES/numba - "$EVERY"
# these take from seconds to minutes, and wait more than they compute
for t in ssl select selectors mp-threads socketserver httpservers threadedtempfile threadsignals local io; do
	compare python-$t 300 "$TESTS" - "rotator/1 steal/2"
done
for t in asyncio subprocess signal fork1 logging faulthandler; do
	compare python-$t 300 "$TESTS" - "rotator/2"
done

java_threads() { run javac -d . "$OWN/Threads.java" && run java -cp . Threads; }
node_workers() { run node "$OWN/workers.js"; }
perl_threads() { run perl -e 'use threads; use threads::shared; use Thread::Queue;
	my $n :shared = 0; my $q = Thread::Queue->new; my $r = Thread::Queue->new;
	my @t = map { threads->create(sub { while (defined(my $x = $q->dequeue)) { { lock($n); $n += $x; } $r->enqueue($x * 2); } }) } 1 .. 8;
	$q->enqueue($_) for 1 .. 500; $q->end; $_->join for @t;
	my $s = 0; $s += $r->dequeue for 1 .. 500; print "$n $s\n";'; }
ruby_threads() { run ruby -e 'q = Queue.new; m = Mutex.new; n = 0
	t = 8.times.map { Thread.new { while (x = q.pop) != :end; m.synchronize { n += x }; sleep 0.0001 if x % 50 == 0; end } }
	1.upto(1000) { |i| q << i }; 8.times { q << :end }; t.each(&:join); puts n
	r, w = IO.pipe; Thread.new { sleep 0.01; w.puts "piped"; w.close }; puts r.read
	puts 4.times.map { |i| Ractor.new(i) { |k| (1..10000).sum { |x| x % (k + 1) } } }.map(&:take).inspect
	puts `echo child`; c = ConditionVariable.new; ok = false
	a = Thread.new { m.synchronize { c.wait(m) until ok; puts "told" } }; m.synchronize { ok = true; c.signal }; a.join
	begin; require "timeout"; Timeout.timeout(0.05) { sleep }; rescue Timeout::Error; puts "late"; end' 2>/dev/null; }
erlang() { run erl -noshell -eval '
	Self = self(), [spawn(fun() -> Self ! {N, lists:sum(lists:seq(1, N * 10))} end) || N <- lists:seq(1, 1000)],
	S = lists:sum([receive {N, X} -> X end || N <- lists:seq(1, 1000)]), io:format("~p~n", [S]),
	{ok, L} = gen_tcp:listen(0, [binary, {active, false}]), {ok, P} = inet:port(L),
	spawn(fun() -> {ok, A} = gen_tcp:accept(L), gen_tcp:send(A, "hello"), gen_tcp:close(A) end),
	{ok, C} = gen_tcp:connect("localhost", P, [binary, {active, false}]), io:format("~p~n", [gen_tcp:recv(C, 5)]),
	file:write_file("f", binary:copy(<<"x">>, 100000)), {ok, B} = file:read_file("f"), io:format("~p~n", [byte_size(B)]),
	io:format("~s", [os:cmd("echo child")]), halt().'; }
erlang_computes() { run escript "$OWN/processes.escript"; }
sbcl_threads() { run sbcl --script "$OWN/threads.lisp"; }
php() { run php -r 'for ($i = 0, $s = 0; $i < 100000; $i++) $s += $i % 7; echo $s, "\n", shell_exec("echo child");'; }
lua() { run lua5.4 -e 'local f = io.popen("echo child") print(f:read("l"), f:close())'; }
std_cc() { run "$T/std-cc"; }
std_rs() { run "$T/std-rs"; }
ghc_threads() { run "$T/ghc-threads" +RTS -N4; }
go_cgo() { run "$T/go-cgo"; }
build std-cc "${CXX:-g++}" -std=c++20 -O1 "$OWN/std.cc" -pthread
build std-rs rustc --edition 2021 -O "$OWN/std.rs"
build go-cgo env CGO_ENABLED=1 GO111MODULE=off sh -c 'exec go build -o "$2" "$0"' "$OWN/cgo.go"
build ghc-threads ghc -threaded -rtsopts -O0 -outputdir "$T/ghc" "$OWN/threads.hs"
compare std-cc 60 "$T/std-cc" "rotator/1 steal/2" "$EVERY"
compare std-rs 60 "$T/std-rs" "rotator/1 steal/2" "$EVERY"
compare java-threads 90 "java javac" "rotator/2" "$EVERY"
compare go-cgo 60 "$T/go-cgo" - "$EVERY"
compare node-workers 60 "node" "steal/2" "$EVERY"
compare perl-threads 60 "perl" - "$EVERY"
compare ruby-threads 60 "ruby" - "$EVERY"
compare erlang 60 "erl" - "$EVERY"
compare erlang-computes 60 "erl escript" - "$EVERY"
compare sbcl-threads 60 "sbcl" - "$EVERY"
compare php 60 "php" - "$EVERY"
compare lua 60 "lua5.4" - "$EVERY"
compare ghc-threads 20 "$T/ghc-threads" - "$EVERY"
