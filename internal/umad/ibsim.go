package umad

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// The protocol between ibsim and its clients: a control socket with one answer to each request, and a data
// socket on which each datagram is a MAD. Numbers in control messages are in host byte order, which is
// little-endian on all supported machines.
const (
	ibsimMagic      = 0xdeadbeef
	ibsimControlLen = 80
	ibsimDataLen    = 288
	ibsimHeaderLen  = 32
	ibsimNameLen    = 32
	ibsimPort       = 7070
	ibsimTimedOut   = 110 // ETIMEDOUT in the status of a MAD that is returned
	ibsimPatience   = 5 * time.Second
)

// The types of control messages.
const (
	ibsimConnect    = 1
	ibsimDisconnect = 2
	ibsimVendor     = 4
	ibsimPortInfo   = 8
	ibsimSetIsSM    = 9
	ibsimPKeys      = 10
)

// IbsimOptions say how to attach to an ibsim, or to a server that speaks its protocol.
type IbsimOptions struct {
	Socket string // base of the abstract socket names, for a local server; Linux only
	Server string // host name or address of a server, instead of Socket
	Port   int    // of the server; 0: 7070
	Host   string // node to be; empty: the server's first
	IsSM   bool   // be a port with a subnet manager, which receives requests
}

// ibsim is a client of an ibsim.
type ibsim struct {
	data    datagrams
	control net.Conn
	client  uint32 // number assigned by the server

	mu     sync.Mutex
	closed bool
	out    [ibsimDataLen]byte
	in     [ibsimDataLen + 1]byte
}

// datagrams is a socket with a fixed peer.
type datagrams interface {
	Read([]byte) (int, error)
	Write([]byte) (int, error)
	Close() error
}

// OpenIbsim opens the port of a node of an ibsim.
func OpenIbsim(o IbsimOptions) (*Port, error) {
	c, d, err := connectIbsim(o)
	if err != nil {
		return nil, fmt.Errorf("ibsim %s: %w", o.where(), err)
	}
	p := newPort(c, d, rand.Uint32())
	if p.device.Node, err = ownNode(p); err != nil {
		p.Close()
		return nil, fmt.Errorf("ibsim %s: the node's own NodeInfo: %w", o.where(), err)
	}
	if o.IsSM {
		// The server passes requests only to clients that are subnet managers, and waits for an answer. This client is none.
		err = errors.Join(p.Serve(mad.ClassSubnetDir, unsupported), p.Serve(mad.ClassSubnetLID, unsupported))
	}
	return p, err
}

func (o IbsimOptions) where() string {
	if o.Server != "" {
		return net.JoinHostPort(o.Server, strconv.Itoa(o.port()))
	}
	return strconv.Quote(o.Socket)
}

func (o IbsimOptions) port() int {
	if o.Port != 0 {
		return o.Port
	}
	return ibsimPort
}

// unsupported answers a request about a subnet manager that the node does not have.
func unsupported(request *Datagram) *[mad.Len]byte {
	answer := request.MAD
	if answer[3] != mad.MethodGet && answer[3] != mad.MethodSet {
		return nil
	}
	answer[3] = mad.MethodGetResp
	status := uint16(mad.StatusAttributeUnsupported)
	if answer[1] == mad.ClassSubnetDir {
		status |= 1 << 15 // direction: on its way back
	}
	binary.BigEndian.PutUint16(answer[4:], status)
	return &answer
}

func connectIbsim(o IbsimOptions) (*ibsim, Device, error) {
	if len(o.Host) >= ibsimNameLen {
		return nil, Device{}, fmt.Errorf("the node name %q has %d characters; allowed: up to %d", o.Host, len(o.Host), ibsimNameLen-1)
	}
	dial := dialIbsimLocal
	if o.Server != "" {
		dial = dialIbsimUDP
	}
	c := &ibsim{}
	d, err := dial(o, c)
	if err == nil {
		return c, d, nil
	}
	c.Close()
	return nil, Device{}, err
}

// ownNode asks the node for its identity: the control socket reports the node's GUID as that of the port.
func ownNode(p *Port) (mad.NodeInfo, error) {
	m := mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 0)
	if err := m.Direct(nil); err != nil {
		return mad.NodeInfo{}, err
	}
	d, err := p.Call(context.Background(), Address{LID: ib.LIDPermissive, QP: SMIQP}, (*[mad.Len]byte)(m.Append(nil)), DefaultTiming)
	if err != nil {
		return mad.NodeInfo{}, err
	}
	a, err := mad.ParseSMP(d.MAD[:])
	if err != nil {
		return mad.NodeInfo{}, err
	}
	return mad.ParseNodeInfo(a.Data[:])
}

// attach tells the server who the client is, which must happen before the data sockets can be connected.
func (c *ibsim) attach(o IbsimOptions, id uint32) error {
	var info [44]byte
	binary.LittleEndian.PutUint32(info[0:], id)
	if o.IsSM {
		binary.LittleEndian.PutUint32(info[8:], 1)
	}
	copy(info[12:], o.Host)
	answer, err := c.call(ibsimConnect, info[:])
	if errors.Is(err, errRefused) {
		return fmt.Errorf("%w: there is no node %q, or its place or all places are taken", err, o.Host)
	}
	if err != nil {
		return err
	}
	c.client = binary.LittleEndian.Uint32(answer[:])
	if !o.IsSM {
		return nil
	}
	// Attaching as a subnet manager does not show in the port's capabilities, but this does.
	yes := [4]byte{1}
	_, err = c.call(ibsimSetIsSM, yes[:])
	return err
}

