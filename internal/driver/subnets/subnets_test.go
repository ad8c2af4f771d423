package subnets

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/registry"
)

// book are subnets of the tests, of a driver with the adapters a and b, with what they were told to follow.
func book(reg *registry.Registry) (s *Subnets, followed *int, refuse *error) {
	followed, refuse = new(int), new(error)
	s = New(Config{Registry: reg, Log: slog.New(slog.DiscardHandler), Follow: func() error {
		*followed++
		return *refuse
	}, Place: func(name string) (string, error) {
		if name != "a" && name != "b" {
			return "", api.Wrong("adapter", name, "a, b")
		}
		return name, nil
	}})
	return s, followed, refuse
}

func request(line string) api.OverlayRequest {
	words := strings.Fields(line)
	return api.OverlayRequest{Kind: words[0], Settings: words[1:]}
}

const someRecord = "record vsid=5001 customer=172.16.14.5 mac=00-15-5D-72-01-00 provider=192.168.20.114"

// TestAdd: entries are kept in one way of writing, told to who sends frames, and there again at the next start.
func TestAdd(t *testing.T) {
	reg := registry.NewVolatile("a test")
	s, followed, refuse := book(reg)
	for _, l := range []string{someRecord + " machine=vm", "route domain={A} vsid=5001 prefix=172.16.0.0/16", "address adapter=a address=192.168.20.114/24",
		"address adapter=b address=192.168.20.115/24 vlan=7 encapsulation=NVGRE", "provider-route adapter=a prefix=0.0.0.0/0 via=192.168.20.1 metric=3"} {
		if _, err := s.AddOverlayEntry(request(l)); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
	}
	want := []string{"record vsid=5001 customer=172.16.14.5 mac=00:15:5d:72:01:00 provider=192.168.20.114 machine=vm",
		"route domain={A} vsid=5001 prefix=172.16.0.0/16 via=0.0.0.0", "address adapter=a address=192.168.20.114/24 encapsulation=vxlan",
		"address adapter=b address=192.168.20.115/24 vlan=7 encapsulation=nvgre", "provider-route adapter=a prefix=0.0.0.0/0 via=192.168.20.1 metric=3"}
	if got := lines(s.Entries()); strings.ReplaceAll(strings.Join(got, "\n"), "\t", " ") != strings.Join(want, "\n") || *followed != len(want) {
		t.Errorf("there is\n%s\ntold %d times", strings.Join(got, "\n"), *followed)
	}
	if a, b := s.Tables("a"), s.Tables("b"); len(a.Records) != 1 || len(a.Addresses) != 1 || len(a.Providers) != 1 || len(b.Providers) != 0 ||
		len(b.Routes) != 1 || b.Addresses[0].VLAN != 7 || a.Check() != nil {
		t.Errorf("the tables are %+v and %+v", a, b)
	}
	again, _, _ := book(reg)
	if got := lines(again.Entries()); strings.ReplaceAll(strings.Join(got, "\n"), "\t", " ") != strings.Join(want, "\n") {
		t.Errorf("after a start there is\n%s", strings.Join(got, "\n"))
	}
	*refuse = errors.New("no")
	if _, err := s.AddOverlayEntry(request("address adapter=a address=198.51.100.1/24")); err == nil || len(s.Entries()) != len(want) {
		t.Errorf("what is refused stays: %v", err)
	}
	if again, _, _ = book(reg); len(again.Entries()) != len(want) {
		t.Error("what was refused is kept")
	}
}

// TestAdd_Refusals: what is wrong is refused with the field and what it may be.
func TestAdd_Refusals(t *testing.T) {
	s, _, _ := book(registry.NewVolatile("a test"))
	if _, err := s.AddOverlayEntry(request(someRecord)); err != nil {
		t.Fatal(err)
	}
	for line, field := range map[string]string{
		"nothing": "kind", "record vsid": "setting", "record vsid=1 vsid=1": "vsid", "record metric=1": "setting", "record vsid=5001": "customer",
		"record vsid=16777215": "vsid", "record mac=1": "mac", "record customer=x": "customer", someRecord: "customer address",
		"route domain=x vsid=5001 prefix=10.0.0.0": "prefix", "route domain=x vsid=5001 prefix=10.0.0.1/8": "prefix",
		"route metric=65536": "metric", "address adapter=c address=10.0.0.1/8": "adapter", "address vlan=4095": "vlan",
		"address encapsulation=gre": "encapsulation", "provider-route adapter=a prefix=10.0.0.0/8": "via", "record machine=": "machine",
	} {
		var wrong *api.FieldError
		if _, err := s.AddOverlayEntry(request(line)); !errors.As(err, &wrong) || wrong.Field != field || wrong.Allowed == "" {
			t.Errorf("%s: %v, want field %s", line, err, field)
		}
	}
	if len(s.Entries()) != 1 {
		t.Errorf("there is %v", lines(s.Entries()))
	}
}

// TestRemove: those of a kind that have what is named go; what the configuration has stays.
func TestRemove(t *testing.T) {
	reg := registry.NewVolatile("a test")
	s, _, _ := book(reg)
	for i := range 4 {
		if _, err := s.AddOverlayEntry(request(fmt.Sprintf("record vsid=%d customer=10.0.0.%d mac=02:00:00:00:00:0%d provider=192.0.2.1", 5001+i%2, i+1, i+1))); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		line string
		n    int
	}{{"record vsid=5001 customer=10.0.0.2", 0}, {"record mac=02-00-00-00-00-02", 1}, {"record vsid=5001", 2}, {"route", 0}, {"record", 1}} {
		if list, err := s.RemoveOverlayEntries(request(c.line)); err != nil || len(list) != c.n {
			t.Errorf("%s: %d go, want %d; %v", c.line, len(list), c.n, err)
		}
	}
	if len(reg.Overlay()) != 0 {
		t.Errorf("%q is kept", reg.Overlay())
	}
	if _, err := s.AddOverlayEntry(request(someRecord)); err != nil {
		t.Fatal(err)
	}
	if err := s.Configure([]string{someRecord}); err != nil || len(s.Entries()) != 1 {
		t.Fatalf("%v, %v", err, lines(s.Entries()))
	}
	if _, err := s.RemoveOverlayEntries(request("record")); err == nil {
		t.Error("a command removes what the configuration has")
	}
	for _, l := range []string{"", "record vsid=1", someRecord} {
		if err := s.Configure([]string{l}); err == nil || !strings.Contains(err.Error(), "overlay[0]") {
			t.Errorf("%q in the configuration: %v", l, err)
		}
	}
}
