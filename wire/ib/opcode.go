package ib

import "fmt"

// Opcode is the first byte of a BTH (IBA 9.2.1): the transport service in the top three bits, the
// operation in the low five. Its properties come from one table, so every method is a look-up; for an
// unknown opcode they are all zero or false.
type Opcode uint8

// Service is the transport service part of an opcode.
type Service uint8

// The transport services.
const (
	ServiceRC  Service = 0 // reliable connection
	ServiceUC  Service = 1 // unreliable connection
	ServiceRD  Service = 2 // reliable datagram: not supported
	ServiceUD  Service = 3 // unreliable datagram
	ServiceCNP Service = 4 // congestion notification packet
	ServiceXRC Service = 5 // extended reliable connection: not supported
)

// The opcodes of the reliable connection service.
const (
	RCSendFirst          Opcode = 0x00
	RCSendMiddle         Opcode = 0x01
	RCSendLast           Opcode = 0x02
	RCSendLastImmediate  Opcode = 0x03
	RCSendOnly           Opcode = 0x04
	RCSendOnlyImmediate  Opcode = 0x05
	RCWriteFirst         Opcode = 0x06
	RCWriteMiddle        Opcode = 0x07
	RCWriteLast          Opcode = 0x08
	RCWriteLastImmediate Opcode = 0x09
	RCWriteOnly          Opcode = 0x0a
	RCWriteOnlyImmediate Opcode = 0x0b
	RCReadRequest        Opcode = 0x0c
	RCReadResponseFirst  Opcode = 0x0d
	RCReadResponseMiddle Opcode = 0x0e
	RCReadResponseLast   Opcode = 0x0f
	RCReadResponseOnly   Opcode = 0x10
	RCAcknowledge        Opcode = 0x11
	RCAtomicAcknowledge  Opcode = 0x12
	RCCompareSwap        Opcode = 0x13
	RCFetchAdd           Opcode = 0x14
	RCSendLastInvalidate Opcode = 0x16
	RCSendOnlyInvalidate Opcode = 0x17
	UCSendFirst          Opcode = 0x20
	UCSendMiddle         Opcode = 0x21
	UCSendLast           Opcode = 0x22
	UCSendLastImmediate  Opcode = 0x23
	UCSendOnly           Opcode = 0x24
	UCSendOnlyImmediate  Opcode = 0x25
	UCWriteFirst         Opcode = 0x26
	UCWriteMiddle        Opcode = 0x27
	UCWriteLast          Opcode = 0x28
	UCWriteLastImmediate Opcode = 0x29
	UCWriteOnly          Opcode = 0x2a
	UCWriteOnlyImmediate Opcode = 0x2b
	UDSendOnly           Opcode = 0x64
	UDSendOnlyImmediate  Opcode = 0x65
	CNP                  Opcode = 0x81 // RoCE congestion notification (IBA annex A17.9.3)
)

const (
	opcodeOperation    = 0x1f
	opcodeServiceShift = 5
)

// CNPReservedLen is the number of reserved bytes after the BTH of a congestion notification packet.
const CNPReservedLen = 16

// The properties of an opcode.
const (
	opFirst uint16 = 1 << iota
	opMiddle
	opLast
	opRETH
	opAETH
	opAtomicETH
	opAtomicAck
	opImm
	opIETH
	opDETH
	opPayload
	opRequest
	opResponse
	opReceive // consumes a receive work request
	opOnly    = opFirst | opLast
)

type opcodeInfo struct {
	name   string
	flags  uint16
	length uint8 // of the headers after the BTH
	known  bool
}

// describe fills in an opcode's entry in the table.
func describe(t *[256]opcodeInfo, op Opcode, name string, flags uint16) {
	n := uint8(0)
	for _, h := range [...]struct {
		flag   uint16
		length uint8
	}{
		{opRETH, RETHLen}, {opAETH, AETHLen}, {opAtomicETH, AtomicETHLen}, {opAtomicAck, AtomicAckETHLen},
		{opImm, ImmDtLen}, {opIETH, IETHLen}, {opDETH, DETHLen},
	} {
		if flags&h.flag != 0 {
			n += h.length
		}
	}
	t[op] = opcodeInfo{name: name, flags: flags, length: n, known: true}
}

