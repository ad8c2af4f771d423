package mad

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/softvpi/softvpi/wire/ib"
	"pgregory.net/rapid"
)

// attribute is one of the attributes of subnet management with its decoder.
type attribute struct {
	name     string
	length   int
	reserved map[int]byte // offsets to the bits that belong to no field
	recode   func([]byte) ([]byte, error)
	parse    func([]byte) error
}

func codec[T any, P interface {
	*T
	Append([]byte) []byte
}](name string, length int, reserved map[int]byte, parse func([]byte) (T, error)) attribute {
	return attribute{name, length, reserved, func(b []byte) ([]byte, error) {
		v, err := parse(b)
		return P(&v).Append([]byte("in front"))[8:], err
	}, func(b []byte) error { _, err := parse(b); return err }}
}

var attributes = []attribute{
	codec("NodeInfo", NodeInfoLen, nil, ParseNodeInfo),
	codec("SwitchInfo", SwitchInfoLen, map[int]byte{16: 0x07, 17: 0xff}, ParseSwitchInfo),
	codec("PortInfo", PortInfoLen, map[int]byte{34: 0x38, 52: 0xe0, 63: 0xe0}, ParsePortInfo),
	codec("GUIDInfo", GUIDInfoLen, nil, ParseGUIDInfo),
	codec("P_KeyTable", PKeyTableLen, nil, ParsePKeyTable),
	codec("SLtoVLMappingTable", SLtoVLMappingTableLen, nil, ParseSLtoVLMappingTable),
	codec("VLArbitrationTable", VLArbitrationTableLen, everySecond(64, 0xf0), ParseVLArbitrationTable),
	codec("LinearForwardingTable", LinearForwardingTableLen, nil, ParseLinearForwardingTable),
	codec("MulticastForwardingTable", MulticastForwardingTableLen, nil, ParseMulticastForwardingTable),
	codec("SMInfo", SMInfoLen, nil, ParseSMInfo),
	codec("Notice", NoticeLen, nil, ParseNotice),
	codec("ExtendedPortInfo", ExtendedPortInfoLen, with(bytesOf([2]int{0, 3}, [2]int{4, 7}, [2]int{8, 11}), bytesOf([2]int{12, 15})),
		ParseExtendedPortInfo),
	codec("GeneralInfo", GeneralInfoLen, nil, ParseGeneralInfo),
	codec("VirtualizationInfo", VirtualizationInfoLen, map[int]byte{4: 0x1f, 5: 0xff}, ParseVirtualizationInfo),
	codec("VPortInfo", VPortInfoLen, map[int]byte{0: 0x03}, ParseVPortInfo),
	codec("VPortState", VPortStatesLen, nil, ParseVPortStates),
	codec("VNodeInfo", VNodeInfoLen, nil, ParseVNodeInfo),
}

func everySecond(n int, mask byte) map[int]byte {
	m := map[int]byte{}
	for i := 0; i < n; i += 2 {
		m[i] = mask
	}
	return m
}

// IBA 14.2.5: each bit that is not reserved belongs to a field, and reserved ones are sent as zeros.
func TestAttributesEveryBit(t *testing.T) {
	for _, a := range attributes {
		t.Run(a.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				b := rapid.SliceOfN(rapid.Byte(), a.length, a.length).Draw(t, "attribute")
				want := bytes.Clone(b)
				for i, mask := range a.reserved {
					want[i] &^= mask
				}
				got, err := a.recode(b)
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%x comes back as\n%x, want\n%x (%v)", b, got, want, err)
				}
			})
		})
	}
}

func TestAttributesTooShort(t *testing.T) {
	for _, a := range attributes {
		var e *Error
		if err := a.parse(make([]byte, a.length-1)); !errors.As(err, &e) || e.Field != a.name+" length" {
			t.Errorf("%s: %v", a.name, err)
		}
	}
}

