# Connects the addresses 192.0.2.1 and 192.0.2.2 of this network namespace by a pair of
# virtual Ethernet devices, va and vb. Without the rules below the kernel would send
# packets between them over the loopback device instead of the pair.
ip link add va type veth peer name vb
# All packets of a message of 1 MB arrive at once on the only processor. The limit is one
# of the whole system, so it is there only in a guest.
backlog=/proc/sys/net/core/netdev_max_backlog
[ ! -e $backlog ] || echo 100000 >$backlog
for d in all va vb; do
  echo 1 >/proc/sys/net/ipv4/conf/$d/accept_local
  echo 0 >/proc/sys/net/ipv4/conf/$d/rp_filter
done
ip link set lo up
for d in va vb; do
  ip link set $d mtu "${mtu:-9000}"
  ip link set $d up
  # Queueing disciplines treat a burst of UDP_SEGMENT as one packet. With single, bursts are
  # split before they are sent, and single packets are lost at the receiver.
  [ -z "${single:-}" ] || ethtool -K $d tx-udp-segmentation off
done
ip addr add 192.0.2.1/32 dev va
ip addr add 192.0.2.2/32 dev vb
mac() {
  set -- $(ip -o link show dev $1)
  while [ "$1" != link/ether ]; do shift; done
  echo $2
}
ip neigh replace 192.0.2.2 lladdr "$(mac vb)" dev va
ip neigh replace 192.0.2.1 lladdr "$(mac va)" dev vb
ip route add 192.0.2.2 dev va table 101
ip route add 192.0.2.1 dev vb table 102
# Packets that arrive from the pair are delivered locally. Packets to be sent go to the
# pair, by rules that precede the table of local addresses.
ip rule add pref 10 iif va lookup local
ip rule add pref 11 iif vb lookup local
ip rule add pref 20 from 192.0.2.1 to 192.0.2.2 lookup 101
ip rule add pref 21 from 192.0.2.2 to 192.0.2.1 lookup 102
ip rule add pref 100 lookup local
ip rule del pref 0
