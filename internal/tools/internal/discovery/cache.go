package discovery

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// The cache file of ibnetdiscover: a header, nodes and ports, with little-endian numbers; attributes are
// stored in wire format.
const (
	cacheMagic     = 0x8fe7832b
	cacheVersion   = 1
	cacheHeaderLen = 28
	cacheNodeLen   = 15 + 3*mad.SMPDataLen
	cacheKeyLen    = 9
	cachePortLen   = 31 + mad.SMPDataLen
	maxCachePorts  = 1 << 22
)

var le = binary.LittleEndian

// WriteCache writes the fabric in the format of ibnetdiscover's --cache.
func (f *Fabric) WriteCache(w io.Writer) error {
	if f.From == nil {
		return errors.New("the fabric has no node at which the walk began")
	}
	ports := 0
	for _, n := range f.Nodes {
		ports += len(n.stored())
	}
	b := bufio.NewWriter(w)
	h := le.AppendUint32(nil, cacheMagic)
	h = le.AppendUint32(h, cacheVersion)
	h = le.AppendUint32(h, uint32(len(f.Nodes)))
	h = le.AppendUint32(h, uint32(ports))
	h = le.AppendUint64(h, f.From.Info.NodeGUID)
	b.Write(le.AppendUint32(h, uint32(f.MaxHops)))
	for _, n := range f.Backwards() {
		b.Write(n.cached())
	}
	for _, n := range f.Backwards() {
		for _, p := range n.stored() {
			b.Write(p.cached())
		}
	}
	return b.Flush()
}

// stored returns the ports that a cache has: those that answered.
func (n *Node) stored() []*Port {
	var list []*Port
	for _, p := range n.Ports {
		if p != nil && p.Known {
			list = append(list, p)
		}
	}
	return list
}

// padded returns an attribute padded to its length in a packet.
func padded(attribute []byte) []byte {
	return append(attribute, make([]byte, mad.SMPDataLen-len(attribute))...)
}

func flagByte(on bool) byte {
	if on {
		return 1
	}
	return 0
}

func (n *Node) cached() []byte {
	b := le.AppendUint16(nil, uint16(n.LID))
	b = append(b, n.LMC, flagByte(n.Switch.EnhancedPort0))
	var sw []byte
	if n.IsSwitch() {
		sw = n.Switch.Append(nil)
	}
	b = append(b, padded(sw)...)
	b = le.AppendUint64(b, n.Info.NodeGUID)
	b = append(b, byte(n.Info.NodeType), n.Info.NumPorts)
	b = append(b, padded(n.Info.Append(nil))...)
	b = append(b, n.Description[:]...)
	ports := n.stored()
	b = append(b, byte(len(ports)))
	for _, p := range ports {
		b = append(le.AppendUint64(b, p.GUID), p.Num)
	}
	return b
}

func (p *Port) cached() []byte {
	b := le.AppendUint64(nil, p.GUID)
	b = append(b, p.Num, 0) // 0: no external port number on the chassis
	b = le.AppendUint16(b, uint16(p.LID))
	b = append(b, p.LMC)
	b = append(b, padded(p.Info.Append(nil))...)
	b = le.AppendUint64(b, p.Node.Info.NodeGUID)
	if r := p.Remote; r != nil && r.Known {
		return append(le.AppendUint64(append(b, 1), r.GUID), r.Num)
	}
	return append(b, make([]byte, 1+cacheKeyLen)...)
}

// portKey identifies a port in a cache.
type portKey struct {
	guid uint64
	num  uint8
}

func keyOf(b []byte) portKey { return portKey{le.Uint64(b), b[8]} }

// cachedNode is a node with the keys of its ports.
type cachedNode struct {
	*Node
	keys []portKey
}

// cachedPort is a port with its node's GUID and the key of the port at the other end.
type cachedPort struct {
	*Port
	node   uint64
	linked bool
	remote portKey
}

