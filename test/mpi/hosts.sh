#!/bin/bash
# mpi/hosts - ranks on three hosts, which are network namespaces joined by a bridge: mpirun starts its daemons there by a
# script in place of ssh, and ranks talk TCP. Programs of this folder under `kochab run`; a rank that is killed there ends
# the program with MPI's own error, on all hosts.
# Skipped: no MPI, no `ip` (iproute2), or no namespaces for this user. All is made in a namespace of its own and ends with it.
# sleeps: yes
. "$(dirname "$0")/lib.sh"
HOSTS=3 NET=10.99.0

if [ -z "${INSIDE:-}" ]; then
	command -v mpirun.openmpi >/dev/null || command -v mpirun.mpich >/dev/null || skip "no MPI is here"
	command -v ip >/dev/null || skip "no ip (iproute2)"
	as=
	[ "$(id -u)" = 0 ] || as=--map-root-user
	# shellcheck disable=SC2086
	unshare $as --net --mount --pid --fork --mount-proc --kill-child true 2>/dev/null || skip "no namespaces for this user"
	# shellcheck disable=SC2086
	INSIDE=1 exec unshare $as --net --mount --pid --fork --mount-proc --kill-child "$0"
fi

make_work

# ---- the hosts: this is the first, with the bridge ----
make_hosts() {
	ip link set lo up && ip link add bridge0 type bridge && ip addr add $NET.1/24 dev bridge0 && ip link set bridge0 up || return
	mkdir -p /run/netns && mount -t tmpfs none /run/netns || return
	for ((i = 1; i <= HOSTS; i++)); do
		ip netns add host$i && ip link add name to$i type veth peer name eth0 netns host$i &&
			ip link set to$i master bridge0 up && ip -n host$i addr add $NET.$((10 + i))/24 dev eth0 &&
			ip -n host$i link set eth0 up && ip -n host$i link set lo up || return
	done
}
make_hosts 2>"$work/said" || skip "no bridge or no namespaces of networks: $(cat "$work/said")"

# In place of ssh: [options] ADDRESS COMMAND, there with a host's name of its own, by which MPI tells hosts apart.
cat >"$work/agent" <<'A'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=host$((${1##*.} - 10))
shift
command="hostname $host; exec $*"
case $* in *[\;\&]*) command="hostname $host; $*" ;; esac
exec nsenter --net=/run/netns/$host unshare --uts /bin/sh -c "$command"
A
chmod +x "$work/agent"
list() { for ((i = 1; i <= HOSTS; i++)); do printf '%s%s' "$NET.$((10 + i))$1" "$([ $i = $HOSTS ] || echo ,)"; done; }

# across MPI RANKS COMMAND...: as launch
across() {
	local mpi=$1 ranks=$2
	shift 2
	case $mpi in
	openmpi) set -- --host "$(list :2)" --map-by node --mca plm rsh --mca plm_rsh_agent "$work/agent" --mca plm_rsh_no_tree_spawn 1 \
		--mca btl self,tcp --mca btl_tcp_if_include $NET.0/24 --mca oob_tcp_if_include $NET.0/24 "$@" ;;
	mpich) set -- -launcher ssh -launcher-exec "$work/agent" -hosts "$(list :1)" -localhost $NET.1 -ppn 1 \
		-genv UCX_TLS tcp,self -genv UCX_NET_DEVICES eth0 "$@" ;;
	esac
	MPI_SECONDS=${LIMIT:-60} "$here/launch" "$mpi" "$ranks" "$@" >"$work/said" 2>&1
}

