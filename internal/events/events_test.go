package events

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// kinds holds a value of every type of event.
var kinds = []Event{
	LinkUp{}, LinkDown{}, AdapterStarted{}, AdapterStartFailed{}, AdapterStopped{}, AdapterEnabled{}, AdapterDisabled{}, Identification{},
	AdapterAsleep{}, AdapterWoken{}, DuplicateMAC{}, DCBXAgreed{}, DCBXEnded{}, DCBXConflict{}, DCBXMultiplePeers{}, LLDPRefused{},
	FlowControlRefused{}, TrustContradicts{}, DroplessEntered{}, DroplessExited{}, DelayDropTimeout{}, VFSpoofed{},
	VFTooManyResources{}, VFTooManyPages{}, VFReset{}, MTUChanged{},
	ManyGroups{}, DuplicateAddress{}, RoCEModesDiffer{}, WakeCommandFailed{},
	PortTypeNotChanged{}, UnsupportedPortType{}, RoCEMode{}, RoCEModeRefused{}, AddressesChanged{}, JumboPacketReduced{}, MTUAboveSubnet{},
	UnknownProtocol{}, SameGUID{}, PortsContradict{}, RSSOff{}, RSSModesDiffer{},
	FlowControlOff{}, TooManyAddresses{}, RegistryValueIgnored{}, MTUTooSmall{}, SendTimeout{}, ReceiveTimeout{}, SendHardwareStuck{},
	ReceiveSoftwareStuck{}, SendSoftwareStuck{}, ReceiveCompletionError{}, SendCompletionError{}, EventQueueStuck{}, SensorError{},
	SelfHealingRestart{}, SelfHealingFailed{}, SelfHealingStop{},
	MulticastAddress{}, RegistrySetAside{}, NothingKept{}, FabricIncident{}, FabricIncidentOver{},
	TeamMemberChanged{}, TeamMemberLost{}, DriverStarted{},
	DriverStopped{}, DriverRecovered{}, DriverDied{}, RequestPanicked{},
	SelfCheckFailed{}, ProgramDied{}, ProgramDisconnected{}, ProgramRefused{}, ResetByDriver{},
	ResetFinished{}, ResetFailed{}, DumpOnRequest{}, DumpAfterError{}, DumpMeNow{}, DumpMeNowFailed{}, LogRepaired{}, Repeated{},
}

func symbolOf(e Event) string { return reflect.TypeOf(e).Name() }

// TestKindsAreAll: kinds has every type of raised.go.
func TestKindsAreAll(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "raised.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.TypeSpec); ok && s.Name.Name != "Event" && !slices.ContainsFunc(kinds,
			func(e Event) bool { return symbolOf(e) == s.Name.Name }) {
			t.Errorf("%s is not in the list of the tests", s.Name.Name)
		}
		return true
	})
}

// TestFieldsAreThoseOfTheCatalogue: a type has the fields that the texts of the generations use, and no others.
func TestFieldsAreThoseOfTheCatalogue(t *testing.T) {
	for _, e := range kinds {
		used := map[string]bool{}
		for _, g := range []catalogue.Generation{catalogue.MLX5, catalogue.MLX4} {
			entry, ok := catalogue.EventFor(symbolOf(e), g)
			if !ok {
				continue
			}
			if _, err := newRecord(g, e); err != nil {
				t.Error(err)
			}
			for _, f := range entry.Fields {
				used[f] = true
			}
		}
		typ := reflect.TypeOf(e)
		for i := range typ.NumField() {
			if !used[typ.Field(i).Name] {
				t.Errorf("%s: no text takes %s", typ.Name(), typ.Field(i).Name)
			}
		}
		if _, ok := catalogue.EventFor(typ.Name(), catalogue.Both); !ok {
			t.Errorf("%s is not in the catalogue", typ.Name())
		}
	}
}

func TestRecordOfAGeneration(t *testing.T) {
	for g, want := range map[catalogue.Generation]Record{
		catalogue.MLX5: {
			Source: "mlx5", ID: 0x8007, Severity: "Information", Symbol: "LinkUp", Adapter: "Ethernet 1",
			Fields: map[string]string{"Adapter": "Ethernet 1"}, Message: "Ethernet 1: the link is up, and the port works.",
		},
		catalogue.MLX4: {
			Source: "mlx4eth63", ID: 0x8008, Severity: "Information", Symbol: "LinkUp", Adapter: "Ethernet 1",
			Fields:  map[string]string{"Adapter": "Ethernet 1", "Port": "2"},
			Message: "Ethernet 1: the link of port 2 is up, and the port works.",
		},
	} {
		got, err := newRecord(g, LinkUp{"Ethernet 1", 2})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
}

func TestValues(t *testing.T) {
	long := strings.Repeat("é", maxValue)
	for _, c := range []struct {
		value any
		want  string
	}{
		{Hex(0x57), "0x0057"},
		{Hex(0x12345), "0x12345"},
		{[]netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")}, "127.0.0.1, ::1"},
		{[]netip.Addr(nil), "none"},
		{"a\nb\x00c\xffd", "a b c d"},
		{error(nil), "unknown"},
		{errors.New("full"), "full"},
		{uint64(1) << 63, "9223372036854775808"},
	} {
		if got := text(c.value); got != c.want {
			t.Errorf("%v: %q, want %q", c.value, got, c.want)
		}
	}
	if got := text(long); len(got) > maxValue+3 || !utf8.ValidString(got) || !strings.HasSuffix(got, "é...") {
		t.Errorf("a long value has %d bytes", len(got))
	}
}
