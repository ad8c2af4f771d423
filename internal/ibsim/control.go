package ibsim

import (
	"bytes"
	"encoding/binary"
)

// A control message.
const (
	controlLen   = 80
	controlMagic = 0xdeadbeef
	atClient     = 4
	atType       = 8
	atLength     = 12
	atBody       = 16
)

// The types of control messages. Type 0 in an answer is an error.
const (
	typeError      = 0
	typeConnect    = 1
	typeDisconnect = 2
	typePort       = 3
	typeVendor     = 4
	typeGID        = 5
	typeGUID       = 6
	typeNodeInfo   = 7
	typePortInfo   = 8
	typeSetIsSM    = 9
	typePKeys      = 10
)

// Fields of a connect message and its answer.
const (
	infoID   = 0
	infoIsSM = 8
	infoName = 12
	infoLen  = 44
)

// What a client is told about its adapter; the node's own vendor and device are in NodeInfo.
const (
	hardwareVersion = 0xa1
	firmwareVersion = 1
)

// message executes a control message and turns it into the answer. False: it is invalid.
func (s *Server) message(l Listener, from peer, b []byte) bool {
	if binary.LittleEndian.Uint32(b) != controlMagic {
		return false
	}
	s.rack.Lock()
	defer s.rack.Unlock()
	kind, body := binary.LittleEndian.Uint32(b[atType:]), b[atBody:]
	ok := false
	if kind == typeConnect {
		ok = s.connect(l, from, body)
	} else if c := s.clients[binary.LittleEndian.Uint32(b[atClient:])]; c != nil && c.listener == l && l.same(c.from, from) {
		ok = s.query(c, kind, body)
	}
	if !ok {
		binary.LittleEndian.PutUint32(b[atType:], typeError)
		binary.LittleEndian.PutUint32(b[atLength:], 0)
	}
	return true
}

// connect attaches a client to the node that it names, or to the first one.
func (s *Server) connect(l Listener, from peer, body []byte) bool {
	id, isSM := binary.LittleEndian.Uint32(body[infoID:]), binary.LittleEndian.Uint32(body[infoIsSM:]) != 0
	name, _, _ := bytes.Cut(body[infoName:infoLen], []byte{0})
	node := 0
	if len(name) > 0 {
		var err error
		if node, err = s.fabric.Find(string(name)); err != nil {
			return false
		}
	}
	s.leaveTheDead()
	if len(s.clients) >= maxClients {
		return false
	}
	c := &client{at: s.fabric.Attach(node), listener: l, from: from, user: l.user(from), process: id}
	for s.clients[c.number] != nil {
		c.number++
	}
	if isSM && s.manager(c.at) != nil {
		return false
	}
	socket, err := l.open(c.number, id, from)
	if err != nil {
		return false
	}
	c.socket = socket
	s.clients[c.number] = c
	s.at[c.at] = append(s.at[c.at], c)
	if isSM {
		s.setIsSM(c, true)
	}
	socket.start(s, c)
	clear(body[infoName:infoLen])
	binary.LittleEndian.PutUint32(body[infoID:], c.number)
	copy(body[infoName:infoLen-1], s.names[node])
	return true
}

// query answers a request of an attached client.
func (s *Server) query(c *client, kind uint32, body []byte) bool {
	argument := binary.LittleEndian.Uint32(body)
	clear(body)
	info := s.fabric.PortInfo(c.at)
	switch kind {
	case typeDisconnect:
		s.detach(c)
	case typePort:
		binary.LittleEndian.PutUint16(body, uint16(info.LID))
		body[2] = byte(info.PortState)
	case typeVendor:
		n := s.fabric.NodeInfo(c.at)
		binary.LittleEndian.PutUint32(body, n.VendorID)
		binary.LittleEndian.PutUint32(body[4:], uint32(n.DeviceID))
		binary.LittleEndian.PutUint32(body[8:], hardwareVersion)
		binary.LittleEndian.PutUint64(body[16:], firmwareVersion)
	case typeGID:
		binary.BigEndian.PutUint64(body, info.GIDPrefix)
		binary.BigEndian.PutUint64(body[8:], s.fabric.NodeInfo(c.at).PortGUID)
	case typeGUID:
		binary.BigEndian.PutUint64(body, s.fabric.NodeInfo(c.at).PortGUID)
	case typeNodeInfo:
		n := s.fabric.NodeInfo(c.at)
		n.Append(body[:0])
	case typePortInfo:
		return s.portInfo(c, uint8(argument), body)
	case typeSetIsSM:
		return s.setIsSM(c, argument != 0)
	case typePKeys:
		k := s.fabric.PKeys(c.at)
		k.Append(body[:0])
	default:
		return false
	}
	return true
}

// portInfo answers with the PortInfo of a port of the client's node; port 0 means the one where the client
// is attached.
func (s *Server) portInfo(c *client, number uint8, body []byte) bool {
	at := c.at
	if number != 0 {
		at.Port = number
	}
	if number > s.fabric.NodeInfo(c.at).NumPorts {
		return false
	}
	i := s.fabric.PortInfo(at)
	i.Append(body[:0])
	return true
}

// setIsSM makes the client a subnet manager, or no longer one. A port can have one.
func (s *Server) setIsSM(c *client, is bool) bool {
	if m := s.manager(c.at); m != nil && m != c {
		return !is
	}
	c.isSM = is
	s.fabric.SetIsSM(c.at, is)
	return true
}

// detach removes a client. Requests to it are given up.
func (s *Server) detach(c *client) {
	if s.clients[c.number] != c {
		return
	}
	delete(s.clients, c.number)
	if c.isSM {
		s.setIsSM(c, false)
	}
	rest := s.at[c.at][:0]
	for _, o := range s.at[c.at] {
		if o != c {
			rest = append(rest, o)
		}
	}
	if s.at[c.at] = rest; len(rest) == 0 {
		delete(s.at, c.at)
	}
	s.close(c)
	s.asked.leave(c, func(x *exchange) { s.fail(x) })
}

// leaveTheDead removes the clients that have gone without saying so.
func (s *Server) leaveTheDead() {
	for _, c := range s.clients {
		if !c.listener.alive(c.process) {
			s.detach(c)
		}
	}
}
