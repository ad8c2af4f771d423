# lossy measures writes of 64 KB of Soft-RoCE: packets lost in percent, queue pairs. Behind
# the result stand the packets that were sent, the steps back, and those of them that a NAK asked for.
counter() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/$1; }
counters() { echo "$(counter sent_pkts) $(counter completer_retry_err) $(counter rcvd_seq_err)"; }
lossy() {
  echo "{\"name\": \"rxe $1 $2\"}"
  before=$(counters)
  rxebench write rxe0 rxe1 1024 65536 "$seconds" 16 1 $2
  set -- $before $(counters)
  echo "{\"sent\": $(($4 - $1)), \"retries\": $(($5 - $2)), \"naks\": $(($6 - $3))}"
}
