package scale

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// Programs that are stopped again and again, while they carry out their requests in each other's memory, lose and
// alter nothing, and delay nobody but their peer: meanwhile the driver answers, and moves connections of stopped
// programs to the wire when it is told to.
func TestStoppedPrograms(t *testing.T) {
	beside(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d := startDriver(t, "auto")
	server, client := d.attach(t, 0), d.attach(t, 1)
	args := mixedArgs(2)
	server.call(t, "endpoint", args, nil)
	client.call(t, "endpoint", args, nil)
	pair(t, server, client)

	seconds := float64(size(20, 2))
	file, enough := goOn(t)
	run := converse(t, server, client, askArgs{Seconds: seconds, Seed: seed, While: file})
	direct := func() (n uint64) {
		for _, a := range d.Status().Adapters {
			n += a.Counters["Direct messages"]
		}
		return n
	}
	await.Until(func() bool { return direct() > 0 || run.ended() })
	r := rand.New(rand.NewPCG(seed, 3))
	stops := 0
	for end := time.Now().Add(time.Duration(seconds * 0.8 * float64(time.Second))); time.Now().Before(end); stops++ {
		w := []*worker{server, client}[r.IntN(2)]
		if err := w.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Error(err)
		}
		if r.IntN(4) == 0 {
			for _, path := range []string{"wire", "auto"} {
				if err := d.SetLink(driver.LinkRequest{Adapter: "left", Path: &path}); err != nil {
					t.Error(err)
				}
			}
		}
		_ = d.Status() // which would never return if it waited for the program
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		if err := w.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	}
	enough()
	did := run.end()
	t.Logf("%d operations, %d messages, %d direct; stopped %d times", did.Operations, did.Messages, direct(), stops)
	if direct() == 0 {
		t.Error("nothing took the direct path")
	}
}