var errRefused = errors.New("refused")

// call sends one control message and returns its answer.
func (c *ibsim) call(kind uint32, data []byte) (answer [64]byte, err error) {
	var m [ibsimControlLen]byte
	binary.LittleEndian.PutUint32(m[0:], ibsimMagic)
	binary.LittleEndian.PutUint32(m[4:], c.client)
	binary.LittleEndian.PutUint32(m[8:], kind)
	binary.LittleEndian.PutUint32(m[12:], uint32(len(data)))
	copy(m[16:], data)
	if err := c.control.SetDeadline(time.Now().Add(ibsimPatience)); err != nil {
		return answer, err
	}
	if _, err := c.control.Write(m[:]); err != nil {
		return answer, err
	}
	n, err := c.control.Read(m[:])
	if err != nil {
		return answer, err
	}
	if n != ibsimControlLen || binary.LittleEndian.Uint32(m[0:]) != ibsimMagic {
		return answer, fmt.Errorf("the server answers %d bytes that do not follow its protocol", n)
	}
	if binary.LittleEndian.Uint32(m[8:]) != kind {
		return answer, errRefused
	}
	return [64]byte(m[16:]), nil
}

// describe asks the server for what a machine knows about its adapter.
func (c *ibsim) describe() (Device, error) {
	d := Device{Name: "ibsim0", Type: "simulator", Ports: 1, LinkLayer: "IB"}
	vendor, err := c.call(ibsimVendor, nil)
	if err != nil {
		return d, err
	}
	var self [64]byte
	port, err := c.call(ibsimPortInfo, self[:])
	if err != nil {
		return d, err
	}
	keys, err := c.call(ibsimPKeys, nil)
	if err != nil {
		return d, err
	}
	d.Hardware = strconv.FormatUint(uint64(binary.LittleEndian.Uint32(vendor[8:])), 16)
	d.Firmware = strconv.FormatUint(binary.LittleEndian.Uint64(vendor[16:]), 16)
	for i := 0; i < len(keys); i += 2 {
		d.PKeys = append(d.PKeys, ib.PKey(binary.BigEndian.Uint16(keys[i:])))
	}
	if d.Port, err = mad.ParsePortInfo(port[:]); err != nil {
		return d, err
	}
	d.PortNum = max(int(d.Port.LocalPortNum), 1)
	return d, nil
}

// Send implements Transport.
func (c *ibsim) Send(d *Datagram) error {
	b := c.out[:]
	clear(b[:ibsimHeaderLen])
	binary.BigEndian.PutUint16(b[0:], uint16(d.Remote.LID))
	if d.Remote.LID == ib.LIDPermissive {
		binary.BigEndian.PutUint16(b[4:], uint16(ib.LIDPermissive))
	} // otherwise the server knows the port's LID
	binary.BigEndian.PutUint32(b[8:], uint32(d.Remote.QP))
	binary.BigEndian.PutUint32(b[12:], uint32(d.LocalQP))
	binary.BigEndian.PutUint64(b[24:], mad.Len)
	copy(b[ibsimHeaderLen:], d.MAD[:])
	_, err := c.data.Write(b)
	return err
}

// Receive implements Transport. Datagrams of other lengths do not belong to the protocol and are skipped.
func (c *ibsim) Receive(d *Datagram) error {
	for {
		n, err := c.data.Read(c.in[:])
		if err != nil {
			return err
		}
		if n != ibsimDataLen {
			continue
		}
		b := c.in[:]
		d.Remote = Address{LID: ib.LID(binary.BigEndian.Uint16(b[4:])), QP: ib.QPN(binary.BigEndian.Uint32(b[12:]))}
		d.LocalQP = ib.QPN(binary.BigEndian.Uint32(b[8:]))
		d.Failed = binary.BigEndian.Uint32(b[16:]) != 0
		copy(d.MAD[:], b[ibsimHeaderLen:])
		d.Length, d.Records = 0, nil
		if n := binary.BigEndian.Uint64(b[24:]); n >= mad.HeaderLen && n < mad.Len {
			d.Length = int(n)
		}
		return nil
	}
}

// Close implements Transport. It tells the server, which would otherwise keep the place of the client.
func (c *ibsim) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	var err error
	if c.control != nil {
		if c.data != nil {
			_, err = c.call(ibsimDisconnect, nil)
		}
		c.control.Close()
	}
	if c.data != nil {
		c.data.Close()
	}
	return err
}

// dialIbsimUDP connects to a server on any machine.
func dialIbsimUDP(o IbsimOptions, c *ibsim) (Device, error) {
	server, err := net.ResolveUDPAddr("udp4", net.JoinHostPort(o.Server, strconv.Itoa(o.port())))
	if err != nil {
		return Device{}, err
	}
	control, err := net.DialUDP("udp4", nil, server)
	if err != nil {
		return Device{}, err
	}
	c.control = control
	data, err := net.ListenUDP("udp4", &net.UDPAddr{IP: control.LocalAddr().(*net.UDPAddr).IP})
	if err != nil {
		return Device{}, err
	}
	if err := c.attach(o, uint32(data.LocalAddr().(*net.UDPAddr).Port)); err != nil {
		data.Close()
		return Device{}, err
	}
	peer := server.AddrPort()
	c.data = udpPair{data, netipPort(peer, o.port()+1+int(c.client))}
	return c.describe()
}

// ibsimBase returns the base of the socket names.
func ibsimBase(o IbsimOptions) string {
	if o.Socket == "" {
		return "sim"
	}
	return strings.TrimRight(o.Socket, "\x00")
}
