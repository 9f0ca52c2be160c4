#!/bin/bash
# make install into an empty directory; C and C++ programs are then built against it by pkg-config and
# by CMake, and run; make uninstall leaves nothing.
. "$(dirname "$0")/lib.sh"
D=$T/root
P=/opt/kochab

# The installed tree must come from the files built already: only the command is linked again.
run_make() {
	make -C "$TOP" --no-print-directory BUILD="$BUILD" NODEPS=1 PREFIX=$P DESTDIR="$D" SAN="${SAN:-}" \
		${CC:+CC="$CC"} ${CXX:+CXX="$CXX"} "$1" >"$T/make.log" 2>&1 || {
		echo "make $1 failed"; tail -n 20 "$T/make.log"; exit 1; }
}
[ -z "${SAN:-}" ] || skip "not in a sanitizer build"
# A compiler whose reader ends first complains of its pipe, now and then.
grep -nE '\$\((CC|CXX)\)[^|&]*\| *(grep -q|head )' "$TOP/Makefile" && { echo "a reader that stops early"; exit 1; }
export MAKEFLAGS='' MAKELEVEL=''
# A build directory of its own, so that the other tests keep theirs; objects are copied, not compiled.
cp -a "$BUILD" "$T/build" && rm -rf "$T/build/test-log"
find "$T/build" -name '*.d' -exec sed -i "s|^$BUILD/|$T/build/|; s|^${BUILD#"$TOP"/}/|$T/build/|" {} +
BUILD=$T/build
run_make install

for f in bin/kochab lib/libkochab.a lib/libkochab.so lib/libkochab.so.0 lib/libkochab-posix.so lib/libkochab-posix.so.0 \
	include/kochab/kochab.h include/kochab/sync.h include/kochab/task.h include/kochab/kochab.hpp include/kochab/task.hpp include/kochab/io.h lib/pkgconfig/kochab.pc lib/pkgconfig/kochab-posix.pc lib/pkgconfig/kochab-malloc.pc \
	lib/cmake/Kochab/KochabConfig.cmake share/man/man1/kochab.1 share/man/man3/kb_thread_create.3 \
	share/man/man7/kochab.7 share/doc/kochab/LICENSE share/kochab/bench/report share/kochab/bench/limits.def; do
	[ -s "$D$P/$f" ] || { echo "not installed: $f"; failures=1; }
done
# the files that the installed README names are there, too, except the sources
links=$(grep -oE '(doc|example)/[a-z0-9_/.-]+\.(md|svg|cc?)|example/[a-z]+/' "$D$P/share/doc/kochab/README.md" | sort -u)
[ -n "$links" ] || { echo "README names no page"; failures=1; }
for f in $links; do
	[ -s "$D$P/share/doc/kochab/$f" ] || { echo "README names $f, which is not installed"; failures=1; }
done
grep -rn '@[A-Z_]*@' "$D$P/lib/pkgconfig" "$D$P/lib/cmake" "$D$P/share/man" && failures=1
soname=$(readelf -d "$D$P/lib/libkochab.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[ "$soname" = libkochab.so.0 ] || { echo "SONAME is '$soname'"; failures=1; }
# Each header of the source is there, and each that is there is the source's; the layer's is kept beside it.
for h in "$TOP"/include/kochab/*.h "$D$P"/include/kochab/*.h; do
	f=${h##*/} source=$TOP/include/kochab
	[ -e "$source/$f" ] || source=$TOP/mpi/include/kochab
	cmp -s "$D$P/include/kochab/$f" "$source/$f" || { echo "headers differ: $f"; failures=1; }
done
for l in "$D$P"/lib/libkochab-mpi-*.so.0; do
	[ ! -e "$l" ] || [ -e "$D$P/include/kochab/mpi.h" ] || { echo "kochab/mpi.h is not installed"; failures=1; }
done

cat >"$T/native.c" <<'END'
#include <kochab/kochab.h>
#include <stdio.h>
static void *body(void *arg) { return arg; }
int main(void)
{
	kb_thread_t t;
	void *result = 0;
	if (kb_thread_create(&t, 0, body, &t) != 0 || kb_thread_join(t, &result) != 0 || result != &t)
		return 1;
	printf("native %s\n", kb_version());
	return 0;
}
END
cp "$T/native.c" "$T/native.cc"
cat >"$T/posix.cc" <<'END'
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>
int main()
{
	std::mutex m;
	std::vector<std::thread> all;
	int sum = 0;
	for (int i = 0; i < 100; i++)
		all.emplace_back([&] { std::lock_guard<std::mutex> hold(m); sum++; });
	for (auto &t : all)
		t.join();
	std::printf("posix %d\n", sum);
	return sum == 100 ? 0 : 1;
}
END
export LD_LIBRARY_PATH="$D$P/lib"
version=$(sed -n 's/^.define KOCHAB_VERSION "\(.*\)"$/\1/p' "$TOP/include/kochab/version.h")

