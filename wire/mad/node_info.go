package mad

import (
	"bytes"
	"fmt"
)

// NodeDescriptionLen is the length of a NodeDescription attribute.
const NodeDescriptionLen = 64

// NodeDescription is the text that describes a node (IBA 14.2.5.2): UTF-8 up to the first zero byte.
type NodeDescription [NodeDescriptionLen]byte

// DescribeNode returns text as a NodeDescription, truncated to 64 bytes.
func DescribeNode(text string) (d NodeDescription) {
	copy(d[:], text)
	return d
}

// String returns the text up to the first zero byte.
func (d NodeDescription) String() string {
	if i := bytes.IndexByte(d[:], 0); i >= 0 {
		return string(d[:i])
	}
	return string(d[:])
}

// NodeType says what a node is (IBA 14.2.5.3).
type NodeType uint8

// The node types.
const (
	NodeCA     NodeType = 1
	NodeSwitch NodeType = 2
	NodeRouter NodeType = 3
)

// String returns the specification's name of the type.
func (t NodeType) String() string {
	switch t {
	case NodeCA:
		return "Channel Adapter"
	case NodeSwitch:
		return "Switch"
	case NodeRouter:
		return "Router"
	}
	return fmt.Sprintf("node type %d", uint8(t))
}

// NodeInfoLen is the length of a NodeInfo attribute.
const NodeInfoLen = 40

// NodeInfo says what a node is, and which of its ports received the request (IBA 14.2.5.3).
type NodeInfo struct {
	BaseVersion     uint8
	ClassVersion    uint8
	NodeType        NodeType
	NumPorts        uint8 // without port 0 of a switch
	SystemImageGUID uint64
	NodeGUID        uint64
	PortGUID        uint64
	PartitionCap    uint16 // P_Keys of a port; for a switch those of port 0
	DeviceID        uint16
	Revision        uint32
	LocalPortNum    uint8  // the port that received the request
	VendorID        uint32 // 24 bits
}

// Append appends the attribute's NodeInfoLen bytes to b.
func (n *NodeInfo) Append(b []byte) []byte {
	b, p := zeros(b, NodeInfoLen)
	p[0], p[1], p[2], p[3] = n.BaseVersion, n.ClassVersion, byte(n.NodeType), n.NumPorts
	put64(p[4:], n.SystemImageGUID)
	put64(p[12:], n.NodeGUID)
	put64(p[20:], n.PortGUID)
	put16(p[28:], n.PartitionCap)
	put16(p[30:], n.DeviceID)
	put32(p[32:], n.Revision)
	p[36] = n.LocalPortNum
	put24(p[37:], n.VendorID)
	return b
}

// ParseNodeInfo reads the attribute from the start of b. The error is an *Error.
func ParseNodeInfo(b []byte) (NodeInfo, error) {
	if err := atLeast("NodeInfo", b, NodeInfoLen); err != nil {
		return NodeInfo{}, err
	}
	return NodeInfo{
		BaseVersion: b[0], ClassVersion: b[1], NodeType: NodeType(b[2]), NumPorts: b[3],
		SystemImageGUID: get64(b[4:]), NodeGUID: get64(b[12:]), PortGUID: get64(b[20:]),
		PartitionCap: get16(b[28:]), DeviceID: get16(b[30:]), Revision: get32(b[32:]),
		LocalPortNum: b[36], VendorID: get24(b[37:]),
	}, nil
}

func atLeast(attribute string, b []byte, n int) error {
	if len(b) < n {
		return &Error{attribute + " length", uint64(len(b)), fmt.Sprintf("at least %d", n)}
	}
	return nil
}
