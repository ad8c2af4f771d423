package service

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/tun"
)

// plugTeam makes a team of ports the interface "ib0" in a namespace, with addresses.
func (b *bed) plugTeam(ns netns.NsHandle, ports []int, addrs ...string) (t *Team, members []*Interface) {
	b.t.Helper()
	inNamespace(b.t, ns, func() error {
		d, err := tun.Open("ib0")
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) {
			return errNoTUN
		}
		if err != nil {
			return err
		}
		f, err := NewFront(d)
		if err != nil {
			return errors.Join(err, d.Close())
		}
		b.t.Cleanup(func() { f.Close() })
		if t, err = NewTeam(TeamConfig{Names: []string{"first", "second"}[:len(ports)], Primary: "first"}, d); err != nil {
			return err
		}
		b.t.Cleanup(t.Close)
		f.Stand(t, nil, nil)
		return address("ib0", addrs)
	})
	return t, b.join(t, ports...)
}

// TestTeam_Namespaces: a TCP connection of two network namespaces goes on, and echo requests of both address families are answered, while
// the port fails that carries the one end's team, when it is back, and while the other one leaves and comes again, which lets the one that
// carries be. The subnet manager is at the other end's port.
func TestTeam_Namespaces(t *testing.T) {
	systemtest.Mark(t)
	spaces := namespaces(t, 2)
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip("needs /dev/net/tun")
	}
	b := newBed(t, 3, subnet.Config{})
	team, members := b.plugTeam(spaces[0], []int{1, 2}, "10.7.0.1/24", "fd07::1/64")
	y := b.plug(0, spaces[1], ipoib.Config{}, "10.7.0.2/24", "fd07::2/64")
	b.up(append(members, y)...)
	near, far := connected(t, spaces, "10.7.0.2")
	for n, active := range []int{0, 1, 0} {
		if n > 0 {
			b.plugs[1].SetPlugged(active == 0)
		}
		b.until(fmt.Sprintf("member %d carries", active), func() bool { return team.Status().Active == active })
		for _, ends := range [][2]net.Conn{{near, far}, {far, near}} {
			if err := transfer(ends[0], ends[1], 1<<20); err != nil {
				t.Fatalf("with member %d: %v", active, err)
			}
		}
		for _, to := range []string{"10.7.0.2", "fd07::2"} {
			inNamespace(t, spaces[0], func() error { return echo(to, 1000) })
		}
		if n == 2 {
			carries := team.Status().Members[0].Interface
			team.Remove(team.Member(1))
			members[1].Close()
			for _, want := range []int{1, 2} {
				if want == 2 {
					m, err := team.Add("again", false, false)
					if err != nil {
						t.Fatal(err)
					}
					i, err := b.ports[2].Add(Config{}, m, nil)
					if err != nil {
						t.Fatal(err)
					}
					m.Join(i)
					b.up(i)
				}
				if err := transfer(near, far, 1<<20); err != nil {
					t.Fatalf("with %d members: %v", want, err)
				}
				if s := team.Status(); len(s.Members) != want || s.Active != 0 || s.Members[0].Interface != carries {
					t.Errorf("the team is %+v", s)
				}
			}
		}
		if sent := members[active].Status().Counters.SentPackets; sent == 0 {
			t.Errorf("member %d has sent nothing", active)
		}
	}
}

// connected returns the ends of a TCP connection from the first namespace to the second.
func connected(t *testing.T, spaces []netns.NsHandle, addr string) (near, far net.Conn) {
	t.Helper()
	var l net.Listener
	inNamespace(t, spaces[1], func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(addr, "0"))
		return err
	})
	defer l.Close()
	inNamespace(t, spaces[0], func() (err error) {
		near, err = net.DialTimeout("tcp", l.Addr().String(), await.Limit)
		return err
	})
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		near.Close()
		far.Close()
	})
	return near, far
}

// transfer sends bytes from one end of a connection to the other, and compares them there.
func transfer(from, to net.Conn, size int) error {
	late := time.Now().Add(await.Limit)
	if err := errors.Join(from.SetDeadline(late), to.SetDeadline(late)); err != nil {
		return err
	}
	want := bytes.Repeat([]byte("through the team"), size/16)
	sent := make(chan error, 1)
	go func() {
		_, err := from.Write(want)
		sent <- err
	}()
	got := make([]byte, len(want))
	_, err := io.ReadFull(to, got)
	if err := errors.Join(err, <-sent); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return errors.New("other bytes arrived than were sent")
	}
	return nil
}
