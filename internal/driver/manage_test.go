package driver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
)

// TestWrongManagementPort: errors in the address and the files of the management port name the field of the
// configuration.
func TestWrongManagementPort(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad, short := file("bad.pem", "no certificate"), file("short", "abc")
	for _, c := range []struct {
		m    config.Manage
		want string
	}{
		{config.Manage{Listen: "127.0.0.1"}, `manage.listen is "127.0.0.1"; allowed: an address and a port`},
		{config.Manage{Listen: "127.0.0.1:https"}, `manage.listen is "127.0.0.1:https"; allowed: an address and a port`},
		{config.Manage{Listen: "127.0.0.1:65536"}, `manage.listen is "127.0.0.1:65536"`},
		{config.Manage{Listen: "127.0.0.1:0", Certificate: bad}, "manage.certificate is"},
		{config.Manage{Listen: "127.0.0.1:0", Certificate: bad, Key: filepath.Join(dir, "none")},
			"manage.certificate " + bad + ", manage.key " + filepath.Join(dir, "none") + ": "},
		{config.Manage{Listen: "127.0.0.1:0", Certificate: bad, Key: bad}, "manage.certificate " + bad},
		{config.Manage{Listen: "127.0.0.1:0", TokenFile: short}, "manage.token_file: token: " + short + " holds 3 characters"},
	} {
		_, err := config.Config{Manage: &c.m, State: dir}.Complete()
		if err == nil {
			err = (&Driver{}).manageTCP(c.m)
		}
		var field *api.FieldError
		var file *config.Error
		if !errors.As(err, &field) && !errors.As(err, &file) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.m, err, c.want)
		}
	}
}
