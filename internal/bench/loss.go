package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/bench/worker"
)

// The names of the tables of loss.
const (
	lossPart    = "random loss, in one virtual machine in turn"
	lossRxePart = "random loss, one processor, next to Soft-RoCE"
)

// What test/rxebench/guest/loss.sh and speed.sh measure: the packet loss in percent, and the numbers of
// queue pairs.
var (
	losses  = []string{"0", "0.1", "1", "5"}
	lossQPs = []int{1, 4}
)

// loss measures SoftVPI and Soft-RoCE alternately in one virtual machine with packet loss.
func (r *runner) loss() error {
	s := samples{}
	r.progress("loss: booting the virtual machine")
	if err := r.virtualMachine(s); err != nil {
		return err
	}
	r.addLoss(lossPart, s)
	return nil
}

func (r *runner) addLoss(part string, s samples) {
	for _, qps := range lossQPs {
		for _, loss := range losses {
			r.report.add(part, s, lossFigures(loss, qps)...)
		}
	}
}

func lossFigures(loss string, qps int) []figure {
	ours, theirs := fmt.Sprintf("ours %s %d", loss, qps), fmt.Sprintf("rxe %s %d", loss, qps)
	name := fmt.Sprintf("%s %% lost, %d QP", loss, qps)
	aim := map[string]*Target{"0.1": timesAtLeast(1), "1": timesAtLeast(2)}[loss]
	return []figure{
		{name + ": writes of 64 KB", "Gb/s", ours, "rxe", theirs, aim},
		{name + ": packets sent again", "% of those needed", ours + " again", "rxe", theirs + " again", nil},
		{name + ": time-outs", "a second", ours + " time-outs", "rxe", theirs + " time-outs", nil},
	}
}

// virtualMachine boots the guest and reads its results. Existing virtualization hardware may still not run
// it (nested under some hypervisors), so what counts is a guest that prints something. The choice is
// stored next to the image.
func (r *runner) virtualMachine(s samples) error {
	kept := filepath.Join(r.o.LossGuest, "accel")
	accels := []string{"kvm", "tcg"}
	if b, err := os.ReadFile(kept); err == nil {
		accels = []string{strings.TrimSpace(string(b))}
	} else if f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err != nil {
		accels = []string{"tcg"}
	} else {
		f.Close()
	}
	var err error
	for i, accel := range accels {
		patience := 10 * time.Minute
		if i+1 < len(accels) {
			patience = 15 * time.Second
		}
		var spoke bool
		if spoke, err = r.emulated(s, accel, patience); spoke {
			_ = os.WriteFile(kept, []byte(accel), 0o644) // determined again next time if it cannot be stored
			return err
		}
	}
	return err
}

// emulated runs the guest. spoke reports whether it came up; a guest that has not done so within patience
// is killed.
func (r *runner) emulated(s samples, accel string, patience time.Duration) (spoke bool, err error) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	machine := []string{"-accel", "kvm", "-cpu", "host"}
	if accel == "tcg" {
		machine = []string{"-accel", "tcg,thread=multi", "-cpu", "max,la57=off,pcid=off"}
	}
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", append(machine, "-M", "pc", "-smp", "2", "-m", "1024", "-nodefaults", "-display",
		"none", "-no-reboot",
		"-kernel", filepath.Join(r.o.LossGuest, "kernel"), "-initrd", filepath.Join(r.o.LossGuest, "initrd"), "-device", "virtio-rng-pci",
		"-serial", "stdio",
		"-append", fmt.Sprintf("console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on tsc=reliable rcupdate.rcu_cpu_stall_suppress=1 seconds=%s rounds=%d", r.seconds(), r.o.Rounds))...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, errSkip{err.Error()}
	}
	late := time.AfterFunc(patience, cancel)
	defer late.Stop()
	g := guestOutput{samples: s, seconds: r.o.Seconds}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if g.line(lines.Text()) {
			spoke = true
			late.Stop()
			r.progress("loss: %s", g.name)
		}
	}
	_ = cmd.Wait() // the guest itself reports how it ended
	if !spoke {
		return false, fmt.Errorf("the guest (%s) did not come up: %s", accel, strings.Join(g.noise, "\n"))
	}
	return true, g.end()
}

// Pair measures writes between two adapters of this machine that are connected by the wire, each in a
// process of its own.
func Pair(ctx context.Context, a worker.PairArgs) (x worker.PairResult, err error) {
	exe, err := os.Executable()
	if err != nil {
		return x, err
	}
	r := &runner{ctx: ctx, exe: exe}
	p := &path{server: side{addr: a.B.String()}, client: side{addr: a.A.String()}}
	p.port = a.UDPPort
	server, client, err := r.couple(p.polling(), 0)
	if err != nil {
		return x, err
	}
	defer server.end()
	defer client.end()
	if _, err := connect(server, client, worker.EndpointArgs{QPs: a.QPs, Depth: a.Depth, Memory: setSize}); err != nil {
		return x, err
	}
	// Like in rxebench, the first fifth of the time is warm-up.
	var w worker.Written
	if err := client.call("write", worker.WriteArgs{QPs: a.QPs, Size: a.Bytes, Depth: a.Depth, Seconds: 1.25 * a.Seconds,
		Warm: a.Seconds / 4}, &w); err != nil {
		return x, err
	}
	x.Gbps, x.All, x.Seconds = w.Gbps, w.Messages, w.Seconds
	x.Counters, err = counters(client)
	return x, err
}
