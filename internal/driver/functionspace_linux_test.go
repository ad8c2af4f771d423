package driver

import (
	"errors"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// sees returns the names of the adapters that a program in the namespace sees at a socket.
func (s *space) sees(socket string) (names []string, err error) {
	s.t.Helper()
	err = s.in(func() error {
		c, err := client.Dial(s.t.Context(), socket, client.Options{})
		if err != nil {
			return err
		}
		defer c.Close()
		list, err := c.Adapters(s.t.Context())
		for i := range list {
			names = append(names, proto.NameOf(list[i].Name))
		}
		return err
	})
	return names, err
}

// TestFunctions_VisibleInANamespace: a virtual function with visible=netns is there for programs of the network namespace of its interface
// alone, wherever that is moved: at its own socket, where others are refused, and at the driver's, where it is their only device.
func TestFunctions_VisibleInANamespace(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	cfg := hosting(t)
	d := start(t, cfg)
	defer stop(t, d)
	here, red, blue := hereSpace(t), newSpace(t), newSpace(t)
	for _, words := range [][]string{{"visible=netns"}, {"tap=x0", "visible=red"}, {"visible=netns", "host=stream:" + cfg.Socket + ".card"}} {
		_, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "red", Settings: words})
		if wrong := (*api.FieldError)(nil); !errors.As(err, &wrong) || wrong.Field != "visible" {
			t.Errorf("%q: %v", words, err)
		}
	}
	create(t, d, "a", "red", "tap=red0", "visible=netns", "netns="+red.path())
	own := paths.Function(cfg.Socket, "red")
	check := func(when string, s *space, atDriver string, mine bool) {
		t.Helper()
		if names, err := s.sees(cfg.Socket); err != nil || strings.Join(names, " ") != atDriver {
			t.Errorf("%s, at the driver's socket: %q, %v; want %q", when, names, err, atDriver)
		}
		names, err := s.sees(own)
		switch {
		case mine && (err != nil || strings.Join(names, " ") != "red"):
			t.Errorf("%s, at the function's socket: %q, %v", when, names, err)
		case !mine && (!errors.Is(err, &command.Error{Code: command.Access}) || !strings.Contains(err.Error(), `"red" is visible in the network namespace net:[`)):
			t.Errorf("%s, at the function's socket: %q, %v; want a refusal that says why", when, names, err)
		}
	}
	check("in the interface's namespace", red, "red", true)
	check("in the driver's", here, "a b", false)
	check("in another", blue, "a b", false)
	blue.gets(red, "red0")
	check("when the interface has left", red, "a b", false)
	check("when it has come", blue, "red", true)
	if err := d.RestartAdapter("a"); err != nil {
		t.Fatal(err)
	}
	here.gets(blue, "red0")
	check("when it is in the driver's namespace", here, "a b", true)
	check("when it is there", blue, "a b", false)
	change(t, d, "red", "visible=all")
	check("when all see it", blue, "a b", true)
	refused := d.SetFunction(api.FunctionRequest{Name: "red", Settings: []string{"visible=netns", "tap=none", "netns=none"}})
	if wrong := (*api.FieldError)(nil); !errors.As(refused, &wrong) || wrong.Field != "visible" {
		t.Errorf("without an interface: %v", refused)
	}

	c, err := client.Dial(t.Context(), own, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.AllocPD(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	red.gets(here, "red0")
	change(t, d, "red", "visible=netns")
	if _, err := c.AllocPD(t.Context(), 0); !errors.Is(err, &command.Error{Code: command.Removed}) {
		t.Errorf("a program elsewhere that had it before: %v", err)
	}
}
