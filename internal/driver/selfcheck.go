package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/verbs"
)

// Check is one RDMA ping of the self-check: a pattern is written to the peer's memory, read back and
// compared.
type Check struct {
	From, To string // names of the adapters
	Path     string // of the connection: wire or local
	Bytes    int
	Took     time.Duration
}

// String describes the check.
func (c Check) String() string {
	return fmt.Sprintf("%s to %s over the %s path: %d bytes written, read back and compared in %v",
		c.From, c.To, c.Path, c.Bytes, c.Took.Round(10*time.Microsecond))
}

const (
	checkBytes = 64 << 10
	// checkTimeout is for a machine that has much else to do: where nothing is lost a check takes milliseconds.
	checkTimeout = 30 * time.Second
	// checkAgain is how long a check waits for a subnet manager before it asks again.
	checkAgain = 100 * time.Millisecond
)

// selfCheck pings between all pairs of adapters of one address family whose ports are up, or from an adapter to
// itself if it is the only one: over the wire path, then over the local one, as far as the adapters' path
// setting allows.
func (d *Driver) selfCheck(ctx context.Context) ([]Check, error) {
	session, err := verbs.Within(d.host, "self-check")
	if err != nil {
		return nil, err
	}
	defer session.Close()
	var checks []Check
	for _, pair := range d.pairs() {
		for _, path := range []device.PathPolicy{device.PathWire, device.PathAuto} {
			c, err := d.checkPair(ctx, session, pair[0], pair[1], path)
			if err != nil {
				return checks, fmt.Errorf("%s to %s over the %v path: %w", d.cfg.Adapters[pair[0]].Name, d.cfg.Adapters[pair[1]].Name, path,
					d.explain(err, pair[1]))
			}
			checks = append(checks, c)
		}
	}
	return checks, nil
}

// explain adds to the error of a check with adapter j what blocks its packets: in a new network namespace
// the loopback interface is down, so that its addresses can be bound but not reached.
func (d *Driver) explain(err error, j int) error {
	if !errors.Is(err, verbs.ErrNetworkUnreachable) || !d.host.Snapshot().Adapters[j].Info.Addr.IP().IsLoopback() {
		return err
	}
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 && i.Flags&net.FlagUp == 0 {
			return fmt.Errorf("%w: the loopback interface is down; as root: ip link set %s up", err, i.Name)
		}
	}
	return err
}

// pairs returns the pairs of adapters whose ports are up and that can reach each other, by index.
func (d *Driver) pairs() (pairs [][2]int) {
	all := d.host.Snapshot().Adapters
	for i := range all {
		if !all[i].Up {
			continue
		}
		a, alone := &all[i].Info, true
		for j := range all {
			b := &all[j].Info
			if !all[j].Up || i == j || d.infiniBand(i) != d.infiniBand(j) {
				continue
			}
			if !d.cfg.Adapters[i].Neighbours(&d.cfg.Adapters[j]) {
				continue // there may be no way from one to the other
			}
			if !d.infiniBand(i) && (a.Addr.IP().Is4() != b.Addr.IP().Is4() || a.UDPPort != b.UDPPort) {
				continue
			}
			alone = false
			if i < j {
				pairs = append(pairs, [2]int{i, j})
			}
		}
		if alone {
			pairs = append(pairs, [2]int{i, i})
		}
	}
	return pairs
}

