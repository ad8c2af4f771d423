package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// programVariable makes the test binary a program that takes instructions from its standard input.
const programVariable = "SOFTVPI_SCALE_PROGRAM"

// program is the state of such a process.
type program struct {
	host *verbs.Host
	dev  *verbs.Device
	peer *endpoint
	// Methods named with the prefix "decoy " refer to decoy instead of peer.
	decoy *endpoint

	driver *driver.Driver
}

// runProgram serves calls until its input ends.
func runProgram(in io.Reader, out io.Writer) int {
	var p program
	d, e := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var r request
		if err := d.Decode(&r); err != nil {
			break
		}
		result, err := p.do(r.Method, r.Args)
		var a answer
		if err == nil {
			a.Result, err = json.Marshal(result)
		}
		if err != nil {
			a = answer{Error: err.Error()}
		}
		if err := e.Encode(a); err != nil {
			break
		}
	}
	var errs []error
	if p.host != nil {
		errs = append(errs, p.host.Close())
	}
	if p.driver != nil {
		errs = append(errs, p.driver.Close())
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "program: close:", err)
		return 1
	}
	return 0
}

// drive makes the program a driver.
func (p *program) drive(c config.Config) (_ struct{}, err error) {
	p.driver, err = driver.Start(context.Background(), c, driver.Options{Version: "test"})
	return struct{}{}, err
}

// do carries out one call.
func (p *program) do(method string, args json.RawMessage) (any, error) {
	if rest, ok := strings.CutPrefix(method, "decoy "); ok {
		p.peer, p.decoy = p.decoy, p.peer
		defer func() { p.peer, p.decoy = p.decoy, p.peer }()
		method = rest
	}
	switch method {
	case "drive":
		return decode(args, p.drive)
	case "places":
		return p.peer.places()
	case "scribble":
		return decode(args, scribble)
	case "open":
		return decode(args, p.open)
	case "usage":
		return measure(), nil
	case "counters":
		return p.counters()
	case "endpoint":
		return decode(args, p.endpoint)
	case "listen":
		return p.peer.listen()
	case "accepted":
		return decode(args, p.peer.accepted)
	case "connect":
		return decode(args, p.peer.connect)
	case "write":
		return decode(args, p.peer.write)
	case "rounds":
		return decode(args, p.peer.rounds)
	case "received":
		return decode(args, p.peer.received)
	case "loop":
		return nil, p.peer.loop()
	case "run":
		return decode(args, p.peer.run)
	case "ended":
		return decode(args, p.peer.ended)
	case "ask":
		return decode(args, p.peer.ask)
	case "serve":
		return p.peer.serve()
	case "drop":
		return nil, p.peer.drop()
	}
	return nil, fmt.Errorf("no method %q", method)
}

// decode calls f with its decoded arguments.
func decode[A, R any](args json.RawMessage, f func(A) (R, error)) (any, error) {
	var a A
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	return f(a)
}

// openArgs say how a program gets its adapter: from the driver at Socket, or embedded if Socket is empty.
type openArgs struct {
	Socket        string
	Addr          netip.Addr
	ReceiveBuffer int
	Wire          bool
}

func (p *program) open(a openArgs) (_ struct{}, err error) {
	if a.Socket != "" {
		ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
		defer cancel()
		p.host, err = verbs.Attach(ctx, a.Socket)
	} else {
		p.host, err = verbs.Embed(verbs.Config{Adapters: []verbs.AdapterConfig{{Addr: a.Addr, Wire: a.Wire,
			ReceiveBuffer: a.ReceiveBuffer}}})
	}
	if err != nil {
		return struct{}{}, err
	}
	p.dev, err = p.host.DeviceByAddr(a.Addr)
	return struct{}{}, err
}

func (p *program) counters() (map[string]uint64, error) {
	all, err := p.dev.Counters()
	m := map[string]uint64{}
	for _, c := range all {
		m[c.Name] = c.Value
	}
	return m, err
}

// usage is what a process uses.
type usage struct {
	FDs, Maps, Threads, Goroutines int

	Heap uint64 // bytes of live objects
	RSS  uint64 // bytes
}

// measure collects garbage and measures this process.
func measure() usage {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usageOf(os.Getpid())
	u.Goroutines, u.Heap = runtime.NumGoroutine(), m.HeapAlloc
	return u
}

// usageOf measures a process from outside; the result is zero if it has ended.
func usageOf(pid int) usage {
	dir := "/proc/" + strconv.Itoa(pid)
	var u usage
	if d, err := os.ReadDir(dir + "/fd"); err == nil {
		u.FDs = len(d)
	}
	if b, err := os.ReadFile(dir + "/maps"); err == nil {
		u.Maps = bytes.Count(b, []byte{'\n'})
	}
	if d, err := os.ReadDir(dir + "/task"); err == nil {
		u.Threads = len(d)
	}
	if b, err := os.ReadFile(dir + "/status"); err == nil {
		if _, rest, ok := strings.Cut(string(b), "VmRSS:"); ok {
			kb, _ := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			u.RSS = kb << 10
		}
	}
	return u
}

func (u usage) String() string {
	return fmt.Sprintf("%d descriptors, %d mappings, %d threads, %d goroutines, heap %.1f MB, RSS %.1f MB",
		u.FDs, u.Maps, u.Threads, u.Goroutines, float64(u.Heap)/1e6, float64(u.RSS)/1e6)
}
