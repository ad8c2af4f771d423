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
	ServiceXRC Service = 5 // extended reliable connection (IBA annex A14)
)

// The opcodes. Those of the reliable connection service come first.
const (
	RCSendFirst           Opcode = 0x00
	RCSendMiddle          Opcode = 0x01
	RCSendLast            Opcode = 0x02
	RCSendLastImmediate   Opcode = 0x03
	RCSendOnly            Opcode = 0x04
	RCSendOnlyImmediate   Opcode = 0x05
	RCWriteFirst          Opcode = 0x06
	RCWriteMiddle         Opcode = 0x07
	RCWriteLast           Opcode = 0x08
	RCWriteLastImmediate  Opcode = 0x09
	RCWriteOnly           Opcode = 0x0a
	RCWriteOnlyImmediate  Opcode = 0x0b
	RCReadRequest         Opcode = 0x0c
	RCReadResponseFirst   Opcode = 0x0d
	RCReadResponseMiddle  Opcode = 0x0e
	RCReadResponseLast    Opcode = 0x0f
	RCReadResponseOnly    Opcode = 0x10
	RCAcknowledge         Opcode = 0x11
	RCAtomicAcknowledge   Opcode = 0x12
	RCCompareSwap         Opcode = 0x13
	RCFetchAdd            Opcode = 0x14
	RCSendLastInvalidate  Opcode = 0x16
	RCSendOnlyInvalidate  Opcode = 0x17
	RCFlush               Opcode = 0x1c // IBA annex A19, as the next
	RCAtomicWrite         Opcode = 0x1d
	UCSendFirst           Opcode = 0x20
	UCSendMiddle          Opcode = 0x21
	UCSendLast            Opcode = 0x22
	UCSendLastImmediate   Opcode = 0x23
	UCSendOnly            Opcode = 0x24
	UCSendOnlyImmediate   Opcode = 0x25
	UCWriteFirst          Opcode = 0x26
	UCWriteMiddle         Opcode = 0x27
	UCWriteLast           Opcode = 0x28
	UCWriteLastImmediate  Opcode = 0x29
	UCWriteOnly           Opcode = 0x2a
	UCWriteOnlyImmediate  Opcode = 0x2b
	UDSendOnly            Opcode = 0x64
	UDSendOnlyImmediate   Opcode = 0x65
	XRCSendFirst          Opcode = 0xa0
	XRCSendMiddle         Opcode = 0xa1
	XRCSendLast           Opcode = 0xa2
	XRCSendLastImmediate  Opcode = 0xa3
	XRCSendOnly           Opcode = 0xa4
	XRCSendOnlyImmediate  Opcode = 0xa5
	XRCWriteFirst         Opcode = 0xa6
	XRCWriteMiddle        Opcode = 0xa7
	XRCWriteLast          Opcode = 0xa8
	XRCWriteLastImmediate Opcode = 0xa9
	XRCWriteOnly          Opcode = 0xaa
	XRCWriteOnlyImmediate Opcode = 0xab
	XRCReadRequest        Opcode = 0xac
	XRCReadResponseFirst  Opcode = 0xad
	XRCReadResponseMiddle Opcode = 0xae
	XRCReadResponseLast   Opcode = 0xaf
	XRCReadResponseOnly   Opcode = 0xb0
	XRCAcknowledge        Opcode = 0xb1
	XRCAtomicAcknowledge  Opcode = 0xb2
	XRCCompareSwap        Opcode = 0xb3
	XRCFetchAdd           Opcode = 0xb4
	XRCSendLastInvalidate Opcode = 0xb6
	XRCSendOnlyInvalidate Opcode = 0xb7
	CNP                   Opcode = 0x81 // RoCE congestion notification (IBA annex A17.9.3)
)

const (
	opcodeOperation    = 0x1f
	opcodeServiceShift = 5
)

// CNPReservedLen is the number of reserved bytes after the BTH of a congestion notification packet.
const CNPReservedLen = 16

// The properties of an opcode.
const (
	opFirst uint32 = 1 << iota
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
	opXRC
	opWrite
	opFETH
	opPlaced // of annex A19: answered by a READ response without payload
	opOnly   = opFirst | opLast
)

type opcodeInfo struct {
	name   string
	flags  uint32
	length uint8 // of the headers after the BTH
	known  bool
}

// describe fills in an opcode's entry in the table.
func describe(t *[256]opcodeInfo, op Opcode, name string, flags uint32) {
	n := uint8(0)
	for _, h := range [...]struct {
		flag   uint32
		length uint8
	}{
		{opRETH, RETHLen}, {opAETH, AETHLen}, {opAtomicETH, AtomicETHLen}, {opAtomicAck, AtomicAckETHLen},
		{opImm, ImmDtLen}, {opIETH, IETHLen}, {opDETH, DETHLen}, {opXRC, XRCETHLen}, {opFETH, FETHLen},
	} {
		if flags&h.flag != 0 {
			n += h.length
		}
	}
	t[op] = opcodeInfo{name: name, flags: flags, length: n, known: true}
}

