package fabric

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/administration"
	"github.com/softvpi/softvpi/internal/subnet/service"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// What ports have registered passes from one manager to the next through the file that OpenSM calls opensm-sa.dump.
// OpenSM reads the file that ours wrote, and ours the one that OpenSM wrote; each time Debian's saquery sees the same
// groups with their members and multicast LIDs, subscriptions, services and GUIDs.
func TestRegistrationsGoBetweenManagers(t *testing.T) {
	t.Parallel()
	d := newDatagrams(t, "saquery")
	text, err := os.ReadFile("../../internal/subnet/administration/testdata/opensm-sa.dump")
	if err != nil {
		t.Fatal(err)
	}
	first, err := administration.ReadRegistrations(strings.NewReader(string(text)), time.Unix(0x5e0d7a00, 0))
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(d.dir, name) }
	if err := os.WriteFile(file("first"), first.AppendText(nil, time.Now()), 0o600); err != nil {
		t.Fatal(err)
	}
	d.opensmWith("one", file("first"))
	want := d.registered()
	for _, part := range []string{"ff12:601b:ffff::16", "0xc007", "a name with blanks", "SubscriberGID...........fe80::2:c903:0:1003",
		"0x00000000000000bb"} {
		if !strings.Contains(want, part) {
			t.Errorf("OpenSM does not show %q of what ours wrote:\n%s", part, want)
		}
	}
	d.flow("c", "inventory")
	d.flow("s", "inventory") // makes it write the file
	d.endOpenSM(file("one/opensm-sa.dump"))

	stop := d.ownWith(service.Files{Load: file("one/opensm-sa.dump"), Dump: file("own.dump")})
	if got := d.registered(); got != want {
		t.Errorf("with ours, from what OpenSM wrote:\n%s\nwant\n%s", got, want)
	}
	d.flow("s", "inventory")
	stop()

	d.opensmWith("two", file("own.dump"))
	if got := d.registered(); got != want {
		t.Errorf("with OpenSM, from what ours wrote:\n%s\nwant\n%s", got, want)
	}
}

// opensmWith runs OpenSM with a file of registrations until endOpenSM, and makes it write its own file into a
// directory.
func (d *datagrams) opensmWith(dir, load string) {
	d.t.Helper()
	dir = filepath.Join(d.dir, dir)
	conf := dir + ".conf"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(conf, []byte("sa_db_dump TRUE\ndump_files_dir "+dir+"\n"), 0o600); err != nil {
		d.t.Fatal(err)
	}
	log := filepath.Base(dir) + ".log"
	d.running = d.at("hca1", "opensm", "-f", filepath.Join(d.dir, log), "-d", "2", "-F", conf, "-S", load)
	d.start(d.running, filepath.Base(dir)+".out")
	d.log(log, "SUBNET UP")
}

// endOpenSM stops OpenSM in order, whereupon it writes the file.
func (d *datagrams) endOpenSM(file string) {
	d.t.Helper()
	if err := d.running.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	d.wait("OpenSM has written its file and is gone", func() bool {
		_, err := os.Stat(file)
		return err == nil && !d.isManaged()
	})
}

// ownWith runs our manager with files until stop is called.
func (d *datagrams) ownWith(files service.Files) (stop func()) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done, up := make(chan error, 1), make(chan struct{}, 64)
	go func() {
		done <- d.rack.Manage(ctx, fabric.Place{Node: 0, Port: 1}, service.Config{Files: files, Subnet: subnet.Config{HonorLIDs: true},
			Tell: func(e subnet.Event) error {
				if e.Kind == subnet.EventUp {
					select {
					case up <- struct{}{}:
					default:
					}
				}
				return nil
			}})
	}()
	select {
	case <-up:
	case <-time.After(2 * await.Limit):
		d.t.Fatal("the subnet does not come up")
	}
	return func() {
		cancel()
		if err := <-done; err != nil {
			d.t.Error(err)
		}
	}
}

// changing matches what saquery shows that depends on the time, or on the order in which a manager keeps things. On a
// little-endian machine OpenSM has ProxyJoin in another bit than the specification (IBA 15.2.5.17) and Linux.
var changing = regexp.MustCompile(`(?m)^.*(Lease|Enum|ProxyJoin).*\n`)

// recordHead matches what saquery prints above each record.
var recordHead = regexp.MustCompile(`(?m)^.*Record dump:\n`)

// registered returns what saquery shows of registrations, without the services of osmtest, whose leases end during
// the test or soon after.
func (d *datagrams) registered() string {
	var b strings.Builder
	for _, q := range [][]string{{"MCMR"}, {"IIR"}, {"SR"}, {"GIR", "4/0"}} {
		var out string
		d.wait("saquery "+q[0]+" is answered", func() bool { // saquery gives up after a second
			b, err := d.at("hca2", "saquery", append([]string{"--smkey", "1"}, q...)...).CombinedOutput()
			out = changing.ReplaceAllString(string(b), "")
			return err == nil
		})
		records := slices.DeleteFunc(recordHead.Split(out, -1), func(r string) bool { return strings.Contains(r, "osmt.srvc.") })
		slices.Sort(records)
		b.WriteString(strings.Join(records, "record:\n"))
	}
	return b.String()
}
