package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/bench/frames"
	"github.com/softvpi/softvpi/internal/os/paths"
)

// frameMAC is the MAC of the adapter that receives.
const frameMAC = "02:00:00:00:00:0b"

// frameBytes and frameBurst are those of the frames that are measured, without FCS.
const (
	frameBytes = 64
	frameBurst = 32
)

// packetdirect measures frames between two programs with packetdirect: of one driver, and across a veth with a driver at each end
// beside the rings of packet sockets there.
func (r *runner) packetdirect() error {
	inside := []figure{
		{name: "64 B frames between programs of one driver, bursts of 32", unit: "M/s", sample: "inside", target: atLeast(4)},
		{name: "processor time of the driver for one", unit: "ns", sample: "inside driver"},
		{name: "processor time of the receiving program for one, with its polls", unit: "ns", sample: "inside receiver"},
		{name: "64 B frames of 64 flows spread over 4 queues (RSS), one driver", unit: "M/s", sample: "spread",
			peer: "one queue", peerSample: "unspread"},
		{name: "1514 B frames cut from large sends of 60 KB, one driver", unit: "M/s", sample: "large", peer: "each frame posted, with checksums",
			peerSample: "uncut"},
	}
	across := []figure{
		{name: "64 B frames across veth, bursts of 32", unit: "M/s", sample: "across", peer: "rings of packet sockets (TPACKET_V3)",
			peerSample: "rings", target: timesAtLeast(0.8)},
		{name: "64 B frames across veth, received by packetdirect from rings", unit: "M/s", sample: "from rings",
			peer: "rings of packet sockets (TPACKET_V3)", peerSample: "rings"},
	}
	figures := r.choose(append(inside, across...))
	if len(figures) == 0 {
		return nil
	}
	s := samples{}
	if r.needs("inside", "inside driver", "inside receiver", "spread", "unspread", "large", "uncut") {
		if err := r.framesInside(s); err != nil {
			return err
		}
	}
	if r.needs("across", "from rings") {
		var skip errSkip
		if err := r.framesAcross(s); errors.As(err, &skip) {
			r.report.skip("packetdirect across veth", skip.why)
		} else if err != nil {
			return err
		}
	}
	r.report.add("packetdirect", s, figures...)
	return nil
}

// framesInside measures between two adapters of one driver, on one wire.
func (r *runner) framesInside(s samples) error {
	dir, err := os.MkdirTemp("", "vpi-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	wire := filepath.Join(dir, "wire")
	// A wire is up while somebody has its other side.
	other, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: wire + ".peer", Net: "unixgram"})
	if err != nil {
		return err
	}
	defer other.Close()
	p := &path{}
	p.server.addr, p.client.addr = "a", "b"
	d, err := r.frameDriver(p, dir, &p.client, "a=192.0.2.1/24,datagram="+wire+",mac=02:00:00:00:00:0a",
		"b=192.0.2.2/24,datagram="+wire+",mac="+frameMAC)
	if err != nil {
		return err
	}
	defer d.stop()
	p.server.socket = p.client.socket
	pid := strconv.Itoa(d.cmd.Process.Pid)
	for i := range r.o.Rounds {
		r.progress("packetdirect: round %d of %d, one driver", i+1, r.o.Rounds)
		if err := r.framesOfFlows(s, p); err != nil {
			return err
		}
		if !r.needs("inside", "inside driver", "inside receiver") {
			continue
		}
		before, err := processorTime(pid)
		if err != nil {
			return err
		}
		x, err := r.frames(p, "", "", plainFrames)
		if err != nil {
			return err
		}
		after, err := processorTime(pid)
		if err != nil {
			return err
		}
		s.add("inside", x.Rate()/1e6)
		s.add("inside receiver", x.Busy*1e9/float64(max(x.Frames, 1)))
		// The sender goes on for a moment at both ends of the run.
		s.add("inside driver", float64((after-before)/time.Nanosecond)/float64(max(x.Frames, 1)))
	}
	return nil
}

