#!/bin/bash
# A container's limit on processors is seen, with either version of cgroups, where the path in /proc/self/cgroup is the
# container's own, and where it is the host's, which the container does not have. The files are stand-ins, in a mount namespace.
. "$(dirname "$0")/lib.sh"
as_root=-m
[ "$(id -u)" = 0 ] || as_root=-rm
unshare "$as_root" mount -t tmpfs none /sys/fs/cgroup 2>/dev/null || skip "no mount namespace here"

# told GROUPS FOLDER FILE=TEXT...: the doctor's words when these are the groups, and FOLDER below the mount point has these files
cat >"$T/told" <<'END'
groups=$1 folder=/sys/fs/cgroup/$2
shift 2
mount -t tmpfs none /sys/fs/cgroup && mkdir -p "$folder" || exit
for pair; do echo "${pair#*=}" >"$folder/${pair%%=*}"; done
echo "$groups" >/sys/fs/cgroup/groups
mount --bind /sys/fs/cgroup/groups /proc/$$/cgroup && exec "$KOCHAB_BIN" doctor
END
told=(unshare "$as_root" bash "$T/told")
said="cgroup cpu.max           "
expect 0 "${said}2 processors" "${told[@]}" "0::/" "" "cpu.max=150000 100000"
expect 0 "${said}2 processors" "${told[@]}" "0::/docker/0123" "" "cpu.max=150000 100000"
expect 0 "${said}1 processors" "${told[@]}" "0::/docker/0123" "docker" "cpu.max=50000 100000"
expect 0 "${said}no limit" "${told[@]}" "0::/docker/0123" "" "cpu.max=max 100000"
expect 0 "${said}2 processors" "${told[@]}" "4:cpu,cpuacct:/docker/0123" "cpu" cpu.cfs_quota_us=150000 cpu.cfs_period_us=100000
expect 0 "${said}1 processors" "${told[@]}" "4:cpu:/docker/0123" "cpu/docker/0123" cpu.cfs_quota_us=50000 cpu.cfs_period_us=100000
expect 0 "${said}2 processors" "${told[@]}" "4:cpu:/docker/0123" "cpu/docker" cpu.cfs_quota_us=150000 cpu.cfs_period_us=100000
expect 0 "${said}no limit" "${told[@]}" "4:cpu:/docker/0123" "cpu" cpu.cfs_quota_us=-1 cpu.cfs_period_us=100000
finish
