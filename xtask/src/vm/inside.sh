# The first process of the virtual machine after the host's files are mounted: brings the device up, runs the command and
# reports its exit status. Descriptor 9 sends lines to the host (init.sh). Commands are busybox's applets if it has them.

step="start"
set -e
trap 'echo "failed the virtual machine could not $step" >&9; poweroff -f' EXIT

# Waits at most 10 s for a condition.
await() {
    for _ in $(seq 500); do
        if eval "$1"; then return; fi
        usleep 20000
    done
    return 1
}

. /run/vm/settings
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
hostname "$NAME"

step="bring up eth0"
modprobe -a $NET_MODULES
# No duplicate address detection and no router's prefix: they would change GIDs while the command runs.
echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_ra
ip link set lo up
ip addr add $ADDRESS/24 dev eth0
ip link set eth0 up
if [ "$HAS_PEER" = yes ]; then
    # Only the other machine can reach the server, so its root needs no password. Root has a separate home, because ssh and
    # its server read files in it.
    step="start the ssh server"
    mkdir -p -m 700 /run/root/.ssh
    printf 'Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n' >/run/root/.ssh/config
    sed -i 's|^root:.*|root::0:0:root:/run/root:/bin/sh|' /etc/passwd
    # If this file cannot be read, it has no effect.
    sed -i 's|^root:[^:]*:|root::|' /etc/shadow 2>/dev/null || true
    echo "$HOSTS" >>/etc/hosts
    dropbearkey -t ed25519 -f /run/root/key >/dev/null 2>&1
    dropbear -r /run/root/key -B -p 22
fi

if [ "$HAS_RXE" = yes ]; then
    step="load the modules of rxe"
    modprobe -a $RDMA_MODULES
    step="create rxe0 on eth0"
    rdma link add rxe0 type rxe netdev eth0
    port=/sys/class/infiniband/rxe0/ports/1
    step="find the port of rxe0 active"
    await 'grep -q ACTIVE $port/state'
    step="find the GID of $ADDRESS on rxe0"
    await 'grep -qs $GID $port/gids/0 $port/gids/1 $port/gids/2 $port/gids/3'
    step="find the device node of rxe0"
    await '[ -c /dev/infiniband/uverbs0 ]'
fi
if [ "$HAS_TSC" = yes ]; then
    # The kernel offers the counter about a second after its start, when the counter is calibrated.
    step="use the time stamp counter as its clock"
    await 'grep -qx tsc /sys/devices/system/clocksource/clocksource0/current_clocksource'
fi

step="run the command"
read -r uptime _ </proc/uptime
echo "ready $uptime" >&9
# Through pipes, because the command may open /dev/stdout again, while a port can be opened only once.
mkfifo /run/vm-stdout /run/vm-stderr
cat /run/vm-stdout >"$(echo /dev/vport*p1)" &
stdout=$!
cat /run/vm-stderr >"$(echo /dev/vport*p2)" &
stderr=$!
ulimit -l unlimited
setsid /bin/sh /run/vm/command </dev/null >/run/vm-stdout 2>/run/vm-stderr &
status=0
wait $! || status=$?

# Kills processes that the command left behind: all with a program file (the kernel's threads have none).
for process in /proc/[0-9]*; do
    process=${process#/proc/}
    case $process in 1 | $stdout | $stderr) continue ;; esac
    if [ -e /proc/$process/exe ]; then kill -9 $process 2>/dev/null || true; fi
done
# No process holds the pipes now, unless one is stuck in the kernel.
(sleep 5; kill $stdout $stderr) 2>/dev/null &
wait $stdout $stderr || true
if [ -n "$RDMASCOPE_VM_OUT" ]; then
    umount "$RDMASCOPE_VM_OUT" || umount -l "$RDMASCOPE_VM_OUT" || true
fi
echo "exit $status" >&9
poweroff -f
