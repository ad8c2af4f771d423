package verbs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// measured is a pair of perftest whose last row must report size bytes and n iterations.
func measured(command string, size, n int) pair {
	command += " -F -p PORT"
	return pair{name: command, server: command + " -d softvpi0", client: command + " -d softvpi1 127.0.0.1",
		says: fmt.Sprintf(`(?m)^ *%d +%d +[0-9.]+`, size, n)}
}

// connected is such a pair that connects through the connection manager.
func connected(command string, size, n int) pair {
	p := measured(command+" -R", size, n)
	p.server, p.client = strings.TrimSuffix(p.server, " -d softvpi0"), strings.Replace(p.client, " -d softvpi1 127.0.0.1", " ADDR0", 1)
	return p
}

// perftest measures; this test only counts its iterations.
func TestPerftest(t *testing.T) { newBench(t).talkAll(t, append(perftests(), toGroup())) }

// toGroup sends to a multicast group, with the option that perftest needs for it.
func toGroup() pair {
	p := measured("ib_send_bw -x 0 -n 200 -c UD -s 512 -g -M 0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:3", 512, 200)
	p.says = `(?s)MultiCast runs on UD!.*` + p.says
	return p
}

func perftests() []pair {
	const page = 65536 // the size that bandwidth programs use by default
	return []pair{
		measured("ib_send_bw -x 0 -n 200", page, 200),
		measured("ib_send_lat -x 0 -n 200", 2, 200),
		measured("ib_write_bw -x 0 -n 200", page, 200),
		measured("ib_write_lat -x 0 -n 200", 2, 200),
		measured("ib_read_bw -x 0 -n 200", page, 200),
		measured("ib_read_lat -x 0 -n 200", 2, 200),
		measured("ib_atomic_bw -x 0 -n 200", 8, 200),
		measured("ib_atomic_lat -x 0 -n 200", 8, 200),
		measured("ib_atomic_bw -x 0 -n 200 -A CMP_AND_SWAP", 8, 200),
		measured("ib_send_bw -x 0 -n 200 -c UD -s 1024", 1024, 200),
		measured("ib_send_lat -x 0 -n 200 -c UC -e", 2, 200),
		measured("ib_write_bw -x 0 -n 200 -c UC", page, 200),
		measured("ib_write_lat -x 0 -n 200 -c UC", 2, 200),
		// Both directions, several queue pairs.
		measured("ib_send_bw -x 0 -n 200 -b", page, 200),
		measured("ib_write_bw -x 0 -n 200 -b -q 3", page, 600),
		measured("ib_read_bw -x 0 -n 200 -b -e", page, 200),
		measured("ib_send_bw -x 0 -n 200 -q 2 --use-srq", page, 400),
		// Extended reliable connections.
		measured("ib_send_bw -x 0 -n 200 -c XRC", page, 200),
		measured("ib_send_lat -x 0 -n 200 -c XRC -e", 2, 200),
		measured("ib_write_bw -x 0 -n 200 -c XRC -q 2", page, 400),
		measured("ib_write_lat -x 0 -n 200 -c XRC", 2, 200),
		measured("ib_read_bw -x 0 -n 200 -c XRC -b", page, 200),
		measured("ib_read_lat -x 0 -n 200 -c XRC -e", 2, 200),
		measured("ib_atomic_lat -x 0 -n 200 -c XRC", 8, 200),
		// Memory on demand.
		measured("ib_write_bw -x 0 -n 200 --odp", page, 200),
		measured("ib_send_lat -x 0 -n 200 --odp", 2, 200),
		// Inline, events, moderation, lists of requests.
		measured("ib_send_lat -x 0 -n 3000 -e", 2, 3000), // one channel for both CQs, of one entry each
		measured("ib_send_lat -x 0 -n 200 -I 200 -s 128", 128, 200),
		measured("ib_write_bw -x 0 -n 200 -I 64 -s 64", 64, 200),
		measured("ib_read_lat -x 0 -n 200 -e", 2, 200),
		measured("ib_send_bw -x 0 -n 200 -e", page, 200),
		measured("ib_send_bw -x 0 -n 500 -s 1 -Q 50", 1, 500),
		measured("ib_write_bw -x 0 -n 256 -l 8", page, 256),
		measured("ib_send_bw -x 0 -n 200 --use_old_post_send -m 1024", page, 200),
		connected("ib_send_bw -n 200", page, 200),
		connected("ib_send_lat -n 200 -c UD -s 1024", 1024, 200),
		connected("ib_write_bw -n 200 -q 2", page, 400),
		connected("ib_write_lat -n 200", 2, 200),
		connected("ib_read_bw -n 200", page, 200),
		connected("ib_atomic_lat -n 200", 8, 200),
		connected("ib_send_lat -n 200", 2, 200),
		connected("ib_read_lat -n 200", 2, 200),
		connected("ib_atomic_bw -n 200", 8, 200),
	}
}

