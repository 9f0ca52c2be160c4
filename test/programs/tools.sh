# Tools that people use every day, most of them starting others. Sourced by dev/test-programs.
# shellcheck shell=bash disable=SC2154

small_project() {
	local i
	for i in 1 2 3 4 5 6 7 8; do echo "int f$i(int x) { return x * $i; }" >f$i.c; done
	{ for i in 1 2 3 4 5 6 7 8; do echo "int f$i(int);"; done; echo '#include <stdio.h>'
	  echo 'int main(void) { printf("%d\n", f1(1) + f2(2) + f3(3) + f4(4) + f5(5) + f6(6) + f7(7) + f8(8)); return 0; }'; } >main.c
}
git_pack() {
	local i
	export HOME=$PWD GIT_AUTHOR_DATE='2000-01-01 00:00 +0000' GIT_COMMITTER_DATE='2000-01-01 00:00 +0000'
	run git init -q r && cd r || return
	run git config user.name n && run git config user.email e@e && run git config pack.threads 8 && run git config index.threads 4
	for i in $(seq 300); do head -c $((i * 300)) "$T/file" >f"$i"; done
	run git add . && run git commit -qm one
	for i in $(seq 1 3 300); do echo "$i" >>f"$i"; done
	run git commit -qam two && run git gc -q --aggressive && run git fsck --full 2>&1
	run git grep --threads 8 -c aa -- 'f1*' | sha256sum
	run git rev-parse HEAD
}
gcc_lto() { small_project; run gcc -O2 -flto=4 -o p ./*.c && ./p; }
make_j() {
	small_project
	printf 'p: %s\n\tgcc -o $@ $^\n' "main.o f1.o f2.o f3.o f4.o f5.o f6.o f7.o f8.o" >Makefile
	run make -s -j4 && ./p
}
cmake_ninja() {
	small_project
	printf 'cmake_minimum_required(VERSION 3.13)\nproject(p C)\nfile(GLOB s *.c)\nadd_executable(p ${s})\n' >CMakeLists.txt
	run cmake -G Ninja -B b . >out 2>&1 && run ninja -C b -j 4 >>out 2>&1 || { tail -5 out; return 1; }
	b/p
}
curl_parallel() {
	local port files i code
	port=$(free_port)
	make_files .
	/usr/bin/python3 -m http.server --bind 127.0.0.1 "$port" >/dev/null 2>&1 &
	files=$!
	run curl -sS --retry 20 --retry-connrefused --retry-delay 1 --parallel --parallel-max 4 \
		$(for i in 0 1 2 3 4 5 6 7; do echo "http://localhost:$port/f$i -o g$i"; done)
	code=$?
	kill $files
	cat g* | sha256sum
	return $code
}
aria() {
	local port files code
	port=$(free_port)
	make_files .
	(cd "$PWD" && exec /usr/bin/python3 -m http.server --bind 127.0.0.1 "$port" >/dev/null 2>&1) &
	files=$!
	sleep 0.5
	run aria2c -q -x 4 -j 4 -d got -Z http://127.0.0.1:"$port"/f{0..7}
	code=$?
	kill $files
	cat got/* | sha256sum
	return $code
}
rsync() { mkdir a && make_files a && run rsync -az --checksum a/ b/ && cat b/* | sha256sum; }
gnu_parallel() { seq 20 | run parallel -j 4 -k 'echo $(({} * {}))' | tr '\n' ' '; }
qemu() {
	run qemu-system-x86_64 -machine q35 -accel tcg,thread=multi -smp 2 -m 64 -display none -serial none -no-reboot \
		-bios /usr/share/qemu/qboot.rom -qmp stdio <<-END | grep -o '"running": [a-z]*\|"event": "[A-Z]*"' | sort -u
		{"execute": "qmp_capabilities"}
		{"execute": "query-status"}
		{"execute": "stop"}
		{"execute": "quit"}
	END
}
gdb_inside() { # a debugger that runs on Kochab, and what it debugs, too
	printf 'int f(int x) { return x + 1; }\nint main(void) { return f(6) - 7; }\n' >p.c && gcc -g -o p p.c &&
		run gdb -q -batch -ex 'break f' -ex run -ex 'print x' -ex 'finish' -ex continue ./p 2>&1 | grep -oE '^\$.*|exited normally'
}
tmux() {
	run tmux -S "$PWD/s" -f /dev/null new-session -d 'echo inside >said; sleep 0.2' && sleep 0.8 && cat said
}
tar_pipe() { mkdir a && make_files a && run tar -I 'pigz -p 4' -cf a.tgz a && tar -xzOf a.tgz | sha256sum; }
ripgrep() { run rg -j 4 -c aa "$T/file"; }

compare git-pack 90 "git" - "$EVERY"
compare gcc-lto 60 "gcc" - "$EVERY"
compare make-j 60 "make gcc" - "$EVERY"
compare cmake-ninja 60 "cmake ninja" - "$EVERY"
compare curl-parallel 60 "curl /usr/bin/python3" "rotator/1" "$EVERY"
compare aria 60 "aria2c" - "$EVERY"
compare rsync 30 "rsync" - "$EVERY"
compare gnu-parallel 60 "parallel" - "$EVERY"
compare qemu 60 "qemu-system-x86_64 /usr/share/qemu/qboot.rom" - "$EVERY"
compare gdb-inside 60 "gdb gcc" - "$EVERY"
compare tmux 30 "tmux" - "$EVERY"
compare tar-pipe 30 "tar pigz" "rotator/2" "$EVERY"
compare ripgrep 30 "rg" - "$EVERY"