// checkPair connects adapter i to adapter j under the path policy and pings. It restores the adapters' own
// policy.
func (d *Driver) checkPair(ctx context.Context, session *verbs.Host, i, j int, path device.PathPolicy) (c Check, err error) {
	for _, k := range []int{i, j} {
		own, _ := config.ParsePath(d.cfg.Adapters[k].Path)
		if own == device.PathWire && path != device.PathWire {
			path = device.PathWire // the setting wins
		}
		if err := d.host.SetPath(uint32(k), path); err != nil {
			return c, err
		}
		defer func() { err = errors.Join(err, d.host.SetPath(uint32(k), own)) }()
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	start := time.Now()
	all := d.host.Overview().Adapters
	var used verbs.QPPath
	attempt := func() (err error) {
		used, err = ping(ctx, session, d.calledBy(&all[i]), d.calledBy(&all[j]))
		return err
	}
	if d.infiniBand(i) {
		err = untilRouted(ctx, checkAgain, attempt)
	} else {
		err = attempt()
	}
	if err == nil && path == device.PathWire && used != verbs.PathWire {
		err = fmt.Errorf("the connection took the %v path", used)
	}
	return Check{d.cfg.Adapters[i].Name, d.cfg.Adapters[j].Name, used.String(), checkBytes, time.Since(start)}, err
}

// untilRouted makes attempts until one ends otherwise than by the fabric, or ctx does: a subnet manager that another program runs may have
// made a port active, and know no path from it yet, or not be done with the switches.
func untilRouted(ctx context.Context, pause time.Duration, attempt func() error) error {
	var before error
	for {
		err := attempt()
		if err != nil && before != nil && ctx.Err() != nil {
			return before // which says more than that the time is over
		}
		before = err
		if !errors.Is(err, verbs.ErrHostUnreachable) && !errors.Is(err, verbs.ErrNetworkUnreachable) && !errors.Is(err, verbs.ErrTimedOut) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// calledBy returns the address to use for an adapter in a check: its own, or its GID for an InfiniBand
// port.
func (d *Driver) calledBy(a *device.AdapterStatus) netip.Addr {
	if d.infiniBand(int(a.Info.Index)) && len(a.GIDs) > 0 {
		return netip.AddrFrom16(a.GIDs[0].GID)
	}
	return a.Info.Addr.IP()
}

// checkSide is one side of a ping.
type checkSide struct {
	dev *verbs.Device
	pd  *verbs.PD
	cq  *verbs.CQ
	qp  *verbs.QP
	mr  *verbs.MR
}

func newCheckSide(session *verbs.Host, addr netip.Addr, size int, access verbs.Access) (s *checkSide, err error) {
	s = &checkSide{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.dev, err = session.DeviceByAddr(addr); err != nil {
		return s, err
	}
	if s.pd, err = s.dev.AllocPD(); err != nil {
		return s, err
	}
	if s.cq, err = s.dev.CreateCQ(16); err != nil {
		return s, err
	}
	if s.mr, err = s.pd.Allocate(size, access); err != nil {
		return s, err
	}
	s.qp, err = s.pd.CreateQP(verbs.QPConfig{Type: verbs.RC, SendCQ: s.cq, RecvCQ: s.cq, SendDepth: 4, RecvDepth: 4, SignalAll: true})
	return s, err
}

// close destroys the objects in reverse order of their dependencies.
func (s *checkSide) close() error {
	var errs []error
	if s.qp != nil {
		errs = append(errs, s.qp.Close())
	}
	if s.mr != nil {
		errs = append(errs, s.mr.Deregister())
	}
	if s.cq != nil {
		errs = append(errs, s.cq.Close())
	}
	if s.pd != nil {
		errs = append(errs, s.pd.Close())
	}
	return errors.Join(errs...)
}

// run posts one request and waits for it to succeed.
func (s *checkSide) run(ctx context.Context, wr *verbs.SendWR) error {
	if err := s.qp.PostSend(wr); err != nil {
		return err
	}
	var wc [1]verbs.WC
	if _, err := s.cq.Next(ctx, wc[:]); err != nil {
		return err
	}
	if wc[0].Status != verbs.Success {
		return fmt.Errorf("%v: %v", wr.Op, wc[0].Status)
	}
	return nil
}

// ping connects two adapters, writes a pattern into the other's memory, checks it there, reads it back and
// compares. It returns the path that was used.
func ping(ctx context.Context, session *verbs.Host, from, to netip.Addr) (path verbs.QPPath, err error) {
	a, err := newCheckSide(session, from, 2*checkBytes, verbs.LocalWrite)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	b, err := newCheckSide(session, to, checkBytes, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	disconnect, err := connect(ctx, a, b, from, to)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, disconnect()) }()

	sent, back := a.mr.Bytes()[:checkBytes], a.mr.Bytes()[checkBytes:]
	fill(sent, from, to)
	if err := a.run(ctx, &verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{a.mr.SGE(0, checkBytes)}, RemoteAddr: b.mr.RemoteAddr(),
		RKey: b.mr.RKey()}); err != nil {
		return 0, err
	}
	if !bytes.Equal(sent, b.mr.Bytes()) {
		return 0, errors.New("the bytes written are not the bytes that arrived")
	}
	if err := a.run(ctx, &verbs.SendWR{Op: verbs.OpRead, SGE: []verbs.SGE{a.mr.SGE(checkBytes, checkBytes)}, RemoteAddr: b.mr.RemoteAddr(),
		RKey: b.mr.RKey()}); err != nil {
		return 0, err
	}
	if !bytes.Equal(sent, back) {
		return 0, errors.New("the bytes read back are not the bytes written")
	}
	info, err := a.qp.Query()
	return info.Path, err
}

// fill writes a pattern that depends on both addresses and does not repeat soon.
func fill(b []byte, from, to netip.Addr) {
	h := fnv.New32a()
	fmt.Fprint(h, from, to)
	x := h.Sum32() | 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
}

// connect joins the two QPs through the connection manager and returns a function that ends the
// connection.
func connect(ctx context.Context, a, b *checkSide, from, to netip.Addr) (disconnect func() error, err error) {
	l, err := b.dev.Listen(netip.AddrPortFrom(to, 0), 1)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	accepted := make(chan error, 1)
	var passive *verbs.ID
	go func() {
		id, err := l.Request(ctx)
		if err == nil {
			passive = id
			err = id.Accept(ctx, b.qp, verbs.ConnParam{ResponderResources: 1})
		}
		accepted <- err
	}()
	id, err := a.dev.NewID()
	if err != nil {
		return nil, errors.Join(err, l.Close(), <-accepted)
	}
	if err = id.Bind(netip.AddrPortFrom(from, 0)); err == nil {
		err = id.Connect(ctx, l.Addr(), a.qp, verbs.ConnParam{InitiatorDepth: 1})
	}
	if err == nil {
		err = id.Establish()
	}
	if err != nil {
		l.Close() // ends the wait for a request
		<-accepted
		return nil, errors.Join(err, id.Close(), closeID(passive))
	}
	if err := <-accepted; err != nil {
		return nil, errors.Join(err, id.Close(), closeID(passive))
	}
	return func() error { return errors.Join(id.Disconnect(ctx), id.Close(), closeID(passive)) }, nil
}

func closeID(id *verbs.ID) error {
	if id == nil {
		return nil
	}
	return id.Close()
}
