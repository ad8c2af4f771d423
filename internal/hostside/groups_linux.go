package hostside

import (
	"bufio"
	"cmp"
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
	// lookInterval is how often the list of groups is read at least: of those of IP the system tells itself (newer ones than Linux
	// 6.13), and the host reports most.
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
	bell  int           // an eventfd, readable while there are news; -1: none
	every time.Duration // how often the list is read; 0: lookInterval
}

// groupNews is what the system tells of the groups of IP in one network namespace.
type groupNews struct {
	space  string   // of which it is; "": none
	socket *os.File // nil: the system does not tell
}

// follow begins to follow the groups in the namespace of the calling thread, which has a name, unless it does already: look is told
// of changes.
func (n *groupNews) follow(space string, look chan<- struct{}) {
	if n.space == space {
		return
	}
	n.end()
	n.space = space
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return
	}
	if err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err == nil {
		err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, unix.RTNLGRP_IPV4_MCADDR),
			unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, unix.RTNLGRP_IPV6_MCADDR))
	}
	if err != nil {
		unix.Close(fd)
		return
	}
	socket := os.NewFile(uintptr(fd), "netlink")
	n.socket = socket
	go func() { // until the socket is closed
		for b := make([]byte, 4096); ; {
			if _, err := socket.Read(b); err != nil && !errors.Is(err, unix.ENOBUFS) {
				return
			}
			select {
			case look <- struct{}{}:
			default:
			}
		}
	}()
}

func (n *groupNews) end() {
	if n.socket != nil {
		_ = n.socket.Close()
	}
	*n = groupNews{}
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
	var news groupNews
	defer news.end()
	follow := func(space string) { news.follow(space, look) }
	every := cmp.Or(l.every, lookInterval)
	var last *Groups
	for {
		g := &Groups{Asked: l.asked.Load()}
		var err error
		if g.List, g.All, err = groupsOf(fd, name, follow); err != nil { // it is gone, or where this driver may not look
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
		case <-time.After(every - lookPause):
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
// to all. Before it looks it calls follow in the interface's network namespace, with what that is called.
func groupsOf(fd int, name string, follow func(space string)) (list []eth.MAC, all bool, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	called := "here"
	space, now, err := tun.Whereabouts(fd)
	if err == nil {
		defer space.Close()
		called = space.UniqueId()
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
	follow(called)
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
