#!/bin/busybox sh
# The first process of the virtual machine, until the host's files are mounted (then: inside.sh). Every command is an applet
# of busybox, which needs /proc. Errors go to the console, whose last lines the host prints. The host ends a boot that hangs.

set -e
/bin/busybox mount -t proc proc /proc
trap 'poweroff -f' EXIT
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
. /vm/settings
modprobe -a $BOOT_MODULES

# Descriptor 9 sends lines to the host: `ready UPTIME`, `failed WHY`, `exit STATUS`. A port appears some time after its driver.
until [ -c "$(echo /dev/vport*p3)" ]; do usleep 5000; done
exec 9>"$(echo /dev/vport*p3)"

# The host's files, and a layer in memory above them for all writes. The message size is large because each request costs an
# exit to the emulator; cache=loose because the files are not expected to change.
share=trans=virtio,version=9p2000.L,msize=262144
mkdir /host /layer /new
mount -t 9p -o ro,$share,cache=loose root /host
mount -t tmpfs layer /layer
mkdir /layer/files /layer/work
mount -t overlay -o lowerdir=/host,upperdir=/layer/files,workdir=/layer/work overlay /new

# The guest has its own /proc, /sys, /dev and /run: the host's sockets and devices have no server here.
for place in proc sys dev; do mount -o bind /$place /new/$place; done
mkdir /dev/pts /dev/shm
mount -t devpts pts /new/dev/pts
mount -t tmpfs -o mode=1777 shm /new/dev/shm
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
mount -t tmpfs -o mode=755 run /new/run
mkdir /new/run/lock /new/run/vm

# The kernel's modules, for `modprobe` in inside.sh.
modules=lib/modules/$(uname -r)
mkdir -p /new/$modules
mount -o bind /$modules /new/$modules
mount -o bind /vm /new/run/vm

if [ -n "$RDMASCOPE_VM_OUT" ]; then
    mkdir -p "/new$RDMASCOPE_VM_OUT"
    # mmap is the weakest cache that allows shared mappings: writes reach the host at once.
    mount -t 9p -o rw,$share,cache=mmap out "/new$RDMASCOPE_VM_OUT"
fi
exec chroot /new /bin/busybox sh /run/vm/inside.sh
