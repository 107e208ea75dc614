# The first process of the virtual machine among the host's files: brings the device up, runs the command, says how it
# ended. Descriptor 9 is the way to the host (init.sh). Commands are applets of busybox where it has them.

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
# No duplicate address detection and no router's prefix, or GIDs would come and go while the command runs.
echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_ra
ip link set lo up
ip addr add $ADDRESS/24 dev eth0
ip link set eth0 up
if [ "$HAS_PEER" = yes ]; then
    # Who can reach it is at the other end of the cable: root of the other machine, who needs no word. The home is one of
    # its own, because ssh and its server read what is in it.
    step="serve ssh"
    mkdir -p -m 700 /run/root/.ssh
    printf 'Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n' >/run/root/.ssh/config
    sed -i 's|^root:.*|root::0:0:root:/run/root:/bin/sh|' /etc/passwd
    # Where this file cannot be read, nothing in it counts.
    sed -i 's|^root:[^:]*:|root::|' /etc/shadow 2>/dev/null || true
    echo "$HOSTS" >>/etc/hosts
    dropbearkey -t ed25519 -f /run/root/key >/dev/null 2>&1
    dropbear -r /run/root/key -B -p 22
fi

if [ "$HAS_RXE" = yes ]; then
    step="load the modules of rxe"
    modprobe -a $RDMA_MODULES
    step="make rxe0 over eth0"
    rdma link add rxe0 type rxe netdev eth0
    port=/sys/class/infiniband/rxe0/ports/1
    step="see the port of rxe0 active"
    await 'grep -q ACTIVE $port/state'
    step="see the GID of $ADDRESS at rxe0"
    await 'grep -qs $GID $port/gids/0 $port/gids/1 $port/gids/2 $port/gids/3'
    step="see the device nodes of rxe0"
    await '[ -c /dev/infiniband/uverbs0 ]'
fi
if [ "$HAS_TSC" = yes ]; then
    # The kernel offers the counter about a second after its start, when it has calibrated it.
    step="use the time stamp counter as its clock"
    await 'grep -qx tsc /sys/devices/system/clocksource/clocksource0/current_clocksource'
fi

step="run the command"
read -r uptime _ </proc/uptime
echo "ready $uptime" >&9
# Pipes, so that the command may open /dev/stdout as it may elsewhere; the ports themselves can be opened once only.
mkfifo /run/vm-stdout /run/vm-stderr
cat /run/vm-stdout >"$(echo /dev/vport*p1)" &
stdout=$!
cat /run/vm-stderr >"$(echo /dev/vport*p2)" &
stderr=$!
ulimit -l unlimited
setsid /bin/sh /run/vm/command </dev/null >/run/vm-stdout 2>/run/vm-stderr &
status=0
wait $! || status=$?

# What the command left behind: anything with a program file (the kernel's own threads have none).
for process in /proc/[0-9]*; do
    process=${process#/proc/}
    case $process in 1 | $stdout | $stderr) continue ;; esac
    if [ -e /proc/$process/exe ]; then kill -9 $process 2>/dev/null || true; fi
done
# Unless one is stuck in the kernel, that was the last that held the pipes.
(sleep 5; kill $stdout $stderr) 2>/dev/null &
wait $stdout $stderr || true
if [ -n "$RDMASCOPE_VM_OUT" ]; then
    umount "$RDMASCOPE_VM_OUT" || umount -l "$RDMASCOPE_VM_OUT" || true
fi
echo "exit $status" >&9
poweroff -f
