package proto

import (
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/direct"
)

// bodies holds one value of every struct that is sent between program and driver, or shared.
var bodies = []any{
	Hello{}, Welcome{}, Goodbye{}, ArenaBody{}, Credit{}, AdapterArgs{}, HandleArgs{}, WindowArgs{}, ResizeArgs{},
	MulticastArgs{}, DestroyArgs{}, BindArgs{}, ListenArgs{}, AttributesArgs{}, SegmentArgs{}, SegmentReply{}, Empty{},
	ShareBody{}, Introduction{}, DropBody{}, TracksBody{}, MapSegmentArgs{}, ProcessBody{}, Moved{},
	Exported{}, ImportArgs{}, Imported{},
	command.AdapterInfo{}, command.GID{}, command.Interface{},
	command.PortInfo{}, command.Counter{}, command.RegisterMemory{}, command.Memory{},
	command.CreateCQ{}, command.Clock{}, command.Queue{}, command.ModerateCQ{}, command.CreateSRQ{}, command.ModifySRQ{},
	command.SRQInfo{}, command.CreateQP{}, command.QueuePair{}, command.ModifyQP{}, command.QPInfo{},
	command.CreateAH{}, command.CMCreate{}, command.CMConnect{}, command.CMAccept{}, command.CMReject{},
	command.CreateChannel{}, command.RegisterMemoryAt{}, command.ReregisterMemory{}, command.CMSetChannel{}, command.CMResolveAddr{},
	command.CMResolveRoute{},
	command.AllocDM{}, command.DeviceMemory{}, command.MemoryInfo{},
	command.CMJoin{}, command.CMLeave{}, command.CMOption{}, command.CMNotify{},
	command.LinkAddress{}, command.OpenXRCD{}, command.CreateXRCSRQ{}, command.OpenQP{},
	command.CreateTagSRQ{}, command.TagOp{}, command.FlowKey{}, command.CreateFlow{}, command.FlowCounters{}, command.FramePort{},
	command.CreateRSS{}, command.SetFrameFlags{}, command.SetRSS{}, command.LimitQP{}, command.Firmware{},
	command.CMInfo{}, command.Event{}, command.Endpoint{}, command.Ring{}, command.AddressVector{}, command.ConnParam{},
	direct.Key{}, direct.RingAt{}, direct.Terms{}, direct.Direction{}, // in shared memory
}

// TestBodiesHaveCLayout: a C struct with the same fields has the same layout, because packed encoding and natural
// alignment agree.
func TestBodiesHaveCLayout(t *testing.T) {
	for _, b := range bodies {
		typ := reflect.TypeOf(b)
		size, align := cLayout(t, typ, typ.Name())
		if n := binary.Size(b); n != size || size%align != 0 {
			t.Errorf("%v: encoded size %d, C size %d, alignment %d", typ, n, size, align)
		}
	}
}

func cLayout(t *testing.T, typ reflect.Type, path string) (size, align int) {
	switch typ.Kind() {
	case reflect.Struct:
		align = 1
		for i := range typ.NumField() {
			f := typ.Field(i)
			s, a := cLayout(t, f.Type, path+"."+f.Name)
			if size%a != 0 {
				t.Errorf("%s.%s at offset %d needs alignment %d", path, f.Name, size, a)
			}
			size += s
			align = max(align, a)
		}
		if size%align != 0 {
			t.Errorf("%s: %d bytes, not a multiple of its alignment %d", path, size, align)
		}
		return size, align
	case reflect.Array:
		s, a := cLayout(t, typ.Elem(), path)
		return s * typ.Len(), a
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return int(typ.Size()), int(typ.Size())
	}
	t.Fatalf("%s: %v has no fixed layout", path, typ)
	return 0, 0
}

// TestRequestsFitTheirFrame: every body, and the largest push of events, fits into a frame.
func TestRequestsFitTheirFrame(t *testing.T) {
	for _, b := range bodies {
		if n := binary.Size(b); n+HeaderSize > MaxRequest {
			t.Errorf("%T has %d bytes, more than fit a request of %d", b, n, MaxRequest)
		}
	}
	if n := HeaderSize + MaxPush*binary.Size(command.Event{}); n > MaxFrame {
		t.Errorf("a frame of pushed events has %d bytes, more than %d", n, MaxFrame)
	}
}
