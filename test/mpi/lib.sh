# test/mpi/lib.sh - for the scripts of this folder, which source it.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() { echo "$*"; exit 1; }
skip() { echo "$*"; exit 77; }
has() { command -v "mpicc.$1" >/dev/null && command -v "mpirun.$1" >/dev/null; } # MPI
make_work() { # a folder, in work, until the script ends
	work=$(mktemp -d) || exit 1
	trap 'rm -rf "$work"' EXIT
}
