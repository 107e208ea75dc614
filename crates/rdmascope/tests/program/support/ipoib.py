"""Two interfaces that say they are InfiniBand, in two network namespaces, and what one sends the other one gets.

Usage: ipoib.py NAMESPACE NAMESPACE. Says "ready" once they are there; they go with the process.
"""

import ctypes
import fcntl
import os
import select
import struct
import sys

CLONE_NEWNET = 0x4000_0000  # sched.h
TUNSETIFF, TUNSETLINK = 0x400454CA, 0x400454CD  # linux/if_tun.h
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
ARPHRD_INFINIBAND = 32  # linux/if_arp.h

libc = ctypes.CDLL(None, use_errno=True)


def interface(namespace):
    with open(f"/run/netns/{namespace}", encoding="ascii") as entry:
        if libc.setns(entry.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), namespace)
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"ib0", IFF_TUN | IFF_NO_PI))
    fcntl.ioctl(tun, TUNSETLINK, ARPHRD_INFINIBAND)
    return tun


one, other = (interface(namespace) for namespace in sys.argv[1:3])
print("ready", flush=True)
# The process that started this script is gone when the pipe closes.
while True:
    ready, _, _ = select.select([sys.stdin, one, other], [], [])
    if sys.stdin in ready:
        break
    for source in ready:
        os.write(other if source == one else one, os.read(source, 65536))
