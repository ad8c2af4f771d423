package server

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/umad/socket"
	"github.com/softvpi/softvpi/wire/mad"
)

// adapterName is the name of a node's adapter for programs.
const adapterName = "softvpi0"

// What programs are told about an adapter; vendor and device are in NodeInfo.
const (
	firmware = "1"
	hardware = "a1"
	board    = "SoftVPI"
)

// request answers the first message of a connection; false: the connection ends, after the answer if there
// is one.
func (s *Server) request(c *client, r *socket.Request) bool {
	node, at, err := s.find(r)
	if err != nil {
		s.answer(c, socket.Answer(uint32(unix.ENODEV), 0))
		return false
	}
	if r.Name != "" && r.Name != adapterName {
		s.answer(c, socket.Answer(uint32(unix.ENODEV), 0))
		return false
	}
	switch r.Kind {
	case socket.List:
		s.answer(c, socket.Names([]string{adapterName}))
		return false
	case socket.Adapter:
		s.answer(c, s.adapter(node))
		return false
	}
	if at == nil {
		s.answer(c, socket.Answer(uint32(unix.EINVAL), 0))
		return false
	}
	switch r.Kind {
	case socket.Port:
		s.answer(c, s.port(*at))
	case socket.ManagerAt:
		path, err := s.managerFile(*at)
		if err != nil {
			s.answer(c, socket.Answer(uint32(unix.EIO), 0))
			return false
		}
		s.answer(c, append(socket.Answer(0, uint32(len(path))), path...))
	case socket.Open, socket.OpenMany:
		s.open(c, *at, r.Kind == socket.OpenMany)
		s.answer(c, socket.Answer(0, 0))
		return true
	}
	return false
}

func (s *Server) answer(c *client, b []byte) {
	_ = unix.Sendmsg(c.fd, b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// find returns the node of a request and its port; nil: it has no such port. Port -1 means the first
// active one, or else the first.
func (s *Server) find(r *socket.Request) (node int, at *fabric.Place, err error) {
	s.host.Do(func(_ clock.Time, f *fabric.Fabric) {
		if r.Node != "" {
			if node, err = f.Find(r.Node); err != nil {
				return
			}
		}
		first := f.Attach(node)
		last := f.NodeInfo(first).NumPorts
		if first.Port == 0 {
			last = 0 // programs see only port 0 of a switch
		}
		number := r.Port
		if number < 0 {
			number = int32(first.Port)
			for p := int(first.Port); p <= int(last); p++ {
				if f.PortInfo(fabric.Place{Node: node, Port: uint8(p)}).PortState == mad.PortActive {
					number = int32(p)
					break
				}
			}
		}
		if number >= int32(first.Port) && number <= int32(last) {
			at = &fabric.Place{Node: node, Port: uint8(number)}
		}
	})
	return node, at, err
}

func (s *Server) adapter(node int) []byte {
	var a socket.AdapterInfo
	s.host.Do(func(_ clock.Time, f *fabric.Fabric) {
		first := f.Attach(node)
		n := f.NodeInfo(first)
		a = socket.AdapterInfo{NodeType: uint32(n.NodeType), First: uint32(first.Port), Ports: uint32(n.NumPorts), Firmware: firmware,
			Type:     board,
			Hardware: hardware, NodeGUID: n.NodeGUID, SystemGUID: n.SystemImageGUID}
		if first.Port == 0 {
			a.Ports = 0
		}
	})
	return a.Append(socket.Answer(0, 0))
}

func (s *Server) port(at fabric.Place) []byte {
	var p socket.PortInfo
	s.host.Do(func(_ clock.Time, f *fabric.Fabric) {
		i, n := f.PortInfo(at), f.NodeInfo(at)
		p = socket.PortInfo{Number: uint32(at.Port), LID: uint32(i.LID), LMC: uint32(i.LMC), SMLID: uint32(i.MasterSMLID),
			SMSL:  uint32(i.MasterSMSL),
			State: uint32(i.PortState), Physical: uint32(i.PortPhysicalState), Rate: rate(&i),
			Capabilities: i.CapabilityMask, Prefix: i.GIDPrefix, GUID: n.PortGUID, LinkLayer: "InfiniBand"}
		keys := f.PKeys(at)
		p.PKeys = keys[:]
		i.Append(p.Info[:0])
		n.Append(p.Node[:0])
	})
	return p.Append(socket.Answer(0, 0))
}

// rate returns a link's rate in Gb/s with the kernel's rounding: 14 for a lane that signals 14.0625, 50
// for 53.125.
func rate(i *mad.PortInfo) uint32 {
	lane := float64(int(i.ActiveSpeed().LaneMbps() / 1000))
	switch i.ActiveSpeed() {
	case mad.SpeedSDR:
		lane = 2.5
	case mad.SpeedHDR:
		lane = 50
	case mad.SpeedNDR:
		lane = 100
	case mad.SpeedXDR:
		lane = 200
	}
	return uint32(lane * float64(mad.Lanes(i.LinkWidthActive)))
}

// manager is a file by which programs announce that they are the subnet manager of a port. It is a pipe,
// which nobody reads or writes: inotify tells who opens it.
type manager struct {
	at    fabric.Place
	path  string
	opens int
}

// managerFile returns the path of the file for a port.
func (s *Server) managerFile(at fabric.Place) (string, error) {
	path := s.path + ".issm-" + strconv.Itoa(at.Node) + "-" + strconv.Itoa(int(at.Port))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.files {
		if m.at == at {
			return path, nil
		}
	}
	os.Remove(path)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return "", fmt.Errorf("file of the subnet manager: %w", err)
	}
	wd, err := unix.InotifyAddWatch(s.watch, path, unix.IN_OPEN|unix.IN_CLOSE)
	if err != nil {
		os.Remove(path)
		return "", fmt.Errorf("file of the subnet manager: %w", err)
	}
	s.files[wd] = &manager{at: at, path: path}
	return path, nil
}

// watched notes who has opened and closed such files.
func (s *Server) watched() {
	var b [4096]byte
	n, err := unix.Read(s.watch, b[:])
	if err != nil {
		return
	}
	for at := 0; at+unix.SizeofInotifyEvent <= n; {
		wd, mask := int(int32(binary.NativeEndian.Uint32(b[at:]))), binary.NativeEndian.Uint32(b[at+4:])
		at += unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[at+12:]))
		s.mu.Lock()
		m := s.files[wd]
		is := m != nil && m.opens > 0
		if m != nil {
			if mask&unix.IN_OPEN != 0 {
				m.opens++
			}
			if mask&unix.IN_CLOSE != 0 && m.opens > 0 {
				m.opens--
			}
		}
		s.mu.Unlock()
		if now := m != nil && m.opens > 0; now != is {
			s.host.Do(func(_ clock.Time, f *fabric.Fabric) { f.SetIsSM(m.at, now) })
		}
	}
}

// dismissAll removes the subnet managers from their ports.
func (s *Server) dismissAll() {
	for _, m := range s.files {
		if m.opens > 0 {
			s.host.Do(func(_ clock.Time, f *fabric.Fabric) { f.SetIsSM(m.at, false) })
		}
	}
}
