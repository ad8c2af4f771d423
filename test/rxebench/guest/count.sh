# lossy measures Soft-RoCE's writes of 64 KB. Its arguments are the percentage of packets that are
# lost, and the number of queue pairs. The result is followed by the number of packets sent, how
# often the sender went back, and how often a NAK was the reason.
counter() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/$1; }
counters() { echo "$(counter sent_pkts) $(counter completer_retry_err) $(counter rcvd_seq_err)"; }
lossy() {
  echo "{\"name\": \"rxe $1 $2\"}"
  before=$(counters)
  rxebench write rxe0 rxe1 1024 65536 "$seconds" 16 1 $2
  set -- $before $(counters)
  echo "{\"sent\": $(($4 - $1)), \"retries\": $(($5 - $2)), \"naks\": $(($6 - $3))}"
}