var opcodes = func() *[256]opcodeInfo {
	t := new([256]opcodeInfo)
	const data = opRequest | opPayload
	for _, s := range [...]struct {
		service Service
		name    string
	}{{ServiceRC, "RC "}, {ServiceUC, "UC "}} {
		base := Opcode(s.service) << opcodeServiceShift
		describe(t, base|RCSendFirst, s.name+"SEND First", opFirst|data|opReceive)
		describe(t, base|RCSendMiddle, s.name+"SEND Middle", opMiddle|data|opReceive)
		describe(t, base|RCSendLast, s.name+"SEND Last", opLast|data|opReceive)
		describe(t, base|RCSendLastImmediate, s.name+"SEND Last with Immediate", opLast|data|opReceive|opImm)
		describe(t, base|RCSendOnly, s.name+"SEND Only", opOnly|data|opReceive)
		describe(t, base|RCSendOnlyImmediate, s.name+"SEND Only with Immediate", opOnly|data|opReceive|opImm)
		describe(t, base|RCWriteFirst, s.name+"RDMA WRITE First", opFirst|data|opRETH)
		describe(t, base|RCWriteMiddle, s.name+"RDMA WRITE Middle", opMiddle|data)
		describe(t, base|RCWriteLast, s.name+"RDMA WRITE Last", opLast|data)
		describe(t, base|RCWriteLastImmediate, s.name+"RDMA WRITE Last with Immediate", opLast|data|opReceive|opImm)
		describe(t, base|RCWriteOnly, s.name+"RDMA WRITE Only", opOnly|data|opRETH)
		describe(t, base|RCWriteOnlyImmediate, s.name+"RDMA WRITE Only with Immediate", opOnly|data|opReceive|opRETH|opImm)
	}
	const answer = opResponse | opPayload
	describe(t, RCReadRequest, "RC RDMA READ Request", opOnly|opRequest|opRETH)
	describe(t, RCReadResponseFirst, "RC RDMA READ Response First", opFirst|answer|opAETH)
	describe(t, RCReadResponseMiddle, "RC RDMA READ Response Middle", opMiddle|answer)
	describe(t, RCReadResponseLast, "RC RDMA READ Response Last", opLast|answer|opAETH)
	describe(t, RCReadResponseOnly, "RC RDMA READ Response Only", opOnly|answer|opAETH)
	describe(t, RCAcknowledge, "RC Acknowledge", opOnly|opResponse|opAETH)
	describe(t, RCAtomicAcknowledge, "RC ATOMIC Acknowledge", opOnly|opResponse|opAETH|opAtomicAck)
	describe(t, RCCompareSwap, "RC CmpSwap", opOnly|opRequest|opAtomicETH)
	describe(t, RCFetchAdd, "RC FetchAdd", opOnly|opRequest|opAtomicETH)
	describe(t, RCSendLastInvalidate, "RC SEND Last with Invalidate", opLast|data|opReceive|opIETH)
	describe(t, RCSendOnlyInvalidate, "RC SEND Only with Invalidate", opOnly|data|opReceive|opIETH)
	describe(t, UDSendOnly, "UD SEND Only", opOnly|data|opReceive|opDETH)
	describe(t, UDSendOnlyImmediate, "UD SEND Only with Immediate", opOnly|data|opReceive|opDETH|opImm)
	describe(t, CNP, "CNP", opOnly)
	return t
}()

// HeaderLength is the length in bytes of the extended headers that follow the BTH of a packet with opcode
// op; known is false if the opcode is not supported.
func HeaderLength(op Opcode) (n int, known bool) {
	i := &opcodes[op]
	return int(i.length), i.known
}

// Known reports whether op is one of the constants of this package.
func (op Opcode) Known() bool { return opcodes[op].known }

// Service is the transport service.
func (op Opcode) Service() Service { return Service(op >> opcodeServiceShift) }

// IsFirst reports whether it is the first of several packets of a message.
func (op Opcode) IsFirst() bool { return opcodes[op].flags&opOnly == opFirst }