cat >"$work/hosts.c" <<'C'
#include "never.h"
int main(int argc, char **argv)
{
	pthread_t t[NEVER];
	char name[65] = "";
	int level;

	gethostname(name, sizeof(name) - 1);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	printf("rank on %s\n", name);
	fflush(stdout);
	if (argc > 1)
		wait_for_ever(t);
	MPI_Barrier(MPI_COMM_WORLD);
	printf("met on %s\n", name);
	fflush(stdout);
	if (argc > 1 && rank == 1) {
		sleep(1);
		raise(SIGKILL);
	}
	if (argc > 1)
		pthread_join(t[0], NULL);
	MPI_Finalize();
	return 0;
}
C

# Bytes that have come to the first host.
received() { ip -n host1 -s link show eth0 | sed -n '/RX:/{n;s/^ *\([0-9]*\).*/\1/p;}'; }

# each_host LINE: every host's rank has said it.
each_host() {
	for ((i = 1; i <= HOSTS; i++)); do
		[ "$(grep -c "$1 on host$i\$" "$work/said")" = 1 ] || { echo "no \"$1\" of host$i: $(cat "$work/said")"; return 1; }
	done
}

# runs_on JOB SECONDS COMMAND: the job still runs after so many seconds in which the command has not been true.
runs_on() {
	for ((k = 0; k < $2 * 10; k++)); do
		"$3" >/dev/null && break
		kill -0 "$1" 2>/dev/null || return
		sleep 0.1
	done
	kill -0 "$1" 2>/dev/null
}
all_met() { each_host met; }

# meet MPI COMMAND...: all ranks start, meet in a barrier, and end. MPICH before 4.2 often hangs in MPI_Finalize over
# UCX's TCP, on kernel threads, too: the first rank waits for the last ones without answering them. So a program of
# MPICH that has met may hang, and is ended after 5 seconds.
meet() {
	local mpi=$1 job
	across "$mpi" $HOSTS "${@:2}" &
	job=$!
	if [ "$mpi" = mpich ] && runs_on $job 60 all_met && runs_on $job 5 false && all_met >/dev/null; then
		pkill -TERM -x mpirun.mpich
		wait $job
	else
		wait $job || { cat "$work/said"; return 1; }
	fi
	each_host rank && all_met
}

tried=
for mpi in openmpi mpich; do
	has $mpi || continue
	"mpicc.$mpi" -O -I"$here" -pthread -o "$work/hosts" "$work/hosts.c" || fail "mpicc.$mpi"
	LIMIT=20 meet $mpi "$work/hosts" >"$work/plain" || {
		echo "not tried: $mpi does not run here on several hosts, on kernel threads: $(tail -n 1 "$work/plain")"
		continue
	}
	meet $mpi "$KOCHAB_BIN" run "$work/hosts" || fail "$mpi does not run on several hosts"
	# MPICH's programs with many threads hang over UCX's TCP, on kernel threads, too (MPICH 4.0.2, UCX 1.13.1)
	for program in point collect random; do
		[ $mpi = openmpi ] || break
		before=$(received)
		across $mpi 4 "$KOCHAB_BIN" run "$BUILD/test/mpi/$program.$mpi" || fail "$mpi, $program: $(cat "$work/said")"
		[ $(($(received) - before)) -gt 100000 ] || fail "$mpi, $program: the ranks do not talk over the network"
	done
	before=$SECONDS
	across $mpi $HOSTS "$KOCHAB_BIN" run "$work/hosts" killed && fail "$mpi: a rank was killed, and that is no error"
	[ $((SECONDS - before)) -lt 50 ] || fail "$mpi: a rank was killed, and the rest hangs: $(cat "$work/said")"
	grep -qiE "signal 9|KILLED BY SIGNAL|SIGKILL|EXIT CODE: 9" "$work/said" || fail "$mpi does not tell of the killed rank: $(cat "$work/said")"
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		pgrep -f "$work/hosts" >/dev/null || break
		sleep 1
	done
	pgrep -af "$work/hosts" && fail "$mpi: ranks are left on other hosts"
	tried+=" $mpi"
done
[ -n "$tried" ] || skip "no MPI runs here on several hosts"
echo "$HOSTS hosts:$tried"