// ReadCache reads a fabric written by ibnetdiscover's --cache. The error says what is invalid in the file.
func ReadCache(r io.Reader) (*Fabric, error) {
	in := bufio.NewReader(r)
	h, err := take(in, cacheHeaderLen, "header")
	if err != nil {
		return nil, err
	}
	if m := le.Uint32(h); m != cacheMagic {
		return nil, fmt.Errorf("the magic number is %#x; a cache of ibnetdiscover has %#x", m, cacheMagic)
	}
	if v := le.Uint32(h[4:]); v != cacheVersion {
		return nil, fmt.Errorf("the version is %d; allowed: %d", v, cacheVersion)
	}
	count, ports := le.Uint32(h[8:]), le.Uint32(h[12:])
	if count > defaultMaxNodes || ports > maxCachePorts {
		return nil, fmt.Errorf("%d nodes and %d ports; allowed: up to %d and %d", count, ports, defaultMaxNodes, maxCachePorts)
	}
	nodes, err := readNodes(in, int(count))
	if err != nil {
		return nil, err
	}
	known, err := readPorts(in, int(ports))
	if err != nil {
		return nil, err
	}
	f := &Fabric{MaxHops: int(le.Uint32(h[24:]))}
	if err := f.rebuild(nodes, known); err != nil {
		return nil, err
	}
	if f.From = f.NodeByGUID(le.Uint64(h[16:])); f.From == nil {
		return nil, fmt.Errorf("the node %#016x, where the walk began, is not in the file", le.Uint64(h[16:]))
	}
	return f, nil
}

func take(in io.Reader, n int, what string) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(in, b); err != nil {
		return nil, fmt.Errorf("the file ends in the middle of a %s: %w", what, err)
	}
	return b, nil
}

func readNodes(in io.Reader, count int) ([]*cachedNode, error) {
	var list []*cachedNode
	for range count {
		b, err := take(in, cacheNodeLen, "node")
		if err != nil {
			return nil, err
		}
		n := &Node{LID: ib.LID(le.Uint16(b)), LMC: b[2]}
		if n.Switch, err = mad.ParseSwitchInfo(b[4:]); err != nil {
			return nil, err
		}
		n.Switch.EnhancedPort0 = b[3] != 0
		const info = 4 + mad.SMPDataLen + 10
		if n.Info, err = mad.ParseNodeInfo(b[info:]); err != nil {
			return nil, err
		}
		// The GUID and the fields after it are in the file twice; libibnetdisc uses the first.
		n.Info.NodeGUID = le.Uint64(b[4+mad.SMPDataLen:])
		n.Info.NodeType, n.Info.NumPorts = mad.NodeType(b[info-2]), b[info-1]
		n.Description = mad.NodeDescription(b[info+mad.SMPDataLen:])
		keys, err := take(in, int(b[cacheNodeLen-1])*cacheKeyLen, "node")
		if err != nil {
			return nil, err
		}
		c := &cachedNode{Node: n}
		for ; len(keys) > 0; keys = keys[cacheKeyLen:] {
			c.keys = append(c.keys, keyOf(keys))
		}
		list = append(list, c)
	}
	return list, nil
}

func readPorts(in io.Reader, count int) (map[portKey]*cachedPort, error) {
	known := map[portKey]*cachedPort{}
	for range count {
		b, err := take(in, cachePortLen, "port")
		if err != nil {
			return nil, err
		}
		key := keyOf(b)
		p := &Port{GUID: key.guid, Num: key.num, LID: ib.LID(le.Uint16(b[10:])), LMC: b[12], Known: true}
		if p.Info, err = mad.ParsePortInfo(b[13:]); err != nil {
			return nil, err
		}
		rest := b[13+mad.SMPDataLen:]
		known[key] = &cachedPort{Port: p, node: le.Uint64(rest), linked: rest[8] != 0, remote: keyOf(rest[9:])}
	}
	return known, nil
}

// rebuild builds the graph. The last node in the file was found first.
func (f *Fabric) rebuild(nodes []*cachedNode, known map[portKey]*cachedPort) error {
	for i := len(nodes) - 1; i >= 0; i-- {
		c := nodes[i]
		if f.NodeByGUID(c.Info.NodeGUID) != nil {
			return fmt.Errorf("the node %#016x is in the file twice", c.Info.NodeGUID)
		}
		f.add(c.Node)
		for _, k := range c.keys {
			p := known[k]
			if p == nil || int(k.num) >= len(c.Ports) || p.Node != nil {
				return fmt.Errorf("the node %#016x has a port %d (%#016x) that is not in the file, or belongs to another node",
					c.Info.NodeGUID, k.num, k.guid)
			}
			p.Node, c.Ports[k.num] = c.Node, p.Port
		}
	}
	for k, p := range known {
		if p.Node == nil {
			return fmt.Errorf("no node has port %d (%#016x)", k.num, k.guid)
		}
		if !p.linked {
			continue
		}
		r := known[p.remote]
		if r == nil || r.Node == nil {
			return fmt.Errorf("port %d (%#016x) is linked to one that is not in the file", k.num, k.guid)
		}
		p.Remote = r.Port
	}
	return nil
}