// IsMiddle reports whether it is neither the first nor the last packet of a message.
func (op Opcode) IsMiddle() bool { return opcodes[op].flags&opMiddle != 0 }

// IsLast reports whether it is the last of several packets of a message.
func (op Opcode) IsLast() bool { return opcodes[op].flags&opOnly == opLast }

// IsOnly reports whether it is the only packet of its message.
func (op Opcode) IsOnly() bool { return opcodes[op].flags&opOnly == opOnly }

// Starts reports whether the packet starts a message: first or only.
func (op Opcode) Starts() bool { return opcodes[op].flags&opFirst != 0 }

// Ends reports whether the packet ends a message: last or only.
func (op Opcode) Ends() bool { return opcodes[op].flags&opLast != 0 }

// HasRETH reports whether a RETH follows the BTH.
func (op Opcode) HasRETH() bool { return opcodes[op].flags&opRETH != 0 }

// HasAETH reports whether an AETH follows the BTH.
func (op Opcode) HasAETH() bool { return opcodes[op].flags&opAETH != 0 }

// HasAtomicETH reports whether an AtomicETH follows the BTH.
func (op Opcode) HasAtomicETH() bool { return opcodes[op].flags&opAtomicETH != 0 }

// HasAtomicAck reports whether an AtomicAckETH follows the AETH.
func (op Opcode) HasAtomicAck() bool { return opcodes[op].flags&opAtomicAck != 0 }

// HasImm reports whether there is immediate data, which is always the last header.
func (op Opcode) HasImm() bool { return opcodes[op].flags&opImm != 0 }

// HasIETH reports whether there is an IETH, which is always the last header.
func (op Opcode) HasIETH() bool { return opcodes[op].flags&opIETH != 0 }

// HasDETH reports whether a DETH follows the BTH.
func (op Opcode) HasDETH() bool { return opcodes[op].flags&opDETH != 0 }

// HasPayload reports whether the packet may carry payload.
func (op Opcode) HasPayload() bool { return opcodes[op].flags&opPayload != 0 }

// IsRequest reports whether a requester sends the packet.
func (op Opcode) IsRequest() bool { return opcodes[op].flags&opRequest != 0 }

// IsResponse reports whether a responder sends the packet: an acknowledgement or read response.
func (op Opcode) IsResponse() bool { return opcodes[op].flags&opResponse != 0 }

// TakesReceive reports whether the packet belongs to a message that consumes a receive work request: every
// packet of a send, and of a write with immediate the packet that carries the immediate data.
func (op Opcode) TakesReceive() bool { return opcodes[op].flags&opReceive != 0 }

// IsWrite reports whether it is a packet of an RDMA write, with or without immediate.
func (op Opcode) IsWrite() bool {
	return op < RCReadRequest && op >= RCWriteFirst || op <= UCWriteOnlyImmediate && op >= UCWriteFirst
}

// IsSend reports whether it is a packet of a send of any service, including those with immediate or
// invalidate.
func (op Opcode) IsSend() bool {
	return opcodes[op].flags&opReceive != 0 && !op.IsWrite()
}

// IsReadResponse reports whether it is a packet of the response to an RDMA read.
func (op Opcode) IsReadResponse() bool { return op >= RCReadResponseFirst && op <= RCReadResponseOnly }

// IsAtomic reports whether it is a Compare & Swap or Fetch & Add request.
func (op Opcode) IsAtomic() bool { return op == RCCompareSwap || op == RCFetchAdd }

// String is the opcode's name as in IBA table "OpCode field".
func (op Opcode) String() string {
	if i := &opcodes[op]; i.known {
		return i.name
	}
	return fmt.Sprintf("%v opcode %#02x", op.Service(), uint8(op&opcodeOperation))
}

// String is the service's abbreviation.
func (s Service) String() string {
	switch s {
	case ServiceRC:
		return "RC"
	case ServiceUC:
		return "UC"
	case ServiceRD:
		return "RD"
	case ServiceUD:
		return "UD"
	case ServiceCNP:
		return "CNP"
	case ServiceXRC:
		return "XRC"
	}
	return fmt.Sprintf("service %d", uint8(s))
}
