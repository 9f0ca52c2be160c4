# Runtimes for parallel loops and the libraries that use them. Sourced by dev/test-programs.
# shellcheck shell=bash disable=SC2154

openmp() { OMP_WAIT_POLICY=passive run "$T/openmp"; }
tbb() { run "$T/tbb"; }
openblas() { OPENBLAS_NUM_THREADS=6 run "$T/openblas"; }
fftw() { run "$T/fftw"; }
build openmp "${CC:-gcc}" -O2 -fopenmp "$OWN/openmp.c"
build tbb "${CXX:-g++}" -std=c++17 -O1 "$OWN/tbb.cc" -ltbb
build openblas "${CC:-gcc}" -O1 "$OWN/openblas.c" -lopenblas -pthread
build fftw "${CC:-gcc}" -O1 "$OWN/fftw.c" -lfftw3_threads -lfftw3 -lm -pthread
compare openblas 60 "$T/openblas" - "$EVERY"
compare fftw 60 "$T/fftw" - "$EVERY"
compare openmp 60 "$T/openmp" "rotator/1" "$EVERY"
compare tbb 60 "$T/tbb" "rotator/2" "$EVERY"
numpy_blas() { OPENBLAS_NUM_THREADS=6 run /usr/bin/python3 -c '
import numpy as n, threading
r = n.random.RandomState(1); a = r.randint(0, 9, (600, 600)).astype(float); o = [None] * 4
def f(i): o[i] = int((a @ a.T + i).sum())
t = [threading.Thread(target=f, args=(i,)) for i in range(4)]
[x.start() for x in t]; [x.join() for x in t]
print(o, abs(n.linalg.solve(a, a @ n.ones(600)) - 1).max() < 1e-6)'; }
compare numpy-blas 60 "/usr/lib/python3/dist-packages/numpy" - "$EVERY"
scipy_fft() { run /usr/bin/python3 -c '
import numpy as n, scipy.fft as f
a = n.arange(512 * 512.).reshape(512, 512) % 17
for w in 1, 4, 8: print(n.allclose(f.ifft2(f.fft2(a, workers=w), workers=w).real, a))'; }
compare scipy-fft 60 "/usr/lib/python3/dist-packages/scipy" - "$EVERY"
stockfish() { printf 'setoption name Threads value 1\nbench 16 4 10\n' >in; run stockfish bench 16 4 8 2>&1 >/dev/null | grep -c '^Nodes searched'; }
compare stockfish 90 "stockfish" - "$EVERY"
r_parallel() { run R --vanilla --slave -e 'library(parallel); x <- mclapply(1:8, function(i) sum(as.numeric(1:(i*1000))), mc.cores=3); cat(unlist(x), "\n"); a <- matrix(1:250000 %% 7, 500); cat(sum(a %*% a), "\n")'; }
compare r-parallel 60 "R" - "$EVERY"
octave() { run octave-cli --norc --eval 'a = reshape(mod(1:250000, 7), 500, 500); disp(sum(sum(a*a))); disp(round(sum(abs(fft(a)(:)))))'; }
compare octave 90 "octave-cli" - "$EVERY"
