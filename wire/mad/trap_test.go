package mad

import (
	"encoding/hex"
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
	"pgregory.net/rapid"
)

// IBA 14.2.5.1, the tables of the traps' data.
func TestTrapLayouts(t *testing.T) {
	for _, c := range []struct {
		name string
		d    Details
		want string
	}{
		{"64", TrapGID{ib.GID{0: 0xfe, 15: 1}}.Details(), "000000000000" + "fe000000000000000000000000000001"},
		{"128", TrapSwitch{0x1234}.Details(), "1234"},
		{"129", TrapPort{0x1234, 7}.Details(), "0000" + "1234" + "07"},
		{"144", TrapCapability{0x1234, true, 0x01020304, ChangedNodeDescription | ChangedLinkSpeedEnabled, 0x0506}.Details(),
			"0000" + "1234" + "00" + "01" + "01020304" + "0005" + "0506"},
		{"145", TrapSystemImage{0x1234, 0x0102030405060708}.Details(), "0000" + "1234" + "0000" + "0102030405060708"},
		{"256", TrapMKey{LID: 1, DrSLID: 2, Method: 3, AttributeID: 4, AttributeModifier: 5, MKey: 6, Directed: true, Truncated: true,
			Hops: 9, ReturnPath: [30]uint8{7, 29: 8}}.Details(),
			"0000" + "0001" + "0002" + "03" + "00" + "0004" + "00000005" + "0000000000000006" + "00" + "c9" + "07"},
		{"258", TrapKey{LID1: 1, LID2: 2, Key: 3, SL: 4, QP1: 5, QP2: 6, GID1: ib.GID{1}, GID2: ib.GID{2}}.Details(),
			"0000" + "0001" + "0002" + "00000003" + "40000005" + "00000006" + "01000000000000000000000000000000" + "02"},
		{"259", TrapSwitchPKey{ValidLID1 | ValidPKey, 1, 2, 3, 4, 5, 6, ib.GID{1}, ib.GID{2}, 7, 8}.Details(),
			"0005" + "0001" + "0002" + "0003" + "40000005" + "00000006" + "01000000000000000000000000000000" +
				"02000000000000000000000000000000" + "0007" + "08"},
	} {
		if got := hex.EncodeToString(c.d[:]); got[:len(c.want)] != c.want {
			t.Errorf("trap %s: %s, want it to begin with %s", c.name, got, c.want)
		}
	}
}

// Any data that is read, encoded and read again gives the same result.
func TestTrapsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Details(rapid.SliceOfN(rapid.Byte(), NoticeDetailsLen, NoticeDetailsLen).Draw(t, "data"))
		back(t, &d, ParseTrapGID)
		back(t, &d, ParseTrapSwitch)
		back(t, &d, ParseTrapPort)
		back(t, &d, ParseTrapCapability)
		back(t, &d, ParseTrapSystemImage)
		back(t, &d, ParseTrapMKey)
		back(t, &d, ParseTrapKey)
		back(t, &d, ParseTrapSwitchPKey)
	})
}

func back[T interface {
	comparable
	Details() Details
}](t *rapid.T, d *Details, parse func(*Details) T) {
	want := parse(d)
	made := want.Details()
	if got := parse(&made); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestNoticeWithGID(t *testing.T) {
	n := Notice{IsGeneric: true, Type: NoticeUrgent, ProducerType: uint32(NodeSwitch), TrapNumber: TrapLinkStateChange, IssuerLID: 2,
		Toggle: true, Count: 3, DataDetails: TrapSwitch{2}.Details(), IssuerGID: ib.GID{0xfe, 0x80, 15: 2}}
	b := n.AppendWithGID(nil)
	if want := "81" + "000002" + "0080" + "0002" + "8003" + "0002"; len(b) != NoticeGIDLen || hex.EncodeToString(b)[:len(want)] != want {
		t.Errorf("%x", b)
	}
	if got, err := ParseNotice(b); err != nil || got != n {
		t.Errorf("%+v, %v", got, err)
	}
}
