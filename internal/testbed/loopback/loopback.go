// Package loopback gives tests addresses of 127.0.0.0/8, and ports, that no other test has: neither one of the same
// process nor one of a process that runs at the same time.
//
// A process claims a block of addresses before it gives any of them away. The claim is a UDP socket at the block's last
// address, at a port that nothing else uses: the kernel lets one process have it, and takes it back when that process
// ends, however it ends. Addresses are not given away twice, so that what one test leaves behind on the network does
// not reach the next.
package loopback

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
)

const (
	claimPort = 14791 // below the ports that kernels give away by themselves
	claimHost = 255   // of each block; not given away

	// Blocks of addresses are 127.16.0.0/24 to 127.239.255.0/24: the programs' defaults and what documents and tests
	// name literally lies below.
	firstBlock, blocks = 16 << 8, 224 << 8
	perBlock           = 250 // .1 to .250

	// Blocks of ports are claimed at the addresses from 127.15.0.255 on. Kernels give away none below 32768 by themselves.
	firstPortBlock, portBlocks = 15 << 8, 256
	firstPort, perPortBlock    = 20000, 40
)

// MaxAddrs is the largest number of adjacent addresses that there are.
const MaxAddrs = perBlock

// process is what this process has claimed.
var process = newPool(rand.IntN)

// pool gives away numbers of the blocks that it has claimed.
type pool struct {
	mu    sync.Mutex
	begin func(n int) int // where to begin to look for a free one of n blocks

	addrs, ports claim
}

// claim is what is left of the block claimed last.
type claim struct {
	block, next, end int
	held             []*net.UDPConn // the sockets of all that were claimed
}

func newPool(begin func(n int) int) *pool { return &pool{begin: begin} }

// Addr returns an IPv4 loopback address that no other test uses.
func Addr() netip.Addr { return Addrs(1)[0] }

// Pair returns two adjacent addresses like Addr's.
func Pair() [2]netip.Addr { return [2]netip.Addr(Addrs(2)) }

// Addrs returns n adjacent addresses like Addr's, 1 to MaxAddrs. Where only 127.0.0.1 exists (macOS, unless it is told
// otherwise) nothing can listen at any of them, and the system's error says so.
func Addrs(n int) []netip.Addr { return process.giveAddrs(n) }

// Port returns a port of UDP and TCP, of all addresses of this host, that no other test uses.
func Port() uint16 { return process.givePort() }

func (p *pool) giveAddrs(n int) []netip.Addr {
	if n < 1 || n > MaxAddrs {
		panic(fmt.Sprintf("%d loopback addresses; allowed: 1 to %d", n, MaxAddrs))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.addrs.next+n > p.addrs.end {
		p.take(&p.addrs, firstBlock, blocks, perBlock)
	}
	addrs := make([]netip.Addr, n)
	for i := range addrs {
		addrs[i] = addr(p.addrs.block, 1+p.addrs.next+i)
	}
	p.addrs.next += n
	return addrs
}

func (p *pool) givePort() uint16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.ports.next == p.ports.end {
			p.take(&p.ports, firstPortBlock, portBlocks, perPortBlock)
		}
		port := firstPort + (p.ports.block-firstPortBlock)*perPortBlock + p.ports.next
		p.ports.next++
		if free(port) { // otherwise some program has it that is no test
			return uint16(port)
		}
	}
}

func free(port int) bool {
	u, err := net.ListenUDP("udp", &net.UDPAddr{Port: port})
	if err != nil {
		return false
	}
	defer u.Close()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{Port: port})
	if err != nil {
		return false
	}
	defer l.Close()
	return true
}

// take claims another of n blocks from first on, of size numbers each.
func (p *pool) take(c *claim, first, n, size int) {
	begin := p.begin(n)
	for i := range n {
		block := first + (begin+i)%n
		l, err := listen(addr(block, claimHost))
		if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, wsaAddrInUse) {
			continue
		}
		if err == nil { // otherwise the system has no such addresses, and there is nothing to claim
			c.held = append(c.held, l)
		}
		c.block, c.next, c.end = block, 0, size
		return
	}
	panic(fmt.Sprintf("UDP port %d of every loopback address is in use; tests claim addresses there", claimPort))
}

// wsaAddrInUse is WSAEADDRINUSE, which package syscall has on Windows alone.
const wsaAddrInUse = syscall.Errno(10048)

// listen opens the socket of a claim. The thread of a test may be in a network namespace of the test's own, where
// nothing needs a claim and which a socket would keep from going away: so the goroutine is another, which is in the
// process's namespace.
func listen(at netip.Addr) (l *net.UDPConn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		l, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, claimPort)))
	}()
	<-done
	return l, err
}

func addr(block, host int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(block >> 8), byte(block), byte(host)})
}
