package hostside

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/tun"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// lookInterval is how often the list of groups is read: the system does not tell of changes. That of IP's groups the host
	// reports itself.
	lookInterval = time.Second
	// lookPause is the least time between two looks: a host can report without end.
	lookPause = 10 * time.Millisecond
)

// groupList follows the multicast addresses of a TAP's interface, in whatever network namespace it is.
type groupList struct {
	asked atomic.Uint64
	look  chan struct{}
	done  chan struct{} // nil: it is not followed
	ended sync.WaitGroup
	news  atomic.Pointer[Groups]
	bell  int // an eventfd, readable while there are news; -1: none
}

// Follow implements Listener.
func (e *tapEnd) Follow() {
	l := &e.list
	l.end()
	if len(e.fds) == 0 {
		return
	}
	fd, err := unix.FcntlInt(uintptr(e.fds[0]), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return // frames to all groups pass on
	}
	l.done, l.look = make(chan struct{}), make(chan struct{}, 1)
	l.ended.Go(func() { l.run(fd, e.name, l.look, l.done) })
}

// Unfollow implements Listener.
func (e *tapEnd) Unfollow() { e.list.end() }

// Look implements Listener.
func (e *tapEnd) Look() uint64 {
	n := e.list.asked.Add(1)
	select {
	case e.list.look <- struct{}{}:
	default: // somebody has asked already
	}
	return n
}

// News implements Listener.
func (e *tapEnd) News() *Groups {
	l := &e.list
	if l.news.Load() == nil {
		return nil
	}
	var b [8]byte
	_, _ = unix.Read(l.bell, b[:])
	return l.news.Swap(nil)
}

func (l *groupList) end() {
	if l.done != nil {
		close(l.done)
		l.ended.Wait()
		l.done = nil
		l.news.Store(nil)
	}
}

// run reads the list until done is closed. It owns fd.
func (l *groupList) run(fd int, name string, look, done chan struct{}) {
	defer unix.Close(fd)
	var last *Groups
	for {
		g := &Groups{Asked: l.asked.Load()}
		var err error
		if g.List, g.All, err = groupsOf(fd, name); err != nil { // it is gone, or where this driver may not look
			g.All = true
		}
		if last == nil || !last.equal(g) {
			last = g
			l.news.Store(&Groups{List: g.List, All: g.All, Asked: g.Asked})
			_, _ = unix.Write(l.bell, []byte{7: 1})
		}
		select {
		case <-done:
			return
		case <-time.After(lookPause):
		}
		select {
		case <-done:
			return
		case <-look:
		case <-time.After(lookInterval - lookPause):
		}
	}
}

func (g *Groups) equal(o *Groups) bool {
	if g.All != o.All || g.Asked != o.Asked || len(g.List) != len(o.List) {
		return false
	}
	for i := range g.List {
		if g.List[i] != o.List[i] {
			return false
		}
	}
	return true
}

// groupsOf returns the multicast addresses of the interface of a TAP's descriptor, which had that name, and whether it wants frames
// to all.
func groupsOf(fd int, name string) (list []eth.MAC, all bool, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	space, now, err := tun.Whereabouts(fd)
	if err == nil {
		defer space.Close()
		here, err := netns.Get()
		if err != nil {
			return nil, false, err
		}
		defer here.Close()
		name = now
		if !here.Equal(space) {
			if err := netns.Set(space); err != nil {
				return nil, false, err
			}
			defer func() {
				if netns.Set(here) != nil {
					runtime.LockOSThread() // a thread that cannot go back ends with its goroutine
				}
			}()
		}
	}
	i, err := netlink.LinkByName(name)
	if err != nil {
		return nil, false, err
	}
	a := i.Attrs()
	if all, err = wantsAll(a.Index); err != nil {
		return nil, false, err
	}
	f, err := os.Open("/proc/thread-self/net/dev_mcast")
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	list, err = parseGroups(bufio.NewScanner(f), a.Index)
	return list, all, err
}

// wantsAll reports whether frames to all groups are for an interface, because somebody listens to everything or a bridge has it. Its
// flags do not say so.
func wantsAll(index int) (bool, error) {
	const allMulticast = 61 // IFLA_ALLMULTI, of Linux 6.1
	r := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	about := nl.NewIfInfomsg(unix.AF_UNSPEC)
	about.Index = int32(index)
	r.AddData(about)
	answers, err := r.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil || len(answers) == 0 || len(answers[0]) < unix.SizeofIfInfomsg {
		return false, errors.Join(errInterface, err)
	}
	attributes, err := nl.ParseRouteAttr(answers[0][unix.SizeofIfInfomsg:])
	if err != nil {
		return false, errors.Join(errInterface, err)
	}
	for _, x := range attributes {
		switch x.Attr.Type {
		case unix.IFLA_PROMISCUITY, allMulticast, unix.IFLA_MASTER:
			if len(x.Value) >= 4 && binary.NativeEndian.Uint32(x.Value) != 0 {
				return true, nil
			}
		}
	}
	return false, nil
}

var errInterface = errors.New("the system does not say who listens to an interface")

// errGroups says that the system's list of multicast addresses is not what it was known to be.
var errGroups = errors.New("/proc/net/dev_mcast: a line of another form than: index, name, uses, uses of all, address")

// parseGroups reads the addresses of an interface in the system's list (/proc/net/dev_mcast).
func parseGroups(s *bufio.Scanner, index int) (list []eth.MAC, err error) {
	for s.Scan() {
		w := strings.Fields(s.Text())
		if len(w) != 5 {
			return nil, errGroups
		}
		if w[0] != strconv.Itoa(index) {
			continue
		}
		b, err := hex.DecodeString(w[4])
		if err != nil || len(b) != len(eth.MAC{}) {
			return nil, errGroups
		}
		list = append(list, eth.MAC(b))
	}
	return list, s.Err()
}
