package bench

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

func TestTCPSenderMeasures(t *testing.T) {
	addr := netip.AddrPortFrom(loopback.Addr(), loopback.Port()).String()
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() { served <- ServeTCP(ctx, addr, func() { close(ready) }) }()
	<-ready
	r, err := DialTCP(ctx, addr, 1000, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if !(r.Gbps > 0) || r.Bytes != 1000 {
		t.Errorf("%+v, want a rate and 1000 bytes", r)
	}
	if err := <-served; err != nil {
		t.Error("the server fails: ", err)
	}
}

func TestMemcpyIsPositive(t *testing.T) {
	if v := memcpy(time.Millisecond); !(v > 0) {
		t.Errorf("memcpy measures %v Gb/s, want more than 0", v)
	}
}

func TestRunSkipsWhatCannotBe(t *testing.T) {
	r := &runner{report: &Report{}}
	r.report.skip("veth", errSkip{"not root"}.Error())
	var b strings.Builder
	if err := r.report.WriteMarkdown(&b); err != nil || !strings.Contains(b.String(), "\nveth: not measured, not root.\n") {
		t.Errorf("%v, %q; want that veth was not measured", err, b.String())
	}
}

// Rows that are chosen are measured, together with what they are compared to, and no others.
func TestChosenRows(t *testing.T) {
	r := &runner{}
	if all := bandwidthFigures(goals{}); len(r.choose(all)) != len(all) || !r.needs("any") {
		t.Error("without a choice some rows are not measured")
	}
	r.o.Rows = []string{"64 b WRITES, one", "write of 1 MB"}
	var names []string
	for _, f := range r.choose(bandwidthFigures(goals{})) {
		names = append(names, f.name)
	}
	if got := strings.Join(names, "; "); got != "write of 1 MB; write of 1 MB, 1 MB of memory as iperf3; write of 1 MB, 16 MB of memory; 64 B writes, one queue pair" {
		t.Error("the chosen rows are ", got)
	}
	for sample, want := range map[string]bool{"write64 rate": true, "write1048576": true, "tcp1048576": true, "write one block": true,
		"iperf3": true, "write64": false, "four rate": false, "tcp64": false, "send polling": false} {
		if r.needs(sample) != want {
			t.Errorf("%s is needed: %v, want %v", sample, !want, want)
		}
	}
	if !r.needs("write64", "write64 rate") {
		t.Error("needs denies that one of two samples is needed")
	}
}

// Messages of 1 MB have a target relative to iperf3 where both have one block of memory a side. Where they go through
// more memory, they only stand beside plain TCP and iperf3.
func TestLargeMessagesBesideTheirLike(t *testing.T) {
	aims := map[string]string{}
	for _, f := range bandwidthFigures(goals{large: 1.5}) {
		if f.sample == "write one block" || f.sample == "read one block" || f.sample == "write1048576" {
			aims[f.sample+" / "+f.peerSample] = "none"
			if f.target != nil {
				aims[f.sample+" / "+f.peerSample] = f.target.String()
			}
		}
	}
	want := map[string]string{"write one block / iperf3": "≥ 1.50 times", "read one block / iperf3": "≥ 1.20 times",
		"write1048576 / tcp1048576": "none", "write1048576 / iperf3": "none"}
	if diff := cmp.Diff(want, aims); diff != "" {
		t.Error("the targets differ (-want +got):\n", diff)
	}
}

// Writes and reads of 4 KB stand beside sends, with a target where the path has one; the 99 % latencies of polling have
// one on every path.
func TestShortMessagesAndTailsHaveTargets(t *testing.T) {
	aims := map[string]string{}
	note := func(path string, figures []figure) {
		for _, f := range figures {
			if f.target != nil && (f.peerSample == "send4096" || strings.HasSuffix(f.sample, " 99")) {
				aims[path+f.sample] = f.target.String()
			}
		}
	}
	note("few: ", bandwidthFigures(goals{few: 0.8}))
	note("none: ", bandwidthFigures(goals{}))
	note("", latencyFigures(0, 0.8))
	want := map[string]string{"few: write4096": "≥ 0.80 times", "few: read4096": "≥ 0.80 times",
		"send 99": "≤ 2.00 times", "write 99": "≤ 2.00 times"}
	if diff := cmp.Diff(want, aims); diff != "" {
		t.Error("the targets differ (-want +got):\n", diff)
	}
}

func TestNoSuchRow(t *testing.T) {
	_, err := Run(context.Background(), Options{Rounds: 1, Seconds: 0.05, Parts: []string{"loopback"}, Rows: []string{"parsnip"}})
	if !errors.Is(err, ErrNoRow) || !strings.Contains(err.Error(), "parsnip") {
		t.Error("want an ErrNoRow that names parsnip, got ", err)
	}
}

// apart puts the two sides on different processors where there are two, unless everything is to run on one.
func TestSidesApart(t *testing.T) {
	q := (&path{}).apart()
	got := strings.Join(q.server.placed([]string{"x", "y"}), " ")
	switch {
	case runtime.NumCPU() == 1 || !installed("taskset"):
		if got != "x y" {
			t.Errorf("one processor: %q", got)
		}
	case q.server.processor == q.client.processor:
		t.Errorf("both are on processor %s", q.client.processor)
	case got != "taskset -c "+q.server.processor+" x y":
		t.Error("the server's command is ", got)
	}
	if one := (&path{one: true}).apart(); one.server.processor != "" || one.client.processor != "" {
		t.Errorf("one processor for all: %+v, want no processor for either side", one)
	}
}

// Workers that poll with embedded adapters run their Go code on one processor, unless the user has set GOMAXPROCS.
// Workers that are attached to a driver do not.
func TestPolling(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	p := &path{env: []string{"A=b"}}
	if got := p.polling().env; !slices.Equal(got, []string{"A=b", "GOMAXPROCS=1"}) || len(p.env) != 1 {
		t.Errorf("embedded: %q, and the path itself has %q", got, p.env)
	}
	if got := (&path{socket: "s"}).polling().env; len(got) != 0 {
		t.Errorf("attached: %q, want nothing", got)
	}
	t.Setenv("GOMAXPROCS", "2")
	if got := p.polling().env; !slices.Equal(got, p.env) {
		t.Errorf("the user asked for 2: %q", got)
	}
}
