package interop

// exchange is a pair of the distribution's programs, one on each side: one is the server, the other its client. In
// the command lines $SERVER is the address of the server, $SERVER4 its IPv4 address, $OWN the address of the side
// that runs the command, $ADAPTER and $GID the device and the index of its GID, and $PORT a port. Programs that are
// given a GID need the other side's address for a TCP connection only.
type exchange struct {
	name           string
	server, client string
	says           string // a regular expression that the client's output matches
	serverSays     string // the same for the server's output
	endless        bool   // the server keeps running after its client has ended
	joins          bool   // the server joins a multicast group
	// ordered says that perftest waits for the events of both sides' messages in one order (stuckInOrder).
	ordered bool
}

// exchanges returns those of IPv4. perftest has to be told how many reads may be outstanding, because the devices
// differ, and to send small bursts where nothing holds the sender back, because the receiver is emulated.
func exchanges() []exchange {
	var list []exchange
	add := func(name, server, client, says string) {
		list = append(list, exchange{name: name, server: server, client: client, says: says})
	}
	for _, kind := range []string{"rc", "uc", "ud", "srq"} {
		for _, events := range []string{"", " -e"} {
			c := "ibv_" + kind + "_pingpong -d $ADAPTER -g $GID -n 50 -c -p $PORT" + events
			list = append(list, exchange{name: "ibv_" + kind + "_pingpong" + events, server: c, client: c + " $SERVER4",
				says: "(?m)^50 iters in", serverSays: "(?m)^50 iters in"})
		}
	}
	add("rping -q", "rping -q -s -a $OWN -p $PORT -C 10 -V -v", "rping -q -c -a $SERVER -p $PORT -C 10 -V -v", "rdma-ping-9: ")
	list = append(list, ofConnections()...)
	list = append(list,
		exchange{name: "mckey", server: "stdbuf -oL mckey -m 239.77.1.5 -b $OWN -C 5", client: "mckey -m 239.77.1.5 -b $OWN -s -C 5",
			says: "return status 0", serverSays: "return status 0", joins: true})
	perftest := func(name, command, more string, count string) {
		c := command + " -d $ADAPTER -x $GID -n 50 -F -p $PORT" + more
		add(name, c, c+" $SERVER4", `(?m)^ *[0-9]+ +`+count+` +[0-9.]+`)
	}
	for _, what := range []string{"send", "write", "read", "atomic"} {
		for _, how := range []string{"bw", "lat"} {
			c, outstanding := "ib_"+what+"_"+how, ""
			if what == "read" || what == "atomic" {
				outstanding = " -o 16"
			}
			perftest(c, c, outstanding, "50")
			managed := c + " -R -n 50 -F -p $PORT"
			add(c+" -R", managed, managed+" $SERVER", `(?m)^ *[0-9]+ +50 +[0-9.]+`)
			if outstanding == "" {
				perftest(c+" UC", c, " -c UC -s 1024", "50")
			}
		}
	}
	perftest("ib_send_bw UD", "ib_send_bw", " -c UD -s 1024", "50")
	perftest("ib_send_lat UD", "ib_send_lat", " -c UD -s 1024", "50")
	perftest("ib_send_lat events", "ib_send_lat", " -e -n 500", "500")
	list[len(list)-1].ordered = true
	perftest("ib_send_bw SRQ", "ib_send_bw", " --use-srq -q 2 -s 4096", "100")
	for _, test := range []string{"rc_lat", "rc_bw", "rc_bi_bw", "rc_rdma_write_bw", "rc_rdma_read_lat", "ver_rc_fetch_add",
		"ver_rc_compare_swap"} {
		list = append(list, exchange{name: "qperf " + test, server: "qperf -lp $PORT", client: "qperf -lp $PORT $SERVER -t 1 -cm 1 " + test,
			says: `(latency|bw|msg_rate) += +[0-9.]+`, endless: true})
	}
	for _, verb := range []string{"write", "read"} {
		add("fio "+verb, "fio --name=s --ioengine=rdma --port=$PORT --bs=64k --size=1m --iodepth=4 --rw=read",
			"fio --name=c --ioengine=rdma --hostname=$SERVER --port=$PORT --verb="+verb+" --bs=64k --size=1m --iodepth=4 --rw=write",
			`err= 0.*[\s\S]*WRITE: .*io=1024KiB`)
	}
	for _, kind := range []string{"msg", "dgram -d $ADAPTER-dgram"} {
		c := "env FI_VERBS_GID_IDX=$GID fi_pingpong -p verbs -c -S 1024 -I 20 -e " + kind
		add("libfabric "+kind[:3], c+" -B $PORT", c+" -P $PORT $SERVER", `(?m)^1k +20 +=20 `)
	}
	return list
}

// ofConnections returns those that work with addresses of any family.
func ofConnections() []exchange {
	stream := func(name string) exchange {
		c := name + " -p $PORT -S 4096 -C 50 -T v"
		return exchange{name: name, server: c + " -b $OWN", client: c + " -s $SERVER", says: `(?m)^\w+ +4k +50 `}
	}
	return []exchange{
		{name: "rping", server: "rping -s -a $OWN -p $PORT -C 10 -V -v", client: "rping -c -a $SERVER -p $PORT -C 10 -V -v",
			says: "rdma-ping-9: ", serverSays: "rdma-ping-9: "},
		{name: "ucmatose", server: "ucmatose -b $OWN -p $PORT -c 3 -C 10 -S 1000",
			client: "ucmatose -s $SERVER -p $PORT -c 3 -C 10 -S 1000", says: "return status 0", serverSays: "return status 0"},
		{name: "udaddy", server: "udaddy -b $OWN -c 3 -C 10 -S 1000", client: "udaddy -s $SERVER -c 3 -C 10 -S 1000",
			says: "return status 0", serverSays: "return status 0"},
		{name: "rdma_client", server: "rdma_server -s $OWN -p $PORT", client: "rdma_client -s $SERVER -p $PORT", says: "rdma_client: end 0",
			serverSays: "rdma_server: end 0"},
		stream("rstream"), stream("riostream"),
	}
}

// exchangesIPv6 leaves out what does not support IPv6: fio, qperf, perftest with -R, and multicast groups, which
// Linux does not join on RoCE.
func exchangesIPv6() []exchange {
	list := ofConnections()
	for _, c := range []string{"ibv_rc_pingpong", "ibv_uc_pingpong -e", "ibv_ud_pingpong", "ibv_srq_pingpong -e"} {
		run := c + " -d $ADAPTER -g $GID -n 50 -c -p $PORT"
		list = append(list, exchange{name: c, server: run, client: run + " $SERVER4", says: "(?m)^50 iters in",
			serverSays: "(?m)^50 iters in"})
	}
	for _, c := range []string{"ib_send_lat", "ib_write_bw", "ib_read_bw -o 16", "ib_atomic_lat -o 16", "ib_send_bw -c UD -s 4096",
		"ib_write_lat -c UC"} {
		run := c + " -d $ADAPTER -x $GID -n 50 -F -p $PORT"
		list = append(list, exchange{name: c, server: run, client: run + " $SERVER4", says: `(?m)^ *[0-9]+ +50 +[0-9.]+`})
	}
	return list
}