// Reading an attribute and appending it to a buffer with room allocates nothing.
func TestAttributesDoNotAllocate(t *testing.T) {
	b, data := make([]byte, 0, Len), make([]byte, Len)
	data[0], data[1], data[2] = BaseVersion, ClassSubnetDir, ClassVersionSMP
	if n := testing.AllocsPerRun(100, func() {
		s, err := ParseSMP(data)
		if err != nil {
			t.Fatal(err)
		}
		b = s.Append(b[:0])
		i, _ := ParsePortInfo(s.Data[:])
		b = i.Append(b[:0])
		f, _ := ParseLinearForwardingTable(s.Data[:])
		b = f.Append(b[:0])
		n, _ := ParseNotice(s.Data[:])
		b = n.Append(b[:0])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func same[T any](t *testing.T, parse func([]byte) (T, error), data string, want T) {
	t.Helper()
	b, err := hex.DecodeString(data + strings.Repeat("0", max(0, 2*SMPDataLen-len(data))))
	if err != nil {
		t.Fatal(err)
	}
	got, err := parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%T (-want +got)\n%s", got, d)
	}
}

// What ibsim 0.10 answered on a fabric of two switches that OpenSM 3.3.23 had brought up.
func TestAttributesOfIbsim(t *testing.T) {
	same(t, ParseNodeInfo, "010102080002c902000020000002c902000020000002c902000020000008b924000000a1020002c9", NodeInfo{
		BaseVersion: 1, ClassVersion: 1, NodeType: NodeSwitch, NumPorts: 8,
		SystemImageGUID: 0x2c90200002000, NodeGUID: 0x2c90200002000, PortGUID: 0x2c90200002000,
		PartitionCap: 8, DeviceID: 0xb924, Revision: 0xa1, LocalPortNum: 2, VendorID: 0x2c9,
	})
	same(t, ParseSwitchInfo, "c000000004000007000000900000004030", SwitchInfo{
		LinearFDBCap: 0xc000, MulticastFDBCap: 0x400, LinearFDBTop: 7, LifeTimeValue: 0x12, PartitionEnforcementCap: 0x40,
		FilterRawInboundCap: true, FilterRawOutboundCap: true,
	})
	same(t, ParsePortInfo, "0000000000000000fe80000000000000000400010050c04800000ff901031f0274520047404000080804e040000000000000201f0000000000000000003", PortInfo{
		GIDPrefix: 0xfe80 << 48, LID: 4, MasterSMLID: 1, MKeyLeasePeriod: 0xff9, LocalPortNum: 1,
		CapabilityMask: CapIsTrapSupported | CapIsSLMappingSupported | CapIsExtendedSpeedsSupported |
			CapIsCapabilityMask2Supported | CapIsVendorClassSupported | CapIsCapabilityMaskNoticeSupported,
		CapabilityMask2: Cap2IsLinkWidth2xSupported | Cap2IsLinkSpeedHDRSupported, LinkWidthEnabled: Width1x | Width4x,
		LinkWidthSupported: 31, LinkWidthActive: Width4x, LinkSpeedSupported: 7, LinkSpeedActive: 4, LinkSpeedEnabled: 7,
		PortState: PortActive, PortPhysicalState: PhysicalLinkUp, LinkDownDefaultState: PhysicalPolling,
		NeighborMTU: ib.MTU2048, MTUCap: ib.MTU2048, VLCap: 4, VLArbitrationHighCap: 8, VLArbitrationLowCap: 8,
		VLStallCount: 7, OperationalVLs: 4, GUIDCap: 32, SubnetTimeOut: 31,
	})
	same(t, ParseGUIDInfo, "0002c90300001003", GUIDInfo{0x2c90300001003})
	same(t, ParsePKeyTable, "ffff", PKeyTable{ib.PKeyDefault})
	same(t, ParseSLtoVLMappingTable, "0123456789abcde7", SLtoVLMappingTable{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 7})
	same(t, ParseVLArbitrationTable, "00000104020403040404050406040704", VLArbitrationTable{{0, 0}, {1, 4}, {2, 4}, {3, 4}, {4, 4}, {5, 4},
		{6, 4}, {7, 4}})
	forward := LinearForwardingTable{NoPort, 1, 0, 7, 2, 7, 8, 3}
	for i := 8; i < 64; i++ {
		forward[i] = NoPort
	}
	same(t, ParseLinearForwardingTable, "ff01000702070803"+strings.Repeat("ff", 56), forward)
	same(t, ParseSMInfo, "0002c9030000100100000000000000010000008203", SMInfo{GUID: 0x2c90300001001, SMKey: 1, ActCount: 130,
		State: SMMaster})
	same(t, ParseGeneralInfo, "00008000000000000000000000000000", GeneralInfo{1 << CapVirtualization})
	same(t, ParseVirtualizationInfo, "00200003a0000001", VirtualizationInfo{Cap: 32, Top: 3, Enable: true, StateChange: true,
		CapabilityMask: 1})
	same(t, ParseVPortInfo, "44020001000200030010000002000000000000210000000000000007", VPortInfo{State: PortActive, LIDRequired: true,
		GUIDCap: 2, CapabilityMask: 1, PKeyViolations: 2, QKeyViolations: 3, LID: 16, GUID: 0x0200000000000021, Profile: 7})
	same(t, ParseVPortStates, "42100000"+strings.Repeat("00", 60), VPortStates{PortActive, PortInit, PortDown})
	same(t, ParseVNodeInfo, "001001010200000000000021", VNodeInfo{PartitionCap: 16, LocalPortNum: 1, NumPorts: 1, GUID: 0x0200000000000021})
	same(t, ParseExtendedPortInfo, "00000000000000010000000100000001", ExtendedPortInfo{0, FDR10, FDR10, FDR10})
}

func TestDescriptionEndsAtZero(t *testing.T) {
	if got := DescribeNode("sw1 switch").String(); got != "sw1 switch" {
		t.Errorf("%q", got)
	}
	if got := DescribeNode(strings.Repeat("x", 70)).String(); got != strings.Repeat("x", 64) {
		t.Errorf("%q", got)
	}
}
