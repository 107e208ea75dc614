# Hosts that are network namespaces: h1 to h$HOSTS, each with an interface link0 to a port of its
# leaf switch. Each leaf switch has an uplink to a spine. The switches are bridges in one more
# namespace. Only this mount namespace has the names, so all of it ends with the fleet's processes.
mkdir -p /run/netns
mount -t tmpfs netns /run/netns

# The leaf switch of a host.
leaf() {
    echo $((($1 - 1) / LEAF + 1))
}

# NAMESPACE DEVICE RATE: limits what a device sends (tc-tbf(8)).
limit() {
    tc -n $1 qdisc replace dev $2 root tbf rate $3 burst 16k latency 100ms
}

# NAMESPACE DEVICE: the same, to less than what the hosts send.
slow() {
    limit $1 $2 100mbit
}

# HOST TO: limits what a host sends to one other host (tc-htb(8), tc-u32(8)).
slow_path() {
    tc -n h$1 qdisc replace dev link0 root handle 1: htb default 1
    for class in "1:1 htb rate 400mbit" "1:2 htb rate 100mbit"; do
        tc -n h$1 class add dev link0 parent 1: classid $class burst 16k cburst 16k quantum 60000
    done
    tc -n h$1 filter add dev link0 parent 1: protocol ip u32 match ip dst 10.98.8.$2/32 flowid 1:2
}

# NAME: adds a switch.
bridge() {
    ip -n switches link add $1 type bridge
    ip -n switches link set $1 up
}

ip netns add switches
bridge spine
for leaf in $(seq $((HOSTS / LEAF))); do
    bridge leaf$leaf
    ip -n switches link add up$leaf type veth peer name down$leaf
    ip -n switches link set up$leaf master leaf$leaf up
    ip -n switches link set down$leaf master spine up
done
for host in $(seq $HOSTS); do
    ip netns add h$host
    ip link add link0 netns h$host type veth peer name port$host netns switches
    ip -n switches link set port$host master leaf$(leaf $host) up
    ip -n h$host address add 10.98.8.$host/24 dev link0
    ip -n h$host link set link0 up
    ip -n h$host link set lo up
done

# Where something is slow, the limits alone decide, so that it is slow by a known share.
if [ -n "$SLOW" ]; then
    for host in $(seq $HOSTS); do limit h$host link0 400mbit; done
    eval "$SLOW"
fi
measured='tcp -s 4KiB'
via='ip netns exec {host}'