// All sizes, from 2 bytes to 8 MB.
func TestPerftestSizes(t *testing.T) {
	t.Parallel() // it spends most of its time waiting for its own TCP connection
	newBench(t).talk(sizes())
}

func sizes() pair { return measured("ib_send_bw -x 0 -n 5 -a", 8<<20, 5) }

// What no adapter supports is refused, and the programs report it.
func TestRefused(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct{ command, says string }{
		{"raw_ethernet_bw --client -F -B 02:00:00:00:00:01 -E 02:00:00:00:00:02 -d softvpi0", "Unable to create QP"},
	} {
		words := b.expand(c.command, "")
		b.need(words[0])
		p := b.start(nil, words...)
		<-p.done
		if p.err == nil || !strings.Contains(p.out.String(), c.says) {
			t.Errorf("%s: %v, want %q\n%s", c.command, p.err, c.says, p.out.String())
		}
	}
	for _, c := range []struct{ command, says string }{
		{"ib_send_bw -x 0 -c DC", "Unable to create QP"},
	} {
		at := port()
		words := b.expand(c.command+" -F -p PORT", at)
		b.need(words[0])
		server := b.start(nil, words...)
		await.Until(func() bool { return server.listens(at) || !server.running() })
		client := b.start(nil, append(words, "127.0.0.1")...)
		<-client.done
		server.stop()
		if client.err == nil || !regexp.MustCompile(c.says).MatchString(client.out.String()) {
			t.Errorf("%s: %v, want %q\n%s", c.command, client.err, c.says, client.out.String())
		}
	}
}

// qperf takes a second for each test. Tests that it cannot connect through the connection manager (uc_, ud_) need
// LIDs, which RoCE devices do not have.
func TestQperf(t *testing.T) {
	t.Parallel() // it spends most of its time waiting
	b := newBench(t)
	for _, p := range qperfs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			b.under(t).talk(p)
		})
	}
}

func qperfs() (pairs []pair) {
	results := []struct{ name, says string }{
		{"rc_lat", "latency"}, {"rc_bw", "bw"}, {"rc_bi_bw", "bw"},
		{"rc_rdma_read_lat", "latency"}, {"rc_rdma_read_bw", "bw"},
		{"rc_rdma_write_lat", "latency"}, {"rc_rdma_write_poll_lat", "latency"}, {"rc_rdma_write_bw", "bw"},
		{"rc_compare_swap_mr", "msg_rate"}, {"rc_fetch_add_mr", "msg_rate"},
		{"ver_rc_compare_swap", "msg_rate"}, {"ver_rc_fetch_add", "msg_rate"},
	}
	const each = 4
	for i := 0; i < len(results); i += each {
		var names, says []string
		for _, r := range results[i : i+each] {
			names, says = append(names, r.name), append(says, fmt.Sprintf(`%s:\s+%s += +[0-9.]+ .*\s+`, r.name, r.says))
		}
		pairs = append(pairs, pair{name: "qperf " + names[0], server: "qperf -lp PORT", client: "qperf -lp PORT ADDR0 -t 1 -cm 1 " +
			strings.Join(names, " "),
			says: strings.Join(says, ""), endless: true})
	}
	return pairs
}

// fio's engine writes, reads and sends. The receiver needs as many receives as there are messages, because fio asks
// for no retries if there is none.
func TestFio(t *testing.T) {
	t.Parallel() // it spends most of its time waiting
	newBench(t).talkAll(t, fios())
}

func fios() []pair {
	server := "fio --name=s --ioengine=rdma --port=PORT --bs=64k --size=4m --iodepth=64 --rw=read"
	client := "fio --name=c --ioengine=rdma --hostname=ADDR0 --port=PORT --bs=64k --size=4m --iodepth=4 --rw=write --verb="
	says := `err= 0.*[\s\S]*WRITE: .*io=4096KiB`
	ready := "waiting for connection" // it listens; a client that was refused would end well all the same
	return []pair{
		{name: "fio write", server: server, ready: ready, client: client + "write", says: says, server2: `err= 0`},
		{name: "fio read", server: server, ready: ready, client: client + "read", says: says, server2: `err= 0`},
		{name: "fio send", server: server, ready: ready, client: client + "send", says: says, server2: `err= 0.*[\s\S]*READ: .*io=4096KiB`},
	}
}
