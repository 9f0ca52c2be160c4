#!/bin/bash
# Preemption every 100 us over what holds locks inside libraries (test/posix/preempt_storm.cc), on several virtual
# processors and schedulers, for SOAK_SECONDS altogether.
set -eu
export SOAK_SECONDS=$((${SOAK_SECONDS:-600} / 4))
for s in rotator/1 rotator/2 lb2/2 steal/4; do
	"$KOCHAB_BIN" run --sched "${s%/*}" --vps "${s#*/}" -- "$BUILD/test/posix/preempt_storm"
done