var opcodes = func() *[256]opcodeInfo {
	t := new([256]opcodeInfo)
	for _, s := range [...]struct {
		service Service
		name    string
		request uint32 // what every request has
	}{{ServiceRC, "RC ", opRequest}, {ServiceUC, "UC ", opRequest}, {ServiceXRC, "XRC ", opRequest | opXRC}} {
		data := s.request | opPayload
		write := data | opWrite
		add := func(op Opcode, name string, flags uint32) { describe(t, op.Of(s.service), s.name+name, flags) }
		add(RCSendFirst, "SEND First", opFirst|data|opReceive)
		add(RCSendMiddle, "SEND Middle", opMiddle|data|opReceive)
		add(RCSendLast, "SEND Last", opLast|data|opReceive)
		add(RCSendLastImmediate, "SEND Last with Immediate", opLast|data|opReceive|opImm)
		add(RCSendOnly, "SEND Only", opOnly|data|opReceive)
		add(RCSendOnlyImmediate, "SEND Only with Immediate", opOnly|data|opReceive|opImm)
		add(RCWriteFirst, "RDMA WRITE First", opFirst|write|opRETH)
		add(RCWriteMiddle, "RDMA WRITE Middle", opMiddle|write)
		add(RCWriteLast, "RDMA WRITE Last", opLast|write)
		add(RCWriteLastImmediate, "RDMA WRITE Last with Immediate", opLast|write|opReceive|opImm)
		add(RCWriteOnly, "RDMA WRITE Only", opOnly|write|opRETH)
		add(RCWriteOnlyImmediate, "RDMA WRITE Only with Immediate", opOnly|write|opReceive|opRETH|opImm)
		if s.service == ServiceUC {
			continue
		}
		const answer = opResponse | opPayload
		add(RCReadRequest, "RDMA READ Request", opOnly|s.request|opRETH)
		add(RCReadResponseFirst, "RDMA READ Response First", opFirst|answer|opAETH)
		add(RCReadResponseMiddle, "RDMA READ Response Middle", opMiddle|answer)
		add(RCReadResponseLast, "RDMA READ Response Last", opLast|answer|opAETH)
		add(RCReadResponseOnly, "RDMA READ Response Only", opOnly|answer|opAETH)
		add(RCAcknowledge, "Acknowledge", opOnly|opResponse|opAETH)
		add(RCAtomicAcknowledge, "ATOMIC Acknowledge", opOnly|opResponse|opAETH|opAtomicAck)
		add(RCCompareSwap, "CmpSwap", opOnly|s.request|opAtomicETH)
		add(RCFetchAdd, "FetchAdd", opOnly|s.request|opAtomicETH)
		add(RCSendLastInvalidate, "SEND Last with Invalidate", opLast|data|opReceive|opIETH)
		add(RCSendOnlyInvalidate, "SEND Only with Invalidate", opOnly|data|opReceive|opIETH)
	}
	describe(t, RCFlush, "RC FLUSH", opOnly|opRequest|opPlaced|opFETH|opRETH)
	describe(t, RCAtomicWrite, "RC ATOMIC WRITE", opOnly|opRequest|opPlaced|opRETH|opPayload)
	const datagram = opOnly | opRequest | opPayload | opReceive | opDETH
	describe(t, UDSendOnly, "UD SEND Only", datagram)
	describe(t, UDSendOnlyImmediate, "UD SEND Only with Immediate", datagram|opImm)
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

// Of returns the opcode of the same operation in another service: RCSendOnly.Of(ServiceXRC) is XRCSendOnly. It need
// not be a known one.
func (op Opcode) Of(s Service) Opcode { return op&opcodeOperation | Opcode(s)<<opcodeServiceShift }

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

// HasFETH reports whether a FETH follows the BTH.
func (op Opcode) HasFETH() bool { return opcodes[op].flags&opFETH != 0 }

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

// HasXRCETH reports whether an XRCETH follows the BTH: in every request of the extended reliable connection service.
func (op Opcode) HasXRCETH() bool { return opcodes[op].flags&opXRC != 0 }

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
func (op Opcode) IsWrite() bool { return opcodes[op].flags&opWrite != 0 }

// IsSend reports whether it is a packet of a send of any service, including those with immediate or
// invalidate.
func (op Opcode) IsSend() bool {
	return opcodes[op].flags&opReceive != 0 && !op.IsWrite()
}

// IsReadResponse reports whether it is a packet of the response to an RDMA read.
func (op Opcode) IsReadResponse() bool {
	return opcodes[op].flags&(opResponse|opPayload) == opResponse|opPayload
}

// IsAtomic reports whether it is a Compare & Swap or Fetch & Add request.
func (op Opcode) IsAtomic() bool { return opcodes[op].flags&opAtomicETH != 0 }

// IsPlaced reports whether it is a FLUSH or ATOMIC WRITE request, which a RDMA READ Response Only without payload answers
// once the data is where it is to be (IBA annex A19).
func (op Opcode) IsPlaced() bool { return opcodes[op].flags&opPlaced != 0 }

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
