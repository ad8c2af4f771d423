# What the virtual machine measures: Soft-RoCE and SoftVPI in turn while packets are
# lost. The kernel's command line sets seconds, the length of each run, and rounds,
# their number. Each result follows its name.
mtu=1500
single=1
. /veth.sh
. /count.sh
rdma link add rxe0 type rxe netdev va
rdma link add rxe1 type rxe netdev vb
ip link set ifb0 up
ip link set ifb1 up
tc qdisc add dev va ingress
tc qdisc add dev vb ingress
tc filter add dev va parent ffff: protocol all matchall action mirred egress redirect dev ifb0
tc filter add dev vb parent ffff: protocol all matchall action mirred egress redirect dev ifb1

round=0
while [ $round -lt "$rounds" ]; do
  round=$((round + 1))
  for loss in 0 0.1 1 5; do
    for i in ifb0 ifb1; do tc qdisc replace dev $i root netem limit 20000 loss $loss%; done
    for qps in 1 4; do
      lossy $loss $qps
      echo "{\"name\": \"ours $loss $qps\"}"
      softvpi bench-pair --processes --a 192.0.2.1 --b 192.0.2.2 --op write --size 65536 --seconds "$seconds" --depth 16 --qps $qps --port 4792 | tr -d '\n'
      echo
    done
  done
done
