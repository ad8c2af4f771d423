package ethernet

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/link/station"
)

// TestOpen_Refused: typed errors name the field.
func TestOpen_Refused(t *testing.T) {
	for field, cfg := range map[string]Config{
		"Interface": {}, "ReceiveBuffer": {Interface: "x", ReceiveBuffer: -1},
	} {
		var e *station.FieldError
		if _, err := Open(cfg); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%v, want an error about %s", err, field)
		}
	}
	var e *station.FieldError
	if _, err := Open(Config{Interface: strings.Repeat("x", 16)}); !errors.As(err, &e) || e.Field != "Interface" {
		t.Errorf("%v, want an error about Interface", err)
	}
	if runtime.GOOS != "linux" {
		if _, err := Open(Config{Interface: "eth0"}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v, want that it is not supported", err)
		}
	}
}
