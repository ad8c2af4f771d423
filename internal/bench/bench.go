package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Options say what to measure.
type Options struct {
	Rounds  int     // interleaved runs, whose median counts
	Seconds float64 // per run
	Parts   []string
	// Rows limits the measurements to rows whose names contain one of these texts, ignoring case, and
	// their peers. Empty: all. The parts from buffer on are always measured completely.
	Rows    []string
	Command string // as the user typed it, for the report
	// QPs and Connections size the part scale: queue pairs created and destroyed, and simultaneous
	// connections. 0: 100,000 and 20,000.
	QPs, Connections int
	// SoftRoCE is the directory that test/rxebench filled; empty: part rxe is not measured.
	SoftRoCE string
	// LossGuest is the directory of the virtual machine for part loss; empty: it is not measured.
	LossGuest string
	// GRPC is the worker that also serves gRPC (test/grpcbench); empty: part net is measured without it.
	GRPC string
	// Progress receives a line that says what is being measured; nil: none.
	Progress io.Writer
}

// Parts lists the parts in the order in which they are measured.
var Parts = []string{"loopback", "veth9000", "veth1500", "attached", "net", "buffer", "waiting", "scale", "hosts", "tunnels", "functions",
	"packetdirect", "qos", "trace", "rxe", "loss"}

// runner measures: it starts the processes and collects the report.
type runner struct {
	ctx    context.Context
	exe    string
	o      Options
	report *Report
	width  int // of the progress line currently on the terminal
	// needed holds the samples needed for the requested rows, nil if all are.
	needed map[string]bool
}

// errSkip says why a part cannot be measured here.
type errSkip struct{ why string }

func (e errSkip) Error() string { return e.why }

// Run measures. After an error the report holds what was measured before.
func Run(ctx context.Context, o Options) (*Report, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o.QPs, o.Connections = cmp.Or(o.QPs, 100_000), cmp.Or(o.Connections, 20_000)
	r := &runner{ctx: ctx, exe: exe, o: o, report: &Report{
		Machine: machine(), Command: o.Command, Started: time.Now().Format(time.RFC3339), Rounds: o.Rounds, Seconds: o.Seconds,
		Rows: []Row{}, Skipped: []Skip{},
	}}
	defer r.progress("")
	for _, tool := range []string{"iperf3", "sockperf"} {
		if _, err := exec.LookPath(tool); err != nil {
			r.report.skip(tool, "it is not installed")
		}
	}
	tools := len(r.report.Skipped)
	measure := map[string]func() error{
		"loopback": r.loopback,
		"veth9000": r.veth(9000, goals{large: 2, one: 2, four: 3}),
		"veth1500": r.veth(1500, goals{large: 1.5, one: 2, four: 3, few: 0.8}),
		"attached": r.attached, "net": r.net, "buffer": r.buffer, "waiting": r.waiting, "scale": r.scale,
		"hosts": r.hosts, "tunnels": r.tunnels, "functions": r.functions, "packetdirect": r.packetdirect, "qos": r.qos,
		"trace": r.trace, "rxe": r.rxe, "loss": r.loss,
	}
	for _, part := range Parts {
		if !o.wants(part) {
			continue
		}
		var skip errSkip
		if err := measure[part](); errors.As(err, &skip) {
			r.report.skip(part, skip.why)
		} else if err != nil {
			return r.report, fmt.Errorf("%s: %w", part, err)
		}
	}
	if len(o.Rows) > 0 && len(r.report.Rows) == 0 && len(r.report.Skipped) == tools {
		return nil, fmt.Errorf("%w %s", ErrNoRow, strings.Join(o.Rows, ", "))
	}
	return r.report, nil
}

// ErrNoRow says that Options.Rows matches nothing that the parts measure.
var ErrNoRow = errors.New("no row of the parts to be measured has in its name")

// choose returns the requested figures, and notes which samples they need.
func (r *runner) choose(all []figure) []figure {
	if len(r.o.Rows) == 0 {
		return all
	}
	r.needed = map[string]bool{}
	chosen := slices.DeleteFunc(all, func(f figure) bool { return !r.o.names(f.name) })
	for _, f := range chosen {
		r.needed[f.sample], r.needed[f.peerSample] = true, true
	}
	return chosen
}

// names reports whether a row of this name is requested.
func (o *Options) names(row string) bool {
	return len(o.Rows) == 0 || slices.ContainsFunc(o.Rows, func(text string) bool {
		return strings.Contains(strings.ToLower(row), strings.ToLower(text))
	})
}

// needs reports whether any of the samples is needed.
func (r *runner) needs(samples ...string) bool {
	return r.needed == nil || slices.ContainsFunc(samples, func(s string) bool { return r.needed[s] })
}

// wants reports whether a part is to be measured: the requested ones or, by default, all that need nothing
// besides this program.
func (o *Options) wants(part string) bool {
	if len(o.Parts) > 0 {
		return slices.Contains(o.Parts, part)
	}
	switch part {
	case "rxe":
		return o.SoftRoCE != ""
	case "loss":
		return o.LossGuest != ""
	}
	return true
}

// progress shows on one line what is being measured; an empty text clears the line.
func (r *runner) progress(format string, args ...any) {
	if r.o.Progress == nil {
		return
	}
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(r.o.Progress, "\r%-*s", r.width, text)
	if r.width = len(text); r.width == 0 {
		fmt.Fprint(r.o.Progress, "\r")
	}
}

// seconds returns the length of a run in the form that tools take.
func (r *runner) seconds() string { return fmt.Sprint(r.o.Seconds) }

func (r *runner) duration() time.Duration {
	return time.Duration(r.o.Seconds * float64(time.Second))
}

// machine describes the machine.
func machine() string {
	s := fmt.Sprintf("%s/%s, %d processors, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		s += ", Linux " + strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				return s + ", " + strings.TrimSpace(strings.TrimLeft(name, "\t :"))
			}
		}
	}
	return s
}
