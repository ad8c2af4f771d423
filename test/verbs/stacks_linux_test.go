package verbs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// UCX looks for devices in /dev and /sys, where the preloaded library makes them appear.
func TestUCX(t *testing.T) {
	b := newBench(t)
	b.need("ucx_info", "ucx_perftest")
	out := b.run(nil, "ucx_info", "-d")
	for _, want := range []string{`Transport: rc_verbs\n#\s+Device: softvpi0:1`, `Transport: ud_verbs\n#\s+Device: softvpi1:1`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("ucx_info does not print %s:\n%s", want, out)
		}
	}
	b.talkAll(t, ucxs())
}

func ucxs() []pair {
	final := `(?m)^Final: +200 `
	return []pair{
		{name: "UCX rc_verbs", server: "ucx_perftest -p PORT",
			client: "ucx_perftest -p PORT -x rc_verbs -d softvpi1:1 -t am_lat -n 200 -w 10 127.0.0.1", says: final},
		{name: "UCX rc_verbs put", server: "ucx_perftest -p PORT",
			client: "ucx_perftest -p PORT -x rc_verbs -d softvpi1:1 -t put_lat -n 200 -w 10 127.0.0.1", says: final},
		{name: "UCX ud_verbs", server: "ucx_perftest -p PORT",
			client: "ucx_perftest -p PORT -x ud_verbs -d softvpi1:1 -t am_lat -n 200 -w 10 127.0.0.1", says: final},
		{name: "UCX tags", env: []string{"UCX_TLS=rc_verbs,ud_verbs"}, server: "ucx_perftest -p PORT",
			client: "ucx_perftest -p PORT -t tag_lat -n 200 -w 10 127.0.0.1", says: final},
	}
}

// UCX connects through librdmacm as well; io_demo then checks its data.
func TestUCXConnections(t *testing.T) { newBench(t).talkAll(t, demos()) }

func demos() []pair {
	env := []string{"UCX_TLS=rc_verbs,ud_verbs", "UCX_SOCKADDR_TLS_PRIORITY=rdmacm"}
	server, client := "io_demo -p PORT -q -d 1:100000", "io_demo -i 100 -q -d 1:100000 -o write,read -y 0.1s ADDR0:PORT"
	return []pair{
		{name: "io_demo with tags", env: env, server: server, client: client, says: "Client exit with status 'OK'",
			server2: "got new connection request", endless: true},
		{name: "io_demo with active messages", env: env, server: server + " -A", client: client + " -A",
			says: "Client exit with status 'OK'", server2: "got new connection request", endless: true},
	}
}

func TestLibfabric(t *testing.T) {
	b := newBench(t)
	b.need("fi_info", "fi_pingpong")
	out := b.run(nil, "fi_info", "-p", "verbs", "-v")
	for i, a := range b.addrs {
		for _, want := range []string{`src_addr: fi_sockaddr_in://` + regexp.QuoteMeta(a.String()) + `:0\n`,
			fmt.Sprintf(`name: softvpi%d\n`, i), fmt.Sprintf(`name: softvpi%d-dgram\n`, i)} {
			if !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("fi_info does not print %s:\n%s", want, out)
			}
		}
	}
	b.talkAll(t, fabrics())
}

func fabrics() []pair {
	return []pair{
		{name: "libfabric datagrams", server: "fi_pingpong -p verbs -e dgram -d softvpi0-dgram -I 50 -B PORT",
			client: "fi_pingpong -p verbs -e dgram -d softvpi1-dgram -I 50 -P PORT 127.0.0.1", says: `(?m)^1k +50 +=50 `},
		{name: "libfabric messages", server: "fi_pingpong -p verbs -e msg -c -d softvpi0 -S 65536 -I 50 -B PORT",
			client: "fi_pingpong -p verbs -e msg -c -S 65536 -I 50 -P PORT ADDR0", says: `(?m)^64k +50 +=50 `},
		{name: "libfabric reliable datagrams over messages", server: "fi_pingpong -p verbs;ofi_rxm -e rdm -c -S 65536 -I 50 -B PORT",
			client: "fi_pingpong -p verbs;ofi_rxm -e rdm -c -S 65536 -I 50 -P PORT ADDR0", says: `(?m)^64k +50 +=50 `},
		{name: "libfabric reliable datagrams over datagrams", server: "fi_pingpong -p verbs;ofi_rxd -e rdm -c -S 65536 -I 50 -B PORT",
			client: "fi_pingpong -p verbs;ofi_rxd -e rdm -c -S 65536 -I 50 -P PORT ADDR0", says: `(?m)^64k +50 +=50 `},
	}
}

// Two ranks pass a number around, and add up their own.
func TestMPI(t *testing.T) {
	b := newBench(t)
	b.ring("--oversubscribe")
}

// The same with one rank on each of two hosts.
func TestMPITwoHosts(t *testing.T) {
	left, right := hosts(t)
	left.need("nsenter", "unshare", "hostname")
	agent, err := filepath.Abs("testdata/agent.sh")
	if err != nil {
		t.Fatal(err)
	}
	left.env = append(left.env, "AGENT_SOCKET="+right.socket, fmt.Sprintf("AGENT_NET=/proc/%d/fd/%d", os.Getpid(), int(*right.side)))
	left.ring("--mca", "plm_rsh_agent", agent, "-host", left.addrs[0].String()+","+right.addrs[0].String())
}

// ring runs two ranks, placed according to the options of mpirun.
func (b *bench) ring(options ...string) {
	b.t.Helper()
	b.need("mpicc", "mpirun")
	source, err := filepath.Abs("testdata/ring.c")
	if err != nil {
		b.t.Fatal(err)
	}
	exe := filepath.Join(b.t.TempDir(), "ring")
	b.run(nil, "mpicc", "-o", exe, source)
	command := append([]string{"mpirun", "-np", "2", "--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices",
		"any"}, options...)
	out := b.run([]string{"UCX_TLS=rc_verbs,ud_verbs,self", "UCX_NET_DEVICES=softvpi0:1", "OMPI_ALLOW_RUN_AS_ROOT=1",
		"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"},
		append(command, exe)...)
	if !regexp.MustCompile(`(?m)^100 rounds of 2 ranks: token 200, sum 3$`).MatchString(out) {
		b.t.Errorf("%s", out)
	}
}
