package paths

import (
	"path/filepath"
	"testing"
)

func TestSocketComesFromTheFirstSourceThatIsSet(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, socket, runtime, want string }{
		{"own variable", filepath.Join(dir, "a.sock"), dir, filepath.Join(dir, "a.sock")},
		{"XDG", "", dir, filepath.Join(dir, "softvpi", "driver.sock")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(SocketVariable, c.socket)
			t.Setenv("XDG_RUNTIME_DIR", c.runtime)
			if got := Socket(); got != c.want {
				t.Errorf("Socket() = %q, want %q", got, c.want)
			}
		})
	}
	t.Run("relative XDG directories do not count", func(t *testing.T) {
		t.Setenv(SocketVariable, "")
		t.Setenv("XDG_RUNTIME_DIR", "run")
		if got := Socket(); !filepath.IsAbs(got) || filepath.Base(got) != "driver.sock" {
			t.Errorf("Socket() = %q, want an absolute path", got)
		}
	})
}

func TestStateComesFromTheFirstSourceThatIsSet(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(StateVariable, filepath.Join(dir, "own"))
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "xdg"))
	if got, want := State(), filepath.Join(dir, "own"); got != want {
		t.Errorf("State() = %q, want %q", got, want)
	}
	t.Setenv(StateVariable, "")
	if got, want := State(), filepath.Join(dir, "xdg", "softvpi"); got != want {
		t.Errorf("State() = %q, want %q", got, want)
	}
}