build_and_expect() { # TEXT PROGRAM COMMAND...
	local text=$1 program=$2
	shift 2
	if ! "$@" >"$T/out" 2>&1; then
		echo "does not build: $*"
		cat "$T/out"
		failures=$((failures + 1))
		return
	fi
	expect 0 "$text" "$program"
}

needs_allocator() { # PROGRAM
	readelf -d "$1" | grep -q 'NEEDED.*libkochab-malloc.so.0' || { echo "$1 does not need the allocator"; failures=$((failures + 1)); }
}

# pair_links A B: both are in the program, which runs. MPI's own compiler links a layer; there is no program of two MPIs.
pair_links() {
	local compiler=${CC:-gcc} mpi threads=kochab x words
	[ "$1" != "$2" ] && [ "$1" != kochab-mpi ] && [ "$2" != kochab-mpi ] || return 0
	[[ $1 != kochab-mpi-* || $2 != kochab-mpi-* ]] || return 0
	for x; do
		[[ $x != kochab-mpi-* ]] || { mpi=${x#kochab-mpi-} && compiler=mpicc.$mpi; }
		[ "$x" != kochab-posix ] || threads= # it has the native interface
	done
	command -v "$compiler" >/dev/null || return 0
	read -r -a words <<<"$(pkg-config --cflags --libs "$1" "$2" $threads)"
	build_and_expect "native $version" "$T/pair" env OMPI_CC="${CC:-gcc}" MPICH_CC="${CC:-gcc}" \
		"$compiler" -Wl,--as-needed "$T/native.c" -o "$T/pair" "${words[@]}"
	for x; do
		[ "$x" = kochab ] || readelf -d "$T/pair" | grep -q "NEEDED.*lib$x\\.so" ||
			{ echo "a program that was linked with $1 and $2 does not need $x"; failures=$((failures + 1)); }
	done
}

if command -v pkg-config >/dev/null; then
	# pkg-config puts the DESTDIR in front of the paths
	export PKG_CONFIG_PATH="$D$P/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$D"
	[ "$(pkg-config --modversion kochab)" = "$version" ] || { echo "pkg-config: wrong version"; failures=1; }
	read -r -a native <<<"$(pkg-config --cflags --libs kochab)"
	read -r -a posix <<<"$(pkg-config --cflags --libs kochab-posix)"
	build_and_expect "native $version" "$T/c" "${CC:-gcc}" -Wall -Werror -std=c11 "$T/native.c" -o "$T/c" "${native[@]}"
	build_and_expect "native $version" "$T/cc" "${CXX:-g++}" -Wall -Werror -std=c++17 "$T/native.cc" -o "$T/cc" "${native[@]}"
	build_and_expect "posix 100" "$T/posix" "${CXX:-g++}" "$T/posix.cc" -o "$T/posix" "${posix[@]}"
	readelf -d "$T/posix" | grep -q 'NEEDED.*libkochab-posix.so.0' || { echo "posix program does not need the drop-in"; failures=1; }
	# Each pair of libraries in one call, in both orders: pkgconf leaves out words that it has met before.
	for a in "$D$P"/lib/pkgconfig/kochab*.pc; do
		a=${a##*/} a=${a%.pc}
		for b in "$D$P"/lib/pkgconfig/kochab*.pc; do
			b=${b##*/} b=${b%.pc}
			pair_links "$a" "$b"
		done
	done
	read -r -a malloc <<<"$(pkg-config --libs kochab-malloc)"
	build_and_expect "native $version" "$T/malloc" "${CC:-gcc}" -Wl,--as-needed "$T/native.c" -o "$T/malloc" "${malloc[@]}" "${native[@]}"
	needs_allocator "$T/malloc"
	build_and_expect "native $version" "$T/static" "${CC:-gcc}" -I"$D$P/include" "$T/native.c" -o "$T/static" \
		"$D$P/lib/libkochab.a" -pthread -ldl
	tested=1
fi
if command -v cmake >/dev/null; then
	mkdir "$T/cmake"
	cat >"$T/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.13)
project(consumer C CXX)
find_package(Kochab 0.1 REQUIRED)
foreach(kind kochab static posix)
	if(kind STREQUAL posix)
		add_executable(${kind} ../posix.cc)
	else()
		add_executable(${kind} ../native.c)
		add_executable(${kind}xx ../native.cc)
		target_link_libraries(${kind}xx PRIVATE Kochab::${kind})
	endif()
	target_link_libraries(${kind} PRIVATE Kochab::${kind})
endforeach()
add_executable(malloc ../native.c)
target_link_libraries(malloc PRIVATE -Wl,--as-needed Kochab::kochab Kochab::malloc)
END
	unset LD_LIBRARY_PATH
	build_and_expect "native $version" "$T/cmake/b/kochab" sh -c "cd '$T/cmake' && cmake -S . -B b \
		-DCMAKE_PREFIX_PATH='$D$P' ${CC:+-DCMAKE_C_COMPILER='$CC'} ${CXX:+-DCMAKE_CXX_COMPILER='$CXX'} && cmake --build b"
	for p in kochabxx static staticxx; do expect 0 "native $version" "$T/cmake/b/$p"; done
	expect 0 "posix 100" "$T/cmake/b/posix"
	expect 0 "native $version" "$T/cmake/b/malloc"
	needs_allocator "$T/cmake/b/malloc"
	sed 's/Kochab 0.1/Kochab 9/' "$T/cmake/CMakeLists.txt" >"$T/list" && mkdir "$T/cmake9" && mv "$T/list" "$T/cmake9/CMakeLists.txt"
	expect 1 "Kochab" cmake -S "$T/cmake9" -B "$T/cmake9/b" -DCMAKE_PREFIX_PATH="$D$P"
	tested=1
fi

# A project of each kind of build tool, which links the drop-in: both programs below must need it, and run with it.
uses_drop_in() { # TEXT PROGRAM
	LD_LIBRARY_PATH="$D$P/lib" expect 0 "$1" "$2"
	readelf -d "$2" | grep NEEDED | head -n 1 | grep -q 'libkochab-posix.so.0' ||
		{ echo "$2 does not need the drop-in first of all"; failures=$((failures + 1)); }
}
missing=
if command -v meson >/dev/null && command -v ninja >/dev/null && command -v pkg-config >/dev/null; then
	mkdir "$T/meson" && cp "$T/posix.cc" "$T/meson"
	cat >"$T/meson/meson.build" <<'END'
project('consumer', 'cpp', default_options: ['cpp_std=c++17'])
executable('posix', 'posix.cc', dependencies: [dependency('kochab-posix', version: '>=0.1'), dependency('threads')])
END
	if (cd "$T/meson" && meson setup b && meson compile -C b) >"$T/out" 2>&1; then
		uses_drop_in "posix 100" "$T/meson/b/posix"
	else
		echo "meson fails"; tail -n 20 "$T/out"; failures=$((failures + 1))
	fi
	tested=1
else
	missing="$missing meson"
fi
if command -v cargo >/dev/null && command -v pkg-config >/dev/null && cargo --version >/dev/null 2>&1; then
	mkdir -p "$T/crate/src"
	printf '[package]\nname = "consumer"\nversion = "0.1.0"\nedition = "2021"\n' >"$T/crate/Cargo.toml"
	# rustc drops a library that the crate's own code does not use, and std comes after it: so it is used
	cat >"$T/crate/build.rs" <<'END'
use std::process::Command;
fn main() {
	let said = Command::new("pkg-config").args(["--libs-only-L", "kochab-posix"]).output().expect("pkg-config");
	for word in String::from_utf8(said.stdout).unwrap().split_whitespace() {
		println!("cargo:rustc-link-search=native={}", word.trim_start_matches("-L"));
	}
}
END
	cat >"$T/crate/src/main.rs" <<'END'
use std::ffi::{c_char, CStr};
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex};
use std::thread;
#[link(name = "kochab-posix")]
extern "C" {
	fn kb_version() -> *const c_char;
	fn kb_vp_count() -> u32;
}
fn main() {
	let version = unsafe { CStr::from_ptr(kb_version()) }.to_str().unwrap();
	let pair = Arc::new((Mutex::new(0), Condvar::new()));
	let all = Arc::new(Barrier::new(100));
	let (send, receive) = mpsc::channel();
	for i in 0..100 {
		let (pair, all, send) = (pair.clone(), all.clone(), send.clone());
		thread::spawn(move || {
			all.wait();
			*pair.0.lock().unwrap() += 1;
			pair.1.notify_one();
			send.send(i).unwrap();
		});
	}
	let mut n = pair.0.lock().unwrap();
	while *n < 100 {
		n = pair.1.wait(n).unwrap();
	}
	let sum: i32 = receive.iter().take(100).sum();
	assert!(unsafe { kb_vp_count() } > 0, "the threads are not ours");
	println!("crate {} {} {}", version, *n, sum);
}
END
	if (cd "$T/crate" && CARGO_HOME=${CARGO_HOME:-$HOME/.cargo} CARGO_TARGET_DIR=$T/crate/b cargo build --offline -q) >"$T/out" 2>&1; then
		uses_drop_in "crate $version 100 4950" "$T/crate/b/debug/consumer"
	else
		echo "cargo fails"; tail -n 20 "$T/out"; failures=$((failures + 1))
	fi
	tested=1
else
	missing="$missing cargo"
fi
[ -z "$missing" ] || echo "not tested, as they are not here:$missing"

# The installed command finds its library by itself, through its own place.
expect 0 "$D$P/lib/libkochab-posix.so.0" "$D$P/bin/kochab" doctor
expect 0 "" "$D$P/bin/kochab" run true

run_make uninstall
left=$(find "$D" ! -type d)
[ -z "$left" ] || { echo "uninstall leaves: $left"; failures=1; }
[ -n "${tested:-}" ] || { [ $failures = 0 ] && skip "neither pkg-config nor cmake is there"; }
finish
