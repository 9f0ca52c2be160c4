"""Loops in parallel by Numba's threads: it loads its threading layer, whose threads begin in a constructor, by dlopen."""
import numba
import numpy

numba.config.NUMBA_NUM_THREADS = 8


@numba.njit(parallel=True)
def total(a):
    s = 0.0
    for i in numba.prange(a.size):
        s += a[i] * 2
    return s


ones = numpy.ones(1 << 18)
print({total(ones) for _ in range(50)})
