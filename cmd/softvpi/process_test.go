package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/tools/ndperf"
)

func TestBenchmarksPrintBothSidesResults(t *testing.T) {
	systemtest.Mark(t)
	modes(t, func(t *testing.T, p place) {
		for _, test := range ndperf.Tests {
			name := test.Name()
			server, client := []string{name, "-S", p.first, "-p", "7001", "--json"}, []string{name, "-C", p.first, "-p", "7001", "--json",
				"-s", "4096", "-n", "50"}
			s := p.spawn(t, server...)
			waitListening(t, s)
			code, out, errs := p.run(t, client...)
			if code != 0 {
				t.Fatalf("%q: status %d, %s%s", client, code, out, errs)
			}
			serverCode, serverOut, errs := s.wait(t)
			if serverCode != 0 {
				t.Fatalf("%q: status %d, %s%s", server, serverCode, serverOut, errs)
			}
			for _, text := range []string{out, serverOut} {
				var r ndperf.Report
				d := json.NewDecoder(strings.NewReader(text))
				d.DisallowUnknownFields()
				if err := d.Decode(&r); err != nil {
					t.Fatalf("%s: %v in %s", name, err, text)
				}
				if _, err := d.Token(); err != io.EOF {
					t.Errorf("%s: something follows the JSON", name)
				}
				if r.Tool != name || len(r.Results) != 1 || r.Results[0].Client.Iterations != 50 || r.Results[0].Server.Iterations != 50 ||
					r.Results[0].Client.Bytes != 4096 {
					t.Errorf("%s: %+v", name, r)
				}
				if r.Results[0].Client.Gbps <= 0 || (test.Measure == ndperf.Latency) != (r.Results[0].Client.Latency != nil) {
					t.Errorf("%s: %+v", name, r.Results[0].Client)
				}
			}
		}
	})
}

func TestBandwidthOptions(t *testing.T) {
	systemtest.Mark(t)
	modes(t, func(t *testing.T, p place) {
		for _, c := range []struct{ name, options string }{
			{"all sizes", "-a -n 3"},
			{"queue pairs, lists, moderation, inline", "-s 64 -n 100 -q 4 -l 4 -Q 8 -t 16 -i 64"},
			{"time and events", "-D 0.2 -e -s 1024"},
			{"time and moderation", "-D 0.1 -Q 64 -s 1"},
			{"one block of memory", "-s 1048576 --cycle 1048576 -n 20"},
			{"less memory than a message", "-s 5000 --cycle 1 -n 20"},
		} {
			for _, name := range []string{"nd_send_bw", "nd_write_bw"} {
				out, _ := p.pair(t, "#qp", []string{name, "-S", p.first}, append([]string{name, "-C", p.first},
					strings.Fields(c.options)...))
				if n, want := strings.Count(out, "%\n"), 1; n < want || c.name == "all sizes" && n != 23 {
					t.Errorf("%s, %s: %d rows in\n%s", name, c.name, n, out)
				}
			}
		}
	})
}

func TestThresholdsSetTheExitStatus(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	for _, c := range []struct {
		tool, option string
		status       int
	}{
		{"nd_write_bw", "--min-bw=0.000001", 0}, {"nd_write_bw", "--min-bw=1000000", 1},
		{"nd_send_lat", "--max-lat=10000000", 0}, {"nd_send_lat", "--max-lat=0.000001", 1},
	} {
		s := p.spawn(t, c.tool, "-S", p.first)
		s.until(t, "#")
		code, _, errs := p.run(t, c.tool, "-C", p.first, "-n", "20", c.option)
		if code != c.status || (code != 0) != strings.Contains(errs, "missed") {
			t.Errorf("%s %s: status %d, want %d; %s", c.tool, c.option, code, c.status, errs)
		}
		s.wait(t)
	}
}

func TestPingRunsWithCheckedData(t *testing.T) {
	systemtest.Mark(t)
	modes(t, func(t *testing.T, p place) {
		s, c := p.pair(t, "listening", []string{"nd_rping", "-s", "-a", p.first, "-v", "-V", "-C", "4"},
			[]string{"nd_rping", "-c", "-a", p.first, "-v", "-V", "-C", "4", "-S", "2000"})
		if strings.Count(c, "\nping data: rdma-ping-")+1 != 4 || strings.Count(s, "server ping data: rdma-ping-") != 4 {
			t.Errorf("client:\n%s\nserver:\n%s", c, s)
		}
	})
}

