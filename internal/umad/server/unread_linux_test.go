package server

import (
	"net"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/internal/umad/agent"
	"github.com/softvpi/softvpi/internal/umad/socket"
	"github.com/softvpi/softvpi/wire/mad"
)

// descriptors returns how many this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// sendEmpty sends a message of no bytes with control data, to which the libraries would add a byte; false: it could not be sent.
func sendEmpty(t *testing.T, c *net.UnixConn, control []byte) (sent bool) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	h := unix.Msghdr{Control: &control[0]}
	h.SetControllen(len(control))
	if err := raw.Write(func(fd uintptr) bool {
		_, _, errno := unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&h)), unix.MSG_NOSIGNAL)
		sent = errno == 0
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return sent
}

// TestDescriptorsOfEmptyMessages: descriptors that come with empty messages are closed.
func TestDescriptorsOfEmptyMessages(t *testing.T) {
	w := serve(t)
	bystander := w.open(umad.ServiceOptions{Node: "hca2"})
	c := openHostile(t, w)
	before := descriptors(t)
	for range 20 {
		if !sendEmpty(t, c, unix.UnixRights(0, 0, 0)) {
			break // the server has ended the connection
		}
	}
	if _, err := smp(bystander, mad.AttrNodeInfo, 1); err != nil { // the server handles one after the other
		t.Fatal(err)
	}
	if _, err := smp(bystander, mad.AttrNodeInfo, 1); err != nil {
		t.Fatal(err)
	}
	// The connection's end comes after everything that was sent before, and closes one descriptor itself.
	_, _ = c.Write([]byte("hello"))
	ended(t, "nothing sensible", c)
	if after := descriptors(t); after >= before {
		t.Errorf("%d descriptors are open, want less than the %d of before the connection ended", after, before)
	}
}

// TestUnread: what all programs together have not read has a limit, in bytes and in memory files. Beyond it the one with
// the most loses it, and that is counted.
func TestUnread(t *testing.T) {
	w := serve(t)
	w.mu.Lock()
	defer w.mu.Unlock()
	pair := func() *client {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := &client{fd: fds[0], place: &place{}, file: &agent.File{}}
		t.Cleanup(func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.discard(c)
			delete(w.clients, c.fd)
			unix.Close(fds[0])
			unix.Close(fds[1])
		})
		w.clients[c.fd] = c
		for unix.Send(c.fd, make([]byte, 1024), unix.MSG_DONTWAIT) == nil { // fill it
		}
		return c
	}
	small, large := pair(), pair()
	few := &agent.Message{Data: make([]byte, mad.Len)}
	long := &agent.Message{Data: make([]byte, socket.MaxInline+1)}
	for range 100 {
		w.deliver(small, few)
	}
	for range 3 * maxFiles {
		w.deliver(large, long)
		if w.unreadFiles > maxFiles || w.unread > maxUnread {
			t.Fatalf("%d bytes and %d memory files are kept", w.unread, w.unreadFiles)
		}
	}
	if len(small.queue) != 100 || w.dropped != 2*maxFiles {
		t.Errorf("the other program has %d messages and %d were dropped, want 100 and %d", len(small.queue), w.dropped, 2*maxFiles)
	}
	w.discard(large)
	for range maxUnread/(maxQueueBytes/4) + 1 { // several, each below its own limit
		c := pair()
		for c.queued < maxQueueBytes/4 {
			w.put(c, message{file: -1, size: 1 << 20})
			if w.unread > maxUnread {
				t.Fatalf("%d bytes are kept", w.unread)
			}
		}
	}
	if len(small.queue) != 100 {
		t.Errorf("the other program has %d messages, want 100", len(small.queue))
	}
	w.mu.Unlock()
	if r := w.Report(); !strings.Contains(r, "dropped because they were not read: ") || strings.HasSuffix(r, " 0") {
		t.Errorf("the report is %q", r)
	}
	w.mu.Lock()
}
