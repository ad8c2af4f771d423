package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/bench/worker"
	"github.com/softvpi/softvpi/internal/tools/ndperf"
)

// The addresses that test/rxebench/guest/veth.sh connects.
const pairA, pairB = "192.0.2.1", "192.0.2.2"

// rxe measures the kernel's Soft-RoCE in a user-mode kernel, and SoftVPI in the same way: on one
// processor, both ends in one process driven by one thread, across a pair of virtual devices.
func (r *runner) rxe() error {
	script := filepath.Join(r.o.SoftRoCE, "veth.sh")
	start, closeHost, err := hostOf(script)
	if err != nil {
		return errSkip{err.Error()}
	}
	single, closeSingle, err := hostOf(script, "single=1")
	if err != nil {
		return errors.Join(errSkip{err.Error()}, closeHost())
	}
	pair := &path{name: "one processor, next to Soft-RoCE", server: side{start: start}, client: side{start: start}, one: true}
	// If every packet arrives singly the programs that receive short packets in memory look at each of them.
	lossy := &path{name: lossRxePart, client: side{start: single}, one: true, env: []string{"SOFTVPI_FRAMES=off"}}
	return errors.Join(r.besideRxe(pair, lossy), closeSingle(), closeHost())
}

func (r *runner) besideRxe(pair, lossy *path) error {
	attached, stop, err := r.driven(true)
	if err != nil {
		return err
	}
	defer stop()
	s := samples{}
	for i := range r.o.Rounds {
		r.progress("rxe: round %d of %d, Soft-RoCE", i+1, r.o.Rounds)
		if err := r.guest(s); err != nil {
			return err
		}
		r.progress("rxe: round %d of %d, SoftVPI", i+1, r.o.Rounds)
		for _, op := range worker.PairOps {
			for _, mtu := range []int{1024, 4096} {
				if err := r.onePair(pair, s, op, mtu); err != nil {
					return err
				}
			}
		}
		for _, loss := range losses {
			for _, qps := range lossQPs {
				if err := r.lossyPair(lossy, s, loss, qps); err != nil {
					return err
				}
			}
		}
		for _, verb := range verbs {
			row, err := r.rdma(attached, ndperf.Test{Verb: verb, Measure: ndperf.Bandwidth}, "-s", fmt.Sprint(large), "-D", r.seconds())
			if err != nil {
				return err
			}
			s.add("attached "+string(verb), row.Gbps)
		}
	}
	r.report.add(pair.name, s, rxeFigures()...)
	r.addLoss(lossy.name, s)
	return nil
}

func rxeFigures() []figure {
	var all []figure
	ops := []string{"write", "send", "read"}
	for _, x := range []struct {
		mtu int
		aim float64
	}{{4096, 1.1}, {1024, 1.5}} {
		for _, op := range ops {
			all = append(all, figure{fmt.Sprintf("%s of 1 MB across veth, path MTU %d", op, x.mtu), "Gb/s",
				fmt.Sprintf("ours %d %s", x.mtu, op),
				"rxe across veth", fmt.Sprintf("veth %d %s", x.mtu, op), timesAtLeast(x.aim)})
		}
	}
	for _, op := range ops {
		all = append(all, figure{op + " of 1 MB between two attached processes", "Gb/s", "attached " + op, "rxe to itself, path MTU 4096",
			"self 4096 " + op, timesAtLeast(3)})
	}
	for _, op := range ops {
		all = append(all, figure{fmt.Sprintf("%s of %d B across veth, median", op, latencyBytes), "us", "ours 4096 " + op + "-lat",
			"rxe less its system call", "net " + op + "-lat", timesAtMost(1)})
	}
	return append(all, figure{name: "system call of the user-mode kernel", unit: "us", sample: "syscall"})
}

// onePair measures SoftVPI.
func (r *runner) onePair(p *path, s samples, op string, mtu int) error {
	size, depth := large, 4
	if strings.HasSuffix(op, "-lat") {
		size, depth = latencyBytes, 16
	}
	result, err := r.benchPair(p, op, mtu, size, depth)
	if err != nil {
		return err
	}
	s.add(fmt.Sprintf("ours %d %s", mtu, op), result.Gbps+result.Typical) // one of the two is 0
	return nil
}

// lossyPair measures writes of SoftVPI with packet loss.
func (r *runner) lossyPair(p *path, s samples, loss string, qps int) error {
	result, err := r.benchPair(p, "write", 1024, 64<<10, 16, "--loss", loss, "--qps", strconv.Itoa(qps))
	if err != nil {
		return err
	}
	s.addLossy(fmt.Sprintf("ours %s %d", loss, qps), result.Gbps, result.All, result.Seconds, result.Counters)
	return nil
}

func (r *runner) benchPair(p *path, op string, mtu, size, depth int, more ...string) (result worker.PairResult, err error) {
	x := r.command(p, append(r.own("bench-pair", "--a", pairA, "--b", pairB, "--op", op, "--mtu", strconv.Itoa(mtu), "--size",
		strconv.Itoa(size),
		"--seconds", r.seconds(), "--depth", strconv.Itoa(depth)), more...))
	if err := p.client.begin(x); err != nil {
		return result, err
	}
	if err := x.wait(); err != nil {
		return result, err
	}
	if err := json.Unmarshal(x.out.Bytes(), &result); err != nil {
		return result, fmt.Errorf("bench-pair: %w", err)
	}
	return result, nil
}

// plainLibrary keeps the guest's C library from using registers that a user-mode kernel does not restore
// after a page fault if the processor has AMX (see test/rxebench/kernel/build.sh).
const plainLibrary = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX_Fast_Unaligned_Load"

// guest boots the user-mode kernel, which measures and prints a line of JSON for each name and each
// result.
func (r *runner) guest(s samples) error {
	cmd := exec.CommandContext(r.ctx, "taskset", "-c", strconv.Itoa(runtime.NumCPU()-1), filepath.Join(r.o.SoftRoCE, "linux"),
		"mem=1024M", "initrd="+filepath.Join(r.o.SoftRoCE, "initrd"), "root=/dev/ram0", "rw", "con0=null,fd:1", "con=null", "console=tty0",
		"quiet", "loglevel=4", "panic=-1", "random.trust_cpu=on", "seconds="+r.seconds(), plainLibrary)
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		cmd.Env = append(os.Environ(), "TMPDIR=/dev/shm") // where the guest's memory file is not on a disk
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	g := guestOutput{samples: s, seconds: r.o.Seconds}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		g.line(lines.Text())
	}
	_ = cmd.Wait() // the guest itself reports how it ended
	return g.end()
}