func TestPersistentPingServerServesSeveralAndStops(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	s := p.spawn(t, "nd_rping", "-s", "-P", "-a", p.first)
	s.until(t, "listening")
	clients := []*process{}
	for range 3 {
		clients = append(clients, p.spawn(t, "nd_rping", "-c", "-V", "-a", p.first, "-C", "20"))
	}
	for _, c := range clients {
		if code, out, errs := c.wait(t); code != 0 {
			t.Errorf("client: status %d, %s%s", code, out, errs)
		}
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	if code, out, errs := s.wait(t); code != 0 {
		t.Errorf("server: status %d, %s%s", code, out, errs)
	}
}

func TestExamplePrograms(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	for _, c := range [][2]string{
		{"ndping", "-c -q 8"}, {"ndpingpong", "-c -n 3"}, {"ndrping", "-c -w"}, {"ndrping", "-c -r -b"}, {"ndrpingpong", "-c"},
	} {
		_, out := p.pair(t, "serving", []string{c[0], "-s", p.first}, append(append([]string{c[0]}, strings.Fields(c[1])...), p.first))
		if rows := strings.Count(out, "\n"); rows != 25 {
			t.Errorf("%s %s: %d lines\n%s", c[0], c[1], rows, out)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	start := time.Now()
	for _, args := range [][]string{
		{"nd_send_bw", "-C", p.first}, {"nd_rping", "-c", "-a", p.first}, {"ndping", "-c", p.first}, {"ndcat", p.first},
	} {
		code, _, errs := p.run(t, args...)
		if code != 1 || !strings.Contains(errs, "ND_CONNECTION_REFUSED") || !strings.Contains(errs, p.first+":") ||
			strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: status %d, %q", args, code, errs)
		}
	}
	if took := time.Since(start); took > await.Limit {
		t.Errorf("took %v", took)
	}
	s := p.spawn(t, "nd_rping", "-s", "-a", p.first) // there is an adapter, but nobody listens at the other port
	s.until(t, "listening")
	code, _, errs := p.run(t, "nd_send_bw", "-C", p.first)
	if code != 1 || !strings.Contains(errs, "ND_CONNECTION_REFUSED") || !strings.Contains(errs, "nobody listens") {
		t.Errorf("wrong port: status %d, %q", code, errs)
	}
}

func TestTheServerTellsAnotherProgramWhyItRefuses(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	s := p.spawn(t, "nd_send_bw", "-S", p.first)
	s.until(t, "#qp")
	code, _, errs := p.run(t, "nd_write_bw", "-C", p.first)
	if code != 1 || !strings.Contains(errs, "the server runs nd_send_bw, the client nd_write_bw") {
		t.Errorf("status %d, %q", code, errs)
	}
	if code, _, errs := p.run(t, "nd_send_bw", "-C", p.first, "-n", "10"); code != 0 { // the server still runs
		t.Errorf("status %d, %q", code, errs)
	}
}

func TestCatCopiesBothWays(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	there, back := make([]byte, 3<<20), make([]byte, 1<<20)
	for i := range there {
		there[i] = byte(rand.Uint32())
	}
	for i := range back {
		back[i] = byte(rand.Uint32())
	}
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	make := func(in []byte, args ...string) (*exec.Cmd, *bytes.Buffer) {
		out := new(bytes.Buffer)
		c := exec.CommandContext(ctx, os.Args[0], append([]string{"ndcat"}, args...)...)
		c.Env, c.Stdin, c.Stdout = p.env, bytes.NewReader(in), out
		return c, out
	}
	s, atServer := make(back, "-s", p.first)
	ready, err := s.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(ready).ReadString('\n'); err != nil || !strings.Contains(line, "waiting") {
		t.Fatal(line, err)
	}
	c, atClient := make(there, p.first)
	if err := c.Run(); err != nil {
		t.Error(err)
	}
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(atServer.Bytes(), there) || !bytes.Equal(atClient.Bytes(), back) {
		t.Errorf("%d of %d bytes there, %d of %d back, or not the same", atServer.Len(), len(there), atClient.Len(), len(back))
	}
}

func TestDemonstrationRuns(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	code, out, errs := p.run(t, "run-demo")
	if code != 0 || !strings.Contains(out, "ping data: rdma-ping-2") || !strings.Contains(out, "#qp") ||
		!strings.Contains(out, "stopping") {
		t.Errorf("status %d\n%s%s", code, out, errs)
	}
}

// If programs cannot attach, the tools run without the driver; and if there is only one address, the demonstration
// says what is missing.
func TestDemonstrationWhereProgramsCannotAttach(t *testing.T) {
	systemtest.Mark(t)
	p := newPlace(t)
	t.Setenv(asProgram, "1")
	for _, second := range []netip.Addr{netip.MustParseAddr(p.second), {}} {
		var out, errs printed
		d, err := newDemo(t.Context(), &out, &errs)
		if err != nil {
			t.Fatal(err)
		}
		defer d.close()
		d.first, d.second, d.attaches, d.each = netip.MustParseAddr(p.first), second, false, "0.002"
		if err := d.show(); err != nil {
			t.Errorf("%v: %s%s", err, out.String(), errs.String())
		}
		if ran := strings.Contains(out.String(), "(embedded)"); ran != second.IsValid() ||
			ran == strings.Contains(out.String(), "a second address") {
			t.Errorf("second address %v:\n%s", second, out.String())
		}
	}
}

// printed collects what several processes print at the same time, as a file does for which it needs no lock.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}
