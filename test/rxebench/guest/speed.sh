# What the user-mode guest measures. The kernel's command line sets seconds, the
# length of each run. Each result follows its name.
. /veth.sh
. /count.sh
rdma link add rxe0 type rxe netdev va
rdma link add rxe1 type rxe netdev vb
run() {
  echo "{\"name\": \"$1\"}"
  shift
  rxebench "$@"
}
run syscall syscall
for path in 1024 4096; do
  for op in write send read; do
    run "veth $path $op" $op rxe0 rxe1 $path 1048576 "$seconds" 4 1 1
    run "self $path $op" $op rxe0 rxe0 $path 1048576 "$seconds" 4 1 1
  done
done
for op in write send read; do
  run "veth $op-lat" $op-lat rxe0 rxe1 4096 8 "$seconds" 1 1 1
done
# Soft-RoCE sends its packets one by one, so netem at the sender can lose single packets.
for loss in 0 0.1 1 5; do
  for d in va vb; do tc qdisc replace dev $d root netem limit 20000 loss $loss%; done
  for qps in 1 4; do lossy $loss $qps; done
done