// framesOfFlows measures what spreads and large sends cost, each beside the same frames without.
func (r *runner) framesOfFlows(s samples, p *path) error {
	const whole = frames.Headers + largeSegment
	for _, m := range []struct {
		sample string
		kind   frameKind
	}{
		{"spread", frameKind{size: frameBytes, flows: 64, queues: 4}}, {"unspread", frameKind{size: frameBytes, flows: 64}},
		{"large", frameKind{size: whole, flows: 1, segment: largeSegment}}, {"uncut", frameKind{size: whole, flows: 1, checksums: true}},
	} {
		if !r.needs(m.sample) {
			continue
		}
		x, err := r.frames(p, "", "", m.kind)
		if err != nil {
			return err
		}
		s.add(m.sample, x.Rate()/1e6)
	}
	return nil
}

// framesAcross measures between two drivers joined by a veth, and between packet sockets there, in turn.
func (r *runner) framesAcross(s samples) error {
	p, closeVeth, err := vethPath(1500)
	if err != nil {
		return errSkip{err.Error()}
	}
	defer closeVeth()
	dir, err := os.MkdirTemp("", "vpi-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i, x := range []*side{&p.server, &p.client} {
		mac := "02:00:00:00:00:0a"
		if i == 1 {
			mac = frameMAC
		}
		name := string(rune('a' + i))
		adapter := fmt.Sprintf("%s=198.51.100.%d/24,interface=vpi%d,mac=%s", name, i+1, i, mac)
		d, err := r.frameDriver(p, dir, x, adapter)
		if err != nil {
			return err
		}
		defer d.stop()
		x.addr = name
	}
	for i := range r.o.Rounds {
		r.progress("packetdirect: round %d of %d, veth", i+1, r.o.Rounds)
		for _, m := range []struct{ sample, from, to string }{{"across", "", ""}, {"rings", "vpi0", "vpi1"}, {"from rings", "vpi0", ""}} {
			if !r.needs(m.sample) {
				continue
			}
			x, err := r.frames(p, m.from, m.to, plainFrames)
			if err != nil {
				return err
			}
			s.add(m.sample, x.Rate()/1e6)
		}
	}
	return nil
}

// frameDriver starts a driver for a side.
func (r *runner) frameDriver(p *path, dir string, s *side, adapters ...string) (*process, error) {
	s.socket = filepath.Join(dir, s.addr+".sock")
	here := *p
	here.env = []string{paths.SocketVariable + "=" + s.socket, paths.StateVariable + "=" + filepath.Join(dir, s.addr),
		"XDG_CONFIG_HOME=" + dir}
	return r.driverOf(&here, *s, adapters...)
}

// stop ends a driver.
func (x *process) stop() {
	_ = x.cmd.Process.Signal(os.Interrupt)
	_ = x.cmd.Wait()
}

// frameKind is which frames are sent, and how: as the options of bench-frames.
type frameKind struct {
	size, flows, queues, segment int
	checksums                    bool
}

var plainFrames = frameKind{size: frameBytes}

// largeSegment is the data of a frame that is cut from a large send; 42 of them are one.
const largeSegment = 1460

// frames runs a program that sends and one that receives, through packetdirect, or through a packet socket on an interface,
// and returns what was received.
func (r *runner) frames(p *path, from, to string, k frameKind) (x frames.Result, err error) {
	end := func(s side, on string, args ...string) []string {
		args = append([]string{r.exe, "bench-frames", "--size", strconv.Itoa(k.size), "--flows", strconv.Itoa(k.flows)}, args...)
		if on != "" {
			return s.attached(append(args, "--interface", on))
		}
		return s.attached(append(args, "--adapter", s.addr))
	}
	burst := frameBurst
	if k.segment > 0 {
		burst = 1 // which is more frames than that already
	}
	out, err := r.pair(p, "sending", true, end(p.server, from, "--to", frameMAC, "--seconds", "3600", "--burst", strconv.Itoa(burst), "--segment", strconv.Itoa(k.segment),
		"--checksums="+strconv.FormatBool(k.checksums)),
		end(p.client, to, "--receive", "--seconds", r.seconds(), "--burst", strconv.Itoa(frameBurst), "--queues", strconv.Itoa(k.queues)))
	if err != nil {
		return x, err
	}
	err = json.Unmarshal(out, &x)
	return x, err
}
