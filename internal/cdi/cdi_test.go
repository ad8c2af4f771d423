package cdi

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

// What is written is what an engine's library reads, and gives a container with a device the driver's socket, the libraries and
// the variables.
func TestEnginesReadIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cdi")
	s := Source{Socket: "/run/user/1/softvpi/driver.sock", Containers: []int{0, 1}, Functions: []string{"red"}, Preload: true,
		Libraries: "/usr/lib/softvpi"}
	spec, err := s.Spec()
	if err != nil {
		t.Fatal(err)
	}
	file, err := Write(dir, spec)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v; want a file for all to read", info, err)
	}
	engine, err := cdi.NewCache(cdi.WithSpecDirs(dir), cdi.WithAutoRefresh(false))
	if err != nil || len(engine.GetErrors()) != 0 {
		t.Fatal(err, engine.GetErrors())
	}
	want := []string{"softvpi.io/rdma=0", "softvpi.io/rdma=1", "softvpi.io/rdma=all", "softvpi.io/rdma=vf-red"}
	if !slices.Equal(engine.ListDevices(), want) {
		t.Errorf("the engine sees %v, want %v", engine.ListDevices(), want)
	}
	for device, want := range map[string][2]string{
		"1":      {"/run/user/1/softvpi/driver.sock.containers/1", "SOFTVPI_SOCKET=/run/softvpi/driver.sock"},
		"vf-red": {"/run/user/1/softvpi/driver.sock.containers/vf-red", "SOFTVPI_SOCKET=/run/softvpi/driver.sock"},
		"all":    {"/run/user/1/softvpi", "SOFTVPI_SOCKET=/run/softvpi/driver.sock"},
	} {
		container := &specs.Spec{Process: &specs.Process{Env: []string{"LD_LIBRARY_PATH=/own"}}}
		if missing, err := engine.InjectDevices(container, Name(device)); err != nil {
			t.Fatal(missing, err)
		}
		mounts := map[string]string{}
		for _, m := range container.Mounts {
			mounts[m.Destination] = m.Source
		}
		if !reflect.DeepEqual(mounts, map[string]string{"/run/softvpi": want[0], "/usr/lib/softvpi": "/usr/lib/softvpi"}) {
			t.Errorf("%s: mounts are %v", device, mounts)
		}
		env := strings.Join(container.Process.Env, "\n")
		for _, v := range []string{want[1], "LD_LIBRARY_PATH=/usr/lib/softvpi", "LD_PRELOAD=/usr/lib/softvpi/libsoftvpi-preload.so"} {
			if !strings.Contains(env, v) {
				t.Errorf("%s: the environment is %v, want %s", device, container.Process.Env, v)
			}
		}
	}
	list, problems := List(dir, t.TempDir())
	if len(list) != 4 || len(problems) != 0 ||
		list[1] != (Found{"softvpi.io/rdma=0", file, "/run/user/1/softvpi/driver.sock.containers/0/driver.sock"}) {
		t.Errorf("listed: %+v, %v", list, problems)
	}
	if removed, err := Remove(dir); !removed || err != nil {
		t.Error(removed, err)
	}
	if removed, err := Remove(dir); removed || err != nil {
		t.Error("removed again:", removed, err)
	}
}

func TestRefusals(t *testing.T) {
	if _, err := (&Source{Socket: "relative"}).Spec(); err == nil {
		t.Error("a relative path is taken")
	}
	if _, err := (&Source{Socket: "/s"}).Edits("7"); err == nil || !strings.Contains(err.Error(), "no socket for container 7") {
		t.Error(err)
	}
	_, err := (&Source{Socket: "/s", Containers: []int{7}}).Edits("vf-7")
	if err == nil || !strings.Contains(err.Error(), `no virtual function "7"`) {
		t.Error(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, file+".json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, problems := List(dir); len(list) != 0 || len(problems) != 1 {
		t.Error(list, problems)
	}
}
